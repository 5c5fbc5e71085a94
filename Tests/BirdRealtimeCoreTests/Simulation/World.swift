import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// Many sessions, an edge, authorizers and the network between them on one virtual clock. Everything that happens follows
/// from the seed. While the world is chaotic, everything that can go wrong does; once it has healed, nothing does.
final class World {
    enum Action {
        case applicationCall(SimulatedClient)
        case fault
        case publish
        case dialed(SimulatedClient, Link)
        case writable(SimulatedClient, Link)
        case dialFailed(SimulatedClient, TransportID)
        case handshake(Link)
        case frameToEdge(Link, [UInt8])
        case frameToClient(Link, InboundMessage)
        case edgeGone(Link, TransportEnd)
        case clientGone(Link)
        case edgeWork(Link, key: String)
        case answer(SimulatedClient, QuestionID, AuthorizationAnswer)
        case decision(SimulatedClient, QuestionID, ReconnectAnswer)
    }

    private struct Scheduled {
        var time: Int64
        var number: Int
        var action: Action

        func isBefore(_ other: Scheduled) -> Bool {
            (time, number) < (other.time, other.number)
        }
    }

    static let chaosMs: Int64 = 120_000
    /// A dead link is noticed (activity 20 s and pongs 30 s), redialled (flap guard and backoff 30 s), channels are authorized
    /// (Retry-After and backoff 90 s, 10 s for an answer that never comes) and subscribed (30 s for one that never comes, twice).
    static let healingMs: Int64 = 360_000

    private(set) var now: Int64 = 1_000_000
    private(set) var isChaotic = true
    /// Whatever was broken when the world healed has been replaced: from here on nothing breaks.
    private(set) var isSettled = false
    /// Which master key the publisher and the authorizer have.
    private(set) var keyGeneration = 0
    private(set) var steps = 0
    var random: SplitMix64
    private(set) var clients: [SimulatedClient] = []
    private(set) lazy var edge = ModelEdge(world: self)
    private var actions: [Scheduled] = []
    private var actionNumber = 0
    private var trace: [(client: Int?, line: String)] = []
    private static let stepsAtOneTimeMax = 10_000
    private static let traceLinesMax = 2_000

    let seed: UInt64

    init(seed: UInt64, clients count: Int) {
        self.seed = seed
        random = SplitMix64(seed: seed)
        for number in 0..<count {
            let client = SimulatedClient(number: number, world: self)
            clients.append(client)
            schedule(.applicationCall(client), in: 0...2_000)
        }
        schedule(.fault, in: 0...5_000)
        schedule(.publish, in: 0...100)
    }

    // MARK: - Running

    /// Chaos, healing, and the end of all clients. `stepsMax` ends the run early, to look at the trace up to there.
    func run(stepsMax: Int) throws {
        let healed = now + Self.chaosMs
        try run(until: healed, stepsMax)
        isChaotic = false
        note(nil, "the world heals")
        edge.heal()
        for client in clients {
            try client.heal()
        }
        // Whatever an application had to hear of has been heard: it asks once more for what was refused by mistake.
        try run(until: healed + Self.healingMs / 2, stepsMax)
        isSettled = true
        for client in clients {
            try client.askAgain()
        }
        try run(until: healed + Self.healingMs, stepsMax)
        guard steps < stepsMax else { return }
        for client in clients {
            try client.checkConverged(edge)
        }
        for client in clients {
            try client.finish()
        }
        try run(until: now + 10_000, stepsMax)
        for client in clients {
            try client.checkFinished(edge)
        }
    }

    private func run(until end: Int64, _ stepsMax: Int) throws {
        var stepsAtThisTime = 0
        while steps < stepsMax {
            let timer = clients.compactMap { client in client.timerDue.map { (due: $0, client: client) } }
                .min { ($0.due, $0.client.number) < ($1.due, $1.client.number) }
            // Sockets are read before timers are served.
            if let next = actions.first, next.time <= min(end, timer?.due ?? end) {
                now = max(now, next.time)
                popAction()
                steps += 1
                try perform(next.action)
            } else if let timer, timer.due <= end {
                stepsAtThisTime = timer.due > now ? 0 : stepsAtThisTime + 1
                guard stepsAtThisTime < Self.stepsAtOneTimeMax else {
                    throw failure(of: timer.client, "has deadlines without end")
                }
                now = max(now, timer.due)
                steps += 1
                try timer.client.handle(.timer)
            } else {
                now = end
                return
            }
        }
    }

