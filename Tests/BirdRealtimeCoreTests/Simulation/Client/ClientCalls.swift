@testable import BirdRealtimeCore

/// The application's calls.
extension SimulatedClient {
    private static let channelNames = [
        "public-a", "public-counted", "private-a", "private-b", "private-c", "presence-a", "presence-b", "cache-a",
        "private-cache-a", "refused-a", "private-denied-a", "private-encrypted-a", "private-encrypted-b",
        "private-encrypted-cache-a",
    ]

    func callSomething() throws {
        switch Int.random(in: 0..<28, using: &world.random) {
        case 0..<3 where !program.wantsConnection, 0: try connect()
        case 1: try disconnect()
        case 2: try dial(.retryNow)
        case 3..<11:
            guard let name = world.pick(Self.channelNames) else { return }
            try subscribe(name)
        case 11..<15:
            guard let name = world.pick(program.names) else { return }
            try unsubscribe(name)
        case 15..<18:
            guard let name = world.pick(program.names) else { return }
            try unsubscribe(name)
            try subscribe(name)
        case 18..<21: try signIn(refresh: world.happens(onceIn: 3))
        case 21..<23: try changeOptions()
        default:
            guard let name = world.pick(program.names), let reference = program.wanted[name] else { return }
            world.figures.count(call: "trigger")
            try handle(.trigger(reference, event: "client-x", data: Array("{}".utf8)))
        }
    }

    func connect() throws {
        program.wantsConnection = true
        try dial(.connect)
    }

    /// A call of the program's own needs no permission.
    private func dial(_ input: SessionInput) throws {
        world.figures.count(call: input == .connect ? "connect" : "retryNow")
        attempts.ownCallBegins(isFirst: told.state == .unavailable || (input == .connect && transport == nil))
        try handle(input)
        try attempts.ownCallEnded()
    }

    func disconnect() throws {
        world.figures.count(call: "disconnect")
        program.wantsConnection = false
        attempts.forget()
        attempts.waits.forget()
        try handle(.disconnect)
    }

    func signIn(refresh: Bool) throws {
        world.figures.count(call: refresh ? "signin again" : "signin")
        program.wantsIdentity = program.wantsIdentity || !told.isTerminal
        setbacks.renew(nil)
        try handle(.signin(refresh: refresh, operation: operation()))
    }

    private func changeOptions() throws {
        world.figures.count(call: "configure")
        configuration.reconnect = world.pick(ReconnectPolicy.allCases) ?? .jitter
        configuration.reconnectDelayMs = world.pick([1, 3_000, 20_000]) ?? 1
        configuration.reconnectStages = try ReconnectStages(world.pick(["5x3000,5x9000,5x15000", "1x1,2x400"]) ?? "")
        configuration.reconnectAttemptsMax = world.pick([0, 0, 2, 6]) ?? 0
        configuration.hasFlapGuard = !world.happens(onceIn: 3)
        configuration.activityTimeoutMs = world.pick([nil, 4_000, 60_000]) ?? nil
        (configuration.pongTimeoutMs, configuration.pongMissesMax) =
            world.pick([(30_000, 1), (10_000, 2), (2_000, 5)]) ?? (30_000, 1)
        silence.changed(now)
        try handle(.configure(configuration))
    }

    func subscribe(_ name: String) throws {
        world.figures.count(call: "subscribe")
        let reference = program.want(name)
        if told.channels[reference] == nil { told.channels[reference] = .idle }
        setbacks.renew(name)
        sealed.subscribed(reference)
        confirmations.wanted(name)
        try handle(.subscribe(name: name, channel: reference, operation: operation()))
    }

    func unsubscribe(_ name: String) throws {
        guard let reference = program.leave(name) else { return }
        world.figures.count(call: "unsubscribe")
        let isSubscribed = told.channels[reference] == .subscribed
        let hasOpenFrames =
            session.channels.slot(of: reference).map { session.channels[$0].admission.asked.frames > 0 } ?? false
        let leavesBefore = leaves
        isUnsubscribing = true
        try handle(.unsubscribe(reference))
        isUnsubscribing = false
        try require(
            (leaves > leavesBefore) == (isSubscribed && !hasOpenFrames),
            "tells the edge \(leaves - leavesBefore) times that \(name) is left")
        try require(told.channels[reference] == nil, "\(name) was unsubscribed and has not ended")
    }

    private func operation() -> UInt64 {
        Bool.random(using: &world.random) ? program.beginOperation() : 0
    }

    // MARK: - Questions to the application

    /// An application that is asked before a reconnect dawdles, refuses and repeats itself while the world is chaotic.
    func askApplication(_ question: ReconnectQuestion) {
        if world.strikes(.consentWithheld, self) { return }
        var answer = ReconnectAnswer.proceed(delayMs: 0)
        if world.strikes(.consentRefused, self) {
            answer = .refuse("not now")
        } else if world.strikes(.consentDelayed, self) {
            answer = .proceed(delayMs: Int64.random(in: 1...5_000, using: &world.random))
        }
        for _ in 0...(world.strikes(.consentTwice, self) ? 1 : 0) {
            world.schedule(.decision(self, question.id, answer), in: 0...(world.isChaotic ? 1_500 : 50))
        }
    }

    func decided(_ id: QuestionID, _ answer: ReconnectAnswer) throws {
        guard attempts.openQuestion == id else {
            try expectNothing(of: .reconnect(id, answer))
            return
        }
        let refusalsBefore = attempts.refusals
        attempts.answered(answer, now)
        try handle(.reconnect(id, answer))
        try require((state == .connecting) == (answer == .proceed(delayMs: 0)), "does not dial as it may")
        if case .refuse = answer {
            try require(attempts.refusals == refusalsBefore + 1, "does not count what was refused")
        }
    }

    func authorized(_ question: AuthorizationQuestion, _ result: Result<HTTPAnswer, Fault>) throws {
        let isOpen = openQuestions.remove(question.id) != nil
        let answer = Authorizer.answer(result, question: question, endpoint: "https://auth.example", dialect: dialect)
        if isOpen, case .granted(let auth, _, _) = answer, let name = question.channelName {
            confirmations.granted(name, auth)
        }
        try handle(.authorization(question.id, answer))
    }
}
