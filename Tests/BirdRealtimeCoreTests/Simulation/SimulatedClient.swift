import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// A session with the application above it and the runtime around it. It performs effects as the runtime does and checks
/// after every step what must always hold.
final class SimulatedClient {
    static let channelNames = [
        "public-a", "public-b", "private-a", "private-b", "private-c", "presence-a", "presence-b", "cache-a",
        "refused-a", "private-denied-a", "private-encrypted-a", "private-encrypted-b", "private-encrypted-c",
    ]
    /// Sealed events have their numbers in their names too, which are not.
    static let sealedPrefix = "sealed-"
    private static let neverSubscribed: Set<String> = ["refused-a", "private-denied-a"]
    private static let memberChannel = ChannelReference(bits: 1 << 40)

    let number: Int
    let memberID: String
    let dialect: Dialect
    private var session: Session
    private var configuration: SessionConfiguration
    private var random: SplitMix64
    private unowned let world: World
    /// How much the client's clock is ahead of the world's: it jumps.
    private var clockOffset: Int64 = 0

    // Frames that the socket has not taken, and when the last subscribe of each channel was written.
    private var outbox: [(bytes: [UInt8], isAwaited: Bool)] = []
    private var isBlocked = false
    private var asked: [String: Int64] = [:]

    // What the application wants and knows.
    private var wantsConnection = false
    private var wantsIdentity = false
    private var wanted: [String: ChannelReference] = [:]
    private var lastReference: UInt64
    private var lastOperation: UInt64 = 0
    private var openOperations: Set<UInt64> = []
    private var wasSubscribed: Set<ChannelReference> = []
    /// When the last was heard before each of these was lost.
    private var missedSince: [ChannelReference: Int64] = [:]
    private var lastHeard: Int64 = 0
    private var lastSequence: [ChannelReference: Int] = [:]
    private var rosters: [ChannelReference: [String]] = [:]
    /// Sealed events that the program has not been told of, opened or not, in order, and when they came.
    private var sealed: [ChannelReference: [(name: String, cameAt: Int64)]] = [:]
    private var lastRefresh: [ChannelReference: Int64] = [:]

    // What the runtime has been told.
    private var mirrorState = ConnectionState.initialized
    private var mirrorChannels: [ChannelReference: ChannelState] = [:]
    private var mirrorIdentity: String?
    private var liveChannels: Set<ChannelReference> = []
    private var transport: TransportID?
    private var link: Link?
    private var isOpen = false
    private var lastTransport: UInt64 = 0
    private var openQuestions: Set<QuestionID> = []
    private var openReconnect: QuestionID?
    /// From when on the application agrees to an attempt; it does not before it has asked for one or been asked.
    private var agreesToDial = Int64.max
    private var refusals = 0
    private var isTerminal = false
    private var lastSignOfLife: Int64 = 0
    private var attemptBegan: Int64 = 0
    /// Attempts since the last handshake or own call, and those among them that the session planned by itself.
    private var attempts: Int32 = 0
    private var plannedInVain = 0
    /// When the planned attempt begins at the earliest.
    private var plannedFor: Int64 = 0
    private var isOwnCall = false
    private var optionsChanged: Int64 = 0
    private var pastTransports: [TransportID] = []
    /// Subscribe frames of this connection by channel; how many of them have been left, and the errors heard before the first of those.
    private var subscribeFrames: [String: Int] = [:]
    private var leftFrames: [String: (count: Int, errorsHeard: Int)] = [:]
    private var errorsHeard = 0
    private var isUnsubscribing = false

    init(number: Int, world: World) {
        self.number = number
        self.world = world
        dialect = number % 4 == 3 ? .pusher : .bird
        memberID = number % 3 == 0 ? "\(number % 4)" : "m_\(number % 4)"
        lastReference = UInt64(number) << 20
        random = SplitMix64(seed: world.seed &* 31 &+ UInt64(number))
        var configuration = SessionConfiguration()
        configuration.hasChannelAuthorizer = true
        configuration.hasMemberAuthorizer = true
        configuration.authorizationsInFlightMax = number % 2 == 0 ? 8 : 2
        configuration.asksBeforeReconnect = number % 3 == 0
        configuration.reconnect = ReconnectPolicy.allCases[number % ReconnectPolicy.allCases.count]
        self.configuration = configuration
        session = Session(
            configuration: configuration, dialect: dialect, memberChannel: Self.memberChannel, seed: world.seed)
    }