    private func perform(_ action: Action) throws {
        switch action {
        case .applicationCall(let client):
            guard isChaotic else { return }
            try client.callSomething()
            schedule(.applicationCall(client), in: 0...3_000)
        case .fault:
            guard isChaotic else { return }
            try edge.somethingGoesWrong()
            schedule(.fault, in: 0...800)
        case .publish:
            edge.publish()
            schedule(.publish, in: 0...(isChaotic ? 150 : 12_000))
        case .dialed(let client, let link):
            try client.dialed(link)
        case .writable(let client, let link):
            try client.writable(link)
        case .dialFailed(let client, let transport):
            try client.ended(
                transport, .failed(Fault(BIRD_ERR_CONNECT, .connection, "connection refused", isRetriable: true)))
        case .handshake(let link):
            edge.greet(link)
        case .frameToEdge(let link, let frame):
            try edge.receive(frame, from: link)
        case .frameToClient(let link, let message):
            try link.client.receive(message, from: link.transport)
        case .edgeGone(let link, let end):
            try link.client.ended(link.transport, end)
        case .clientGone(let link):
            edge.lose(link)
        case .edgeWork(let link, let key):
            try edge.work(link, key)
        case .answer(let client, let id, let answer):
            try client.answered(id, answer)
        case .decision(let client, let id, let answer):
            try client.decided(id, answer)
        }
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
        actionNumber += 1
        actions.append(Scheduled(time: time, number: actionNumber, action: action))
        var child = actions.count - 1
        while child > 0, actions[child].isBefore(actions[(child - 1) / 2]) {
            actions.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private func popAction() {
        actions.swapAt(0, actions.count - 1)
        actions.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < actions.count && actions[child].isBefore(actions[least]) {
                least = child
            }
            guard least != parent else { return }
            actions.swapAt(parent, least)
            parent = least
        }
    }

    /// True once in so many times, while the world is chaotic.
    func happens(onceIn times: Int) -> Bool {
        isChaotic && Int.random(in: 0..<times, using: &random) == 0
    }

    /// An application that is asked before a reconnect dawdles, refuses and repeats itself while the world is chaotic.
    func askApplication(_ client: SimulatedClient, _ id: QuestionID) {
        if happens(onceIn: 5) { return }
        var answer = ReconnectAnswer.proceed(delayMs: 0)
        if happens(onceIn: 3) {
            answer = .refuse("not now")
        } else if happens(onceIn: 3) {
            answer = .proceed(delayMs: Int64.random(in: 1...5_000, using: &random))
        }
        for _ in 0...(happens(onceIn: 8) ? 1 : 0) {
            schedule(.decision(client, id, answer), in: 0...(isChaotic ? 1_500 : 50))
        }
    }

    func pick<Element>(_ elements: [Element]) -> Element? {
        elements.randomElement(using: &random)
    }

    // MARK: - Trace

    func note(_ client: Int?, _ line: @autoclosure () -> String) {
        if trace.count == 2 * Self.traceLinesMax {
            trace.removeFirst(Self.traceLinesMax)
        }
        trace.append((client, "\(now) #\(steps) \(line())"))
    }

    func failure(of client: SimulatedClient, _ message: String) -> SimulationFailure {
        let lines = trace.filter { $0.client == client.number || $0.client == nil }.map(\.line)
        return SimulationFailure(
            seed: seed, step: steps, message: "client \(client.number) \(message)", trace: lines)
    }
}

struct SimulationFailure: Error, CustomStringConvertible {
    var seed: UInt64
    var step: Int
    var message: String
    var trace: [String]

    var description: String {
        """
        \(message)
        Reproduce with SEED=\(seed); STEPS=\(step) ends the run there. What happened:
        \(trace.joined(separator: "\n"))
        """
    }
}
