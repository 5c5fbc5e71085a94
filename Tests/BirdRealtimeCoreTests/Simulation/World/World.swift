@testable import BirdRealtimeCore

/// Many sessions, an edge, authorizers and the network between them on one virtual clock. Everything that happens follows
/// from the seed. While the world is chaotic, everything that can go wrong does; once it has healed, nothing does.
final class World {
    static let sessionsMax = 50
    static let chaosMs: Int64 = 120_000
    /// A dead link is noticed (activity 20 s and pongs 30 s), redialled (flap guard and backoff 30 s), channels are authorized
    /// (Retry-After and backoff 90 s, 10 s for an answer that never comes) and subscribed (30 s for one that never comes, twice).
    static let healingMs: Int64 = 360_000
    private static let stepsAtOneTimeMax = 10_000
    private static let traceLinesMax = 20_000
    /// Of a failure.
    private static let linesToldMax = 150

    let seed: UInt64
    private(set) var now: Int64 = 1_000_000
    private(set) var isChaotic = true
    /// Whatever was broken when the world healed has been replaced: from here on nothing breaks.
    private(set) var isSettled = false
    /// Which master key the publisher and the authorizer have.
    private(set) var keyGeneration = 0
    private(set) var steps = 0
    var random: SplitMix64
    var figures = Figures()
    private(set) var clients: [SimulatedClient] = []
    private(set) lazy var edge = ModelEdge(world: self)
    private let temper: Temper
    private var agenda = Agenda<Action>()
    /// When the timer of each client is due, in world time.
    private var timers: [Int64] = []
    /// nil: nothing is written down.
    private var trace: [(client: Int?, line: String)]?

    init(seed: UInt64, traces: Bool = false) {
        self.seed = seed
        random = SplitMix64(seed: seed)
        temper = Temper(&random)
        trace = traces ? [] : nil
        // Most worlds are small, so that each client meets more.
        let most = pick([4, 4, 8, 8, 16, Self.sessionsMax]) ?? 1
        for number in 0..<Int.random(in: 1...most, using: &random) {
            timers.append(.max)
            let client = SimulatedClient(number: number, world: self)
            clients.append(client)
            schedule(.applicationCall(client), in: 0...2_000)
            schedule(.mishap(client), in: 0...8_000)
        }
        figures.worlds = 1
        figures.sessions = clients.count
        schedule(.publish, in: 0...100)
    }

    // MARK: - Running

    /// Chaos, healing, and the end of all clients. `stepsMax` ends the run early, to look at what happened up to there.
    func run(stepsMax: Int) -> SimulationFailure? {
        defer {
            figures.steps = steps
            figures.virtualMs = now
        }
        var client = 0
        do {
            try live(stepsMax, &client)
            return nil
        } catch {
            return failure(of: client, (error as? Wrong)?.message ?? "\(error)")
        }
    }

    /// `number`: the client that something happens to.
    private func live(_ stepsMax: Int, _ number: inout Int) throws {
        let healed = now + Self.chaosMs
        try run(until: healed, stepsMax, &number)
        isChaotic = false
        note(nil, "the world heals")
        edge.heal()
        clients.forEach { schedule(.heal($0), at: now) }
        // Whatever an application had to hear of has been heard: it asks once more for what was refused by mistake.
        try run(until: healed + Self.healingMs / 2, stepsMax, &number)
        isSettled = true
        note(nil, "the world has settled")
        try forEach(&number) { try $0.askAgain() }
        try run(until: healed + Self.healingMs, stepsMax, &number)
        guard steps < stepsMax else { return }
        try forEach(&number) { try $0.checkConverged(edge) }
        try forEach(&number) { try $0.finish() }
        try run(until: now + 10_000, stepsMax, &number)
        try forEach(&number) { try $0.checkFinished(edge) }
        try Waits.checkSpread(clients.map(\.attempts.waits))
    }

    private func forEach(_ number: inout Int, _ body: (SimulatedClient) throws -> Void) throws {
        for client in clients {
            number = client.number
            try body(client)
        }
    }

    private func run(until end: Int64, _ stepsMax: Int, _ number: inout Int) throws {
        var stepsAtThisTime = 0
        while steps < stepsMax {
            let (timer, due) = firstTimer()
            // Sockets are read before timers are served.
            if let next = agenda.firstTime, next <= min(end, due) {
                now = max(now, next)
                guard let action = agenda.popFirst() else { return }
                steps += 1
                number = action.client?.number ?? 0
                try perform(action)
            } else if due <= end {
                number = timer
                stepsAtThisTime = due > now ? 0 : stepsAtThisTime + 1
                try require(stepsAtThisTime < Self.stepsAtOneTimeMax, "has deadlines without end")
                now = max(now, due)
                steps += 1
                try clients[timer].timerFired()
            } else {
                now = end
                return
            }
        }
    }

    private func firstTimer() -> (Int, Int64) {
        var first = 0
        for number in timers.indices where timers[number] < timers[first] { first = number }
        return (first, timers[first])
    }

    func setTimer(of client: SimulatedClient, _ due: Int64?) {
        timers[client.number] = due ?? .max
    }

    // MARK: - Keys

    func masterKey(_ generation: Int) -> [UInt8] { (0..<32).map { UInt8(truncatingIfNeeded: generation * 37 + $0) } }

    func rotateKeys() {
        keyGeneration += 1
        note(nil, "the master key is number \(keyGeneration) now")
    }

    // MARK: - Time and chance

    func schedule(_ action: Action, in delay: ClosedRange<Int64>) {
        schedule(action, at: now + Int64.random(in: delay, using: &random))
    }

    func schedule(_ action: Action, at time: Int64) {
        agenda.add(action, at: time)
    }

    /// Whether a fault happens to this client, now that it could.
    func strikes(_ kind: FaultKind, _ client: SimulatedClient) -> Bool {
        guard isChaotic, temper.strikes(kind, &random) else { return false }
        figures.count(kind, in: client.state)
        note(client.number, "! \(kind)")
        return true
    }

    /// True once in so many times, while the world is chaotic.
    func happens(onceIn times: Int) -> Bool {
        isChaotic && Int.random(in: 0..<times, using: &random) == 0
    }

    func pick<Element>(_ elements: [Element]) -> Element? {
        elements.randomElement(using: &random)
    }

    // MARK: - Trace

    func note(_ client: Int?, _ line: @autoclosure () -> String) {
        guard trace != nil else { return }
        if let count = trace?.count, count >= Self.traceLinesMax { trace?.removeFirst(count / 2) }
        trace?.append((client, "\(steps)\t\(now) ms\t\(line())"))
    }

    /// All that happened to anybody.
    var traceText: String {
        (trace ?? []).map { "client \($0.client.map(String.init) ?? "-")\t\($0.line)" }.joined(separator: "\n")
    }

    /// The last of what happened to this client.
    func trace(of number: Int) -> [String] {
        (trace ?? []).filter { $0.client == number || $0.client == nil }.suffix(Self.linesToldMax).map(\.line)
    }

    private func failure(of number: Int, _ message: String) -> SimulationFailure {
        SimulationFailure(
            seed: seed, step: steps, now: now, client: number, message: message, trace: trace(of: number))
    }
}