    func memberData(idKey: String) -> String {
        let id = Int(memberID) == nil ? "\"\(memberID)\"" : memberID
        return #"{"\#(idKey)":\#(id),"\#(dialect.memberInfoKey)":{"of":"\#(memberID)"}}"#
    }

    private var now: Int64 { world.now + clockOffset }

    /// In world time.
    var timerDue: Int64? {
        session.nextDeadline.map { max($0.milliseconds - clockOffset, world.now) }
    }

    // MARK: - The application

    func callSomething() throws {
        switch Int.random(in: 0..<29, using: &world.random) {
        case 24, 25:
            try changeOptions()
        case 0..<3 where !wantsConnection, 0:
            try connect()
        case 1:
            try disconnect()
        case 2:
            try dial(.retryNow)
        case 26..<29:
            guard let hint = world.pick([NetworkHint.up, .down, .resumed]) else { return }
            try handle(.network(hint, spreadMs: world.happens(onceIn: 3) ? 1_000 : 0))
        case 3..<11:
            guard let name = world.pick(Self.channelNames) else { return }
            try subscribe(name)
        case 11..<15:
            guard let name = world.pick(wanted.keys.sorted()) else { return }
            try unsubscribe(name)
        case 15..<17:
            guard let name = world.pick(wanted.keys.sorted()) else { return }
            try unsubscribe(name)
            try subscribe(name)
        case 17..<19:
            let live = session.state != .failed && session.state != .disconnected
            wantsIdentity = wantsIdentity || live
            try handle(.signin(refresh: world.happens(onceIn: 3), operation: operation()))
        default:
            guard let name = world.pick(wanted.keys.sorted()), let reference = wanted[name] else { return }
            try handle(.trigger(reference, event: "client-x", data: Array("{}".utf8)))
        }
    }

    private func connect() throws {
        wantsConnection = true
        isTerminal = false
        try dial(.connect)
    }

    /// A call of the program's own needs no permission.
    private func dial(_ input: SessionInput) throws {
        agreesToDial = .min
        if mirrorState == .unavailable || (input == .connect && transport == nil) {
            attempts = 0
            plannedInVain = 0
        }
        isOwnCall = true
        try handle(input)
        isOwnCall = false
        agreesToDial = .max
        try require(openReconnect == nil, "asks about an attempt that the application has called for")
    }

    private func disconnect() throws {
        wantsConnection = false
        attempts = 0
        try handle(.disconnect)
    }

    private func changeOptions() throws {
        configuration.reconnect = world.pick(ReconnectPolicy.allCases) ?? .jitter
        configuration.reconnectDelayMs = world.pick([1, 3_000, 20_000]) ?? 1
        configuration.reconnectStages = try ReconnectStages(world.pick(["5x3000,5x9000,5x15000", "1x1,2x400"]) ?? "")
        configuration.reconnectAttemptsMax = world.pick([0, 0, 2, 6]) ?? 0
        configuration.hasFlapGuard = !world.happens(onceIn: 3)
        configuration.activityTimeoutMs = world.pick([nil, 4_000, 60_000]) ?? nil
        (configuration.pongTimeoutMs, configuration.pongMissesMax) =
            world.pick([(30_000, 1), (10_000, 2), (2_000, 5)]) ?? (30_000, 1)
        optionsChanged = now
        try handle(.configure(configuration))
    }

    private func subscribe(_ name: String) throws {
        let reference: ChannelReference
        if let held = wanted[name] {
            reference = held
        } else {
            lastReference += 1
            reference = ChannelReference(bits: lastReference)
            wanted[name] = reference
            mirrorChannels[reference] = .idle
        }
        try handle(.subscribe(name: name, channel: reference, operation: operation()))
    }

    private func unsubscribe(_ name: String) throws {
        guard let reference = wanted.removeValue(forKey: name) else { return }
        isUnsubscribing = true
        try handle(.unsubscribe(reference))
        isUnsubscribing = false
        try require(mirrorChannels[reference] == nil, "\(name) was unsubscribed and has not ended")
    }

    private func operation() -> UInt64 {
        guard Bool.random(using: &world.random) else { return 0 }
        lastOperation += 1
        openOperations.insert(lastOperation)
        return lastOperation
    }

    // MARK: - The end of chaos

    func heal() throws {
        if wantsConnection {
            try connect()
        }
    }

