@testable import BirdRealtimeCore

/// A session with the application above it and the runtime around it. It performs effects as the runtime does and checks
/// after every step what must always hold.
final class SimulatedClient {
    static let memberChannel = ChannelReference(bits: 1 << 40)

    let number: Int
    let memberID: String
    let dialect: Dialect
    unowned let world: World
    var session: Session
    var configuration: SessionConfiguration
    private var random: SplitMix64
    var clock = Clock()
    var program: Program
    var told = Told()
    var attempts = Attempts()
    var confirmations = Confirmations()
    var sealed = Sealed()

    var transport: TransportID?
    var lastTransport: UInt64 = 0
    var pastTransports: [TransportID] = []
    /// nil: no stream yet.
    var socket: Socket?
    /// When the last subscribe of each channel was written.
    var asked: [String: Int64] = [:]

    var openQuestions: Set<QuestionID> = []
    var isUnsubscribing = false
    var lastHeard: Int64 = 0
    var silence = Silence()
    var setbacks = Setbacks()
    /// When the edge last gave the connection another id.
    var newIDAt: Int64?
    /// What the session is handling.
    var input = SessionInput.timer
    var lastChange: StateChange?
    var pongsSent = 0
    /// Unsubscribe frames that followed a call at once.
    var leaves = 0
    /// When the edge last reported an error, and when one that could be the answer to one question alone.
    var lastError = Int64.min
    var lastBlamableError = Int64.min
    /// The edge has sent a pong, or a success of a signin, that nobody had asked for: it counts for what it does not answer.
    var isMisled = false
    var hasHeardPong = false
    /// A success has come behind the pong of a later ping: the edge does not answer in order.
    var hasSeenDisorder = false
    /// What the watchlist frame that is being handled says.
    var watchlist: [String] = []

    init(number: Int, world: World) {
        self.number = number
        self.world = world
        dialect = number % 4 == 3 ? .pusher : .bird
        memberID = number % 3 == 0 ? "\(number % 4)" : "m_\(number % 4)"
        program = Program(number: number)
        random = SplitMix64(seed: world.seed &* 31 &+ UInt64(number))
        var configuration = SessionConfiguration()
        configuration.hasChannelAuthorizer = true
        configuration.hasMemberAuthorizer = true
        configuration.backoffMaxMs = Bool.random(using: &random) ? 30_000 : 3_000
        configuration.authorizationsInFlightMax = Bool.random(using: &random) ? 8 : 2
        configuration.asksBeforeReconnect = Int.random(in: 0..<3, using: &random) == 0
        configuration.reconnect = ReconnectPolicy.allCases.randomElement(using: &random) ?? .jitter
        self.configuration = configuration
        session = Session(
            configuration: configuration, dialect: dialect, memberChannel: Self.memberChannel, seed: world.seed)
    }

    var state: ConnectionState { session.state }
    var now: Int64 { world.now + clock.offset }
    var frozenUntil: Int64 { clock.frozenUntil }

    func memberData(idKey: String) -> String {
        let id = Int(memberID) == nil ? "\"\(memberID)\"" : memberID
        return #"{"\#(idKey)":\#(id),"\#(dialect.memberInfoKey)":{"of":"\#(memberID)"}}"#
    }

    // MARK: - The session

    func handle(_ input: SessionInput) throws {
        var effects: [SessionEffect] = []
        self.input = input
        if case .network(let hint, _) = input, hint != .up, state == .connected { silence.doubt(now) }
        session.handle(input, now: Instant(milliseconds: now), random: &random, into: &effects)
        world.note(number, "< \(SessionDriver.line(input))")
        for effect in effects {
            world.note(number, "  > \(SessionDriver.line(effect))")
            try perform(effect)
        }
        try checkAlways()
        try write()
        if socket?.isPaused == true, !session.isStalled, !session.isHoldFull { resumeReading() }
        updateTimer()
    }

    func expectNothing(of input: SessionInput) throws {
        var effects: [SessionEffect] = []
        session.handle(input, now: Instant(milliseconds: now), random: &random, into: &effects)
        try require(effects.isEmpty, "heard from the past: \(effects.map(SessionDriver.line))")
        updateTimer()
    }

    /// Something of the process is about to run.
    func wake() throws {
        if clock.hasResumed(now) { try handle(.network(.resumed, spreadMs: 0)) }
    }

    func timerFired() throws {
        try wake()
        try watchWhilePaused()
        try handle(.timer)
    }

    func updateTimer() {
        let due = session.nextDeadline.map { max($0.milliseconds - clock.offset, world.now, frozenUntil) }
        world.setTimer(of: self, due)
    }
}