    /// Refusals and denials are final until the application asks again; some of them were the fault of chaos.
    func askAgain() throws {
        try heal()
        for name in wanted.keys.sorted()
        where mirrorChannels[wanted[name] ?? .none] == .failed || ChannelKind.of(name) == .encrypted {
            try subscribe(name)
        }
        if wantsConnection, wantsIdentity {
            try handle(.signin(refresh: false, operation: operation()))
        }
    }

    func checkConverged(_ edge: ModelEdge) throws {
        guard wantsConnection else {
            try require(transport == nil, "holds a transport that nobody wants")
            return
        }
        try require(session.state == .connected, "is \(session.state) though the world has healed")
        guard let link = edge.link(of: self), link.transport == transport else {
            throw failure("is connected to nothing")
        }
        try require(link.connectionID == session.connectionID, "has another connection id than the edge")
        var expected = Set(wanted.keys).subtracting(Self.neverSubscribed)
        if wantsIdentity {
            try require(link.identity == memberID && session.memberID == memberID, "is not signed in")
            expected.insert(ChannelName.ofMember(memberID))
        }
        let held = Set(link.subscriptions.keys)
        try require(
            held == expected,
            "lost \(expected.subtracting(held).sorted()), holds unwanted \(held.subtracting(expected).sorted())")
        for (name, reference) in wanted {
            let state = Self.neverSubscribed.contains(name) ? ChannelState.failed : .subscribed
            try require(
                mirrorChannels[reference] == state, "\(name) is \(String(describing: mirrorChannels[reference]))")
            if ChannelKind.of(name) == .presence {
                try require(
                    rosters[reference]?.sorted() == edge.members(of: name),
                    "the roster of \(name) is \(rosters[reference] ?? []) and not \(edge.members(of: name))")
            }
        }
        try require(openOperations.isEmpty, "operations \(openOperations.sorted()) have not ended")
    }

    func finish() throws {
        try disconnect()
        for name in wanted.keys.sorted() {
            try unsubscribe(name)
        }
    }

    func checkFinished(_ edge: ModelEdge) throws {
        try require(openOperations.isEmpty, "operations \(openOperations.sorted()) have not ended")
        try require(session.nextDeadline == nil, "waits for something after the end")
        try require(openQuestions.isEmpty && openReconnect == nil, "asks something after the end")
        try require(edge.link(of: self) == nil, "is still connected at the edge")
    }

    // MARK: - The network

    func dialed(_ link: Link) throws {
        guard transport == link.transport else { return }
        self.link = link
        isOpen = true
        noteLife()
        world.edge.opened(link)
        try handle(.transportOpened(link.transport))
    }

    func receive(_ message: InboundMessage, from transport: TransportID) throws {
        guard transport == self.transport else { return }
        noteLife()
        lastHeard = now
        session.noteInbound(now: Instant(milliseconds: now))
        guard let channel = message.channel, !EventName.isReserved(message.event, dialect: dialect),
            let reference = route(channel)
        else {
            try handle(.message(transport, message))
            return
        }
        guard ChannelKind.of(channel) == .encrypted else {
            try delivered(message.event, on: reference, message.data)
            return
        }
        sealed[reference, default: []].append((message.event, now))
        // The short way, or for some reason the other.
        if Bool.random(using: &world.random), let text = open(message.data, reference) {
            try delivered(message.event, on: reference, .string(text))
        } else {
            try handle(.message(transport, message))
        }
    }

    private func open(_ data: InboundMessage.Data, _ reference: ChannelReference) -> [UInt8]? {
        guard let key = session.key(of: reference), case .string(var memory) = data,
            case .opened(let count) = memory.withUnsafeMutableBytes({ key.open($0, length: $0.count) })
        else { return nil }
        return Array(memory.suffix(count))
    }

    private func route(_ channel: String) -> ChannelReference? {
        var channel = channel
        let reference = channel.withUTF8 { session.route(UnsafeRawBufferPointer($0)) }
        return reference == .none ? nil : reference
    }

    func ended(_ transport: TransportID, _ end: TransportEnd) throws {
        guard transport == self.transport else { return }
        forgetTransport()
        try handle(.transportEnded(transport, end))
        if case .closed(let code, _) = end, (4000...4099).contains(code) || dialect === Dialect.pusher && code >= 4300 {
            try require(session.state == .failed, "is \(session.state) after a refusal")
        }
    }

    func answered(_ id: QuestionID, _ answer: AuthorizationAnswer) throws {
        openQuestions.remove(id)
        try handle(.authorization(id, answer))
    }

    func decided(_ id: QuestionID, _ answer: ReconnectAnswer) throws {
        guard openReconnect == id else {
            try expectNothing(of: .reconnect(id, answer))
            return
        }
        openReconnect = nil
        let refusalsBefore = refusals
        switch answer {
        case .proceed(let delayMs): agreesToDial = now + delayMs
        case .refuse: agreesToDial = .max
        }
        try handle(.reconnect(id, answer))
        try require((session.state == .connecting) == (answer == .proceed(delayMs: 0)), "does not dial as it may")
        if case .refuse = answer {
            try require(refusals == refusalsBefore + 1, "does not count what was refused")
        }
    }

    /// The clock jumps, as after a suspend: everything is due at once.
    func jump(_ ms: Int64) throws {
        world.note(number, "the clock jumps by \(ms)")
        clockOffset += ms
        noteLife()
        attemptBegan += ms
        optionsChanged += ms
        sealed = sealed.mapValues { $0.map { ($0.name, $0.cameAt + ms) } }
    }

    /// What an old transport or a made-up one says has no effect at all.
    func hearFromThePast() throws {
        guard let past = world.pick(pastTransports) else { return }
        let inputs: [SessionInput] = [
            .transportOpened(past), .transportEnded(past, .closed(code: 4009, reason: "late")),
            .message(past, InboundMessage(event: dialect.ping)), .written(past, awaited: 3),
            .message(past, InboundMessage(event: "tick", channel: "public-a", data: .string(Array("0".utf8)))),
            .authorization(QuestionID(number: 1 << 60), .granted(auth: "a", memberData: "{}", sharedSecret: nil)),
            .reconnect(QuestionID(number: 1 << 60), .proceed(delayMs: 0)),
        ]
        guard let input = world.pick(inputs) else { return }
        try expectNothing(of: input)
    }

    private func expectNothing(of input: SessionInput) throws {
        var effects: [SessionEffect] = []
        session.handle(input, now: Instant(milliseconds: now), random: &random, into: &effects)
        try require(effects.isEmpty, "heard from the past: \(effects.map(SessionDriver.line))")
    }

    private func noteLife() {
        lastSignOfLife = now
    }

    private func forgetTransport() {
        if let transport {
            pastTransports.append(transport)
        }
        transport = nil
        link = nil
        isOpen = false
        subscribeFrames = [:]
        leftFrames = [:]
        outbox = []
        isBlocked = false
        asked = [:]
    }

    // MARK: - The runtime

    func handle(_ input: SessionInput) throws {
        var effects: [SessionEffect] = []
        session.handle(input, now: Instant(milliseconds: now), random: &random, into: &effects)
        world.note(number, "@\(now) < \(SessionDriver.line(input))")
        for effect in effects {
            world.note(number, "  > \(SessionDriver.line(effect))")
            try perform(effect)
        }
        try checkAlways()
        try write()
    }

    /// What the socket takes, which is everything unless it is blocked.
    private func write() throws {
        guard let link, !outbox.isEmpty, !isBlocked else { return }
        if world.happens(onceIn: 40) {
            isBlocked = true
            world.note(number, "the socket is blocked")
            world.schedule(.writable(self, link), in: 0...50_000)
            return
        }
        let frames = outbox
        outbox = []
        for (bytes, _) in frames {
            link.toEdge(bytes)
            if let name = subscribedName(bytes) {
                asked[name] = now
            }
        }
        let awaited = frames.count { $0.isAwaited }
        if awaited > 0 {
            try handle(.written(link.transport, awaited: awaited))
        }
    }

    func writable(_ link: Link) throws {
        guard self.link === link else { return }
        isBlocked = false
        try write()
    }

    private func perform(_ effect: SessionEffect) throws {
        switch effect {
        case .open(let id):
            try open(id)
        case .close(let id, _, _, _):
            try require(id == transport, "closes a transport that it does not have")
            if let link {
                world.schedule(.clientGone(link), in: 0...3_000)
            }
            forgetTransport()
        case .send(let id, let bytes, let kind):
            try require(id == transport && isOpen, "sends on a transport that is not open")
            try checkFrame(bytes)
            outbox.append((bytes, kind == .awaited))
        case .authorize(let question):
            try require(question.connectionID == session.connectionID, "authorizes for a connection that is not there")
            openQuestions.insert(question.id)
            try require(
                openQuestions.count <= configuration.authorizationsInFlightMax, "asks too many questions at once")
            ModelAuthorizer.ask(question, by: self, world)
        case .askReconnect(let question):
            try require(configuration.asksBeforeReconnect && mirrorState == .unavailable, "asks without need")
            try require(openReconnect == nil, "asks twice about one attempt")
            openReconnect = question.id
            agreesToDial = question.deadline.milliseconds
            world.askApplication(self, question.id)
        case .attemptRefused:
            refusals += 1
            attempts += 1
            plannedInVain += 1
        case .watchlistEntryMalformed:
            try require(false, "counts a malformed entry of a watchlist that no edge sent")
        case .withdraw(let id) where id == openReconnect:
            openReconnect = nil
        case .withdraw(let id):
            try require(openQuestions.contains(id), "withdraws a question that it has not asked")
            openQuestions.remove(id)
        case .channelState(let reference, let state):
            try require(mirrorChannels[reference] != nil || reference == Self.memberChannel, "a channel is not there")
            mirrorChannels[reference] = state == .unsubscribed ? nil : state
            if state != .subscribed {
                let waiting = sealed.removeValue(forKey: reference) ?? []
                try require(waiting.isEmpty || isUnsubscribing, "forgets \(waiting)")
                lastRefresh[reference] = nil
                if liveChannels.remove(reference) != nil {
                    missedSince[reference] = lastHeard
                }
                rosters[reference] = nil
            } else if reference == Self.memberChannel {
                liveChannels.insert(reference)
            }
        case .identity(let memberID):
            mirrorIdentity = memberID
        case .clientEventLost, .note:
            break
        case .keyRefreshBegan(let reference):
            try require(liveChannels.contains(reference), "asks for the key of a channel that is not subscribed")
            try require(
                now >= (lastRefresh[reference] ?? .min) + Session.keyRefreshSpacingMs, "hammers the authorizer")
            lastRefresh[reference] = now
        case .emit(let event):
            try told(event)
        }
    }

    private func open(_ id: TransportID) throws {
        try require(transport == nil, "has two transports")
        try require(id.number > lastTransport, "uses a transport twice")
        try require(!isTerminal && wantsConnection, "dials though nobody asked")
        try require(
            !configuration.asksBeforeReconnect || now >= agreesToDial, "dials though the application may refuse")
        try require(isOwnCall || now >= plannedFor, "dials \(plannedFor - now) ms before it said that it would")
        agreesToDial = .max
        lastTransport = id.number
        transport = id
        attemptBegan = now
        if world.happens(onceIn: 8) { return }
        if world.happens(onceIn: 5) {
            world.schedule(.dialFailed(self, id), in: 0...8_000)
            return
        }
        let delay: ClosedRange<Int64> = world.happens(onceIn: 10) ? 0...20_000 : 1...50
        world.schedule(.dialed(self, world.edge.accept(self, id)), in: delay)
    }

    /// Nothing is asked of the edge that nobody wants.
    private func checkFrame(_ bytes: [UInt8]) throws {
        let frame = JSONDocument.parse(bytes)
        guard let name = frame?["data"]?["channel"]?.string else { return }
        if frame?["event"]?.string == dialect.unsubscribe {
            // A session that leaves by itself does so because it cannot tell whose confirmation it was.
            if isUnsubscribing {
                leftFrames[name] = (subscribeFrames[name] ?? 0, leftFrames[name]?.errorsHeard ?? errorsHeard)
            }
            return
        }
        let isOwn = session.memberID.map { ChannelName.ofMember($0) == name } ?? false
        try require(wanted[name] != nil || isOwn, "subscribes to \(name), which nobody wants")
        subscribeFrames[name, default: 0] += 1
        let auth = frame?["data"]?["auth"]?.string
        try require(
            auth == dialect.publicAuth || auth == ModelAuthorizer.wrongSignature
                || auth?.hasPrefix("signed \(session.connectionID) ") == true,
            "sends what was signed for another connection id: \(auth ?? "")")
    }

    private func subscribedName(_ bytes: [UInt8]) -> String? {
        let frame = JSONDocument.parse(bytes)
        return frame?["event"]?.string == dialect.subscribe ? frame?["data"]?["channel"]?.string : nil
    }

    private func told(_ event: SessionEvent) throws {
        switch event {
        case .state(let change):
            try require(change.previous == mirrorState && change.current != mirrorState, "a state change is lost")
            try require(!isTerminal || change.current != .connecting, "a terminal state is left")
            try follow(change)
            mirrorState = change.current
            isTerminal = change.current == .failed || change.current == .disconnected
            if change.current == .connected {
                noteLife()
            }
        case .subscribed(let reference, let data, let members, let myID, let isResubscribe, let interruptedMs):
            try require(mirrorChannels[reference] == .subscribed, "a success comes before its state")
            try checkConfirmation(data, reference)
            let isRepeated = liveChannels.contains(reference)
            try require(!isRepeated || members != nil, "a success comes twice")
            liveChannels.insert(reference)
            let isAgain = !wasSubscribed.insert(reference).inserted
            try require(isResubscribe == isAgain, "a success does not know whether it is the first")
            let missedMs = missedSince.removeValue(forKey: reference).map { now - $0 } ?? 0
            try require(interruptedMs == missedMs, "an interruption of \(missedMs) ms is told as \(interruptedMs)")
            rosters[reference] = members?.map(\.id)
            try require(members == nil || myID == memberID, "my id is \(myID ?? "unknown")")
        case .memberAdded(let reference, let member):
            try require(liveChannels.contains(reference), "a member comes before the success")
            if rosters[reference]?.contains(member.id) == false {
                rosters[reference]?.append(member.id)
            }
        case .memberRemoved(let reference, let member):
            try require(rosters[reference]?.contains(member.id) == true, "an unknown member goes")
            rosters[reference]?.removeAll { $0 == member.id }
        case .channelEvent(let reference, let event, let data):
            try delivered(event, on: reference, data)
        case .connectionCount(let reference, _):
            try require(liveChannels.contains(reference), "a count comes before the success")
        case .subscriptionFailed(let reference, let fault, let willRetry):
            try require(!liveChannels.contains(reference), "a subscribed channel fails")
            try require(
                willRetry == fault.isRetriable, "says that it will\(willRetry ? "" : " not") retry after \(fault)")
            if let name = wanted.first(where: { $0.value == reference })?.key, fault.field == "answer_timeout_ms" {
                let waited = asked[name].map { now - $0 } ?? 0
                try require(waited >= configuration.answerTimeoutMs, "gives up on \(name) after \(waited) ms")
            }
        case .completed(let operation, _, _, _):
            try require(openOperations.remove(operation) != nil, "operation \(operation) ends twice")
        case .error(let fault):
            if fault.status == BIRD_ERR_SERVER, fault.code != 4301, fault.code != 4302 {
                errorsHeard += 1
            }
        case .connectionLost:
            try require(!world.isSettled, "loses a connection on which nothing is wrong")
        case .connectingIn(let plan):
            try require(mirrorState == .unavailable && plan.delayMs >= 0, "announces an attempt that is not planned")
            try require(plan.attempt == attempts + 1, "announces attempt \(plan.attempt), \(attempts) have been")
            try require(plan.policy == configuration.reconnect, "announces \(String(describing: plan.policy))")
            plannedFor = now + plan.delayMs
        case .watchlist:
            try require(false, "tells of a watchlist that no edge sent")
        case .decryptionFailed(let reference, let channel, let event, let fault):
            try require(wanted[channel] == reference && fault.status == BIRD_ERR_DECRYPTION, "reports \(channel)")
            try require(!world.isSettled, "does not open \(event) of \(channel)")
            try told(event, on: reference)
        case .signedIn, .signinFailed:
            break
        }
    }

    /// Counts attempts as an application would.
    private func follow(_ change: StateChange) throws {
        switch change.current {
        case .connecting:
            attempts += 1
            plannedInVain += isOwnCall ? 0 : 1
        case .connected:
            attempts = 0
            plannedInVain = 0
        case .disconnected where change.reason == BIRD_ERR_GAVE_UP:
            let limit = configuration.reconnectAttemptsMax
            try require(limit > 0 && plannedInVain >= limit, "gives up after \(plannedInVain) attempts of \(limit)")
        case .initialized, .unavailable, .disconnected, .failed:
            break
        }
        try require(change.attempt == attempts, "says attempt \(change.attempt), it is \(attempts)")
    }

    /// The confirmation of a subscription that has been left since is none. Once there was an error, which may
    /// have been an answer, nobody can count them.
    private func checkConfirmation(_ data: InboundMessage.Data, _ reference: ChannelReference) throws {
        guard case .string(let bytes) = data,
            let frame = JSONDocument.parse(bytes)?["frame"]?.numberText.flatMap({ Int($0) }),
            let name = wanted.first(where: { $0.value == reference })?.key, let frames = subscribeFrames[name],
            frame <= frames
        else { throw failure("is told of a success that no frame asked for") }
        let left = leftFrames[name] ?? (0, 0)
        try require(
            frame > left.count || errorsHeard > left.errorsHeard,
            "credits frame \(frame) for \(name), which it has left since")
    }

    private func delivered(_ event: String, on reference: ChannelReference, _ data: InboundMessage.Data) throws {
        try require(liveChannels.contains(reference), "\(event) comes before the success or after the end")
        let isSealed = event.hasPrefix(Self.sealedPrefix)
        if isSealed {
            try require(Self.sealedPrefix + text(data) == event, "opens \(event) wrongly")
            try told(event, on: reference)
        }
        guard event == "tick" || isSealed, case .string(let bytes) = data,
            let sequence = Int(String(decoding: bytes, as: UTF8.self))
        else { return }
        try require(sequence > lastSequence[reference] ?? 0, "tick \(sequence) comes twice or out of order")
        lastSequence[reference] = sequence
    }

    /// The program hears of every sealed event, once, and in order.
    private func told(_ event: String, on reference: ChannelReference) throws {
        let waiting = sealed[reference] ?? []
        try require(waiting.first?.name == event, "tells \(event), and not the first of \(waiting)")
        sealed[reference]?.removeFirst()
    }

    private func text(_ data: InboundMessage.Data) -> String {
        if case .string(let bytes) = data { String(decoding: bytes, as: UTF8.self) } else { "" }
    }

    // MARK: - What always holds

    private func checkAlways() throws {
        try require(session.state == mirrorState, "the mirror says \(mirrorState), the session \(session.state)")
        try require(session.memberID == mirrorIdentity, "the mirror has another identity")
        let hasTransport = mirrorState == .connecting || mirrorState == .connected
        try require(
            hasTransport == (transport != nil), "is \(mirrorState) with transport \(String(describing: transport))")
        try require(openReconnect == nil || mirrorState == .unavailable, "waits for leave that nobody needs")
        try require(mirrorState != .unavailable || session.nextDeadline != nil, "plans nothing")
        try require((mirrorState == .connected) == !session.connectionID.isEmpty, "has a wrong connection id")
        for slot in session.channels.allSlots where session.channels.isUsed(slot) {
            let channel = session.channels[slot]
            try require(
                mirrorChannels[channel.reference] == channel.state,
                "the mirror of \(channel.name) says \(String(describing: mirrorChannels[channel.reference]))")
            let isQueued = channel.admission.phase == .queued || session[.key(slot)].phase == .queued
            try require(
                !isQueued || openQuestions.count == configuration.authorizationsInFlightMax,
                "\(channel.name) waits though an authorizer could be asked")
            let routed = route(channel.name)
            try require((routed == channel.reference) == channel.isSubscribed, "\(channel.name) is routed wrongly")
        }
        for (reference, waiting) in sealed {
            let oldest = waiting.first?.cameAt ?? now
            try require(now <= oldest + configuration.authTimeoutMs, "keeps \(waiting) of \(reference) waiting")
        }
        try require(
            mirrorState != .connecting || now <= attemptBegan + configuration.connectTimeoutMs,
            "an attempt lasts longer than its deadline")
        let intervalMs = min(Int64(ModelEdge.activityTimeoutSeconds) * 1_000, configuration.activityTimeoutMs ?? .max)
        let patienceMs = Int64(configuration.pongMissesMax) * configuration.pongTimeoutMs
        try require(
            mirrorState != .connected || now <= max(lastSignOfLife + intervalMs, optionsChanged) + patienceMs,
            "a silent connection is kept")
        try require(
            mirrorState != .unavailable || configuration.reconnectAttemptsMax == 0
                || plannedInVain < configuration.reconnectAttemptsMax, "goes on though it should give up")
    }

    private func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        guard !condition else { return }
        throw failure(message())
    }

    private func failure(_ message: String) -> SimulationFailure {
        world.failure(of: self, message)
    }
}
