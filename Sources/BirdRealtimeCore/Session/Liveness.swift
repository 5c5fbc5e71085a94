/// Which ping of a connection it is: they are numbered from 1 in the order in which they are sent.
struct PingNumber: Comparable, Sendable {
    fileprivate var number: UInt64

    static let none = PingNumber(number: 0)

    static func < (left: PingNumber, right: PingNumber) -> Bool { left.number < right.number }
}

/// Decides when to ping and when a silent connection is dead (Bird protocol 6). Inbound bytes only leave two notes here;
/// the deadline moves when it comes.
///
/// Pings and pongs are messages of the protocol, so that a pong proves that the edge works on messages and has worked on those before
/// the ping. They carry no content: the edge answers in order, and they are counted. A pong that an edge leaves out makes later ones count
/// for earlier pings, never the other way round; one that nobody asked for counts for nothing unless a ping waits for its pong.
struct Liveness: Sendable {
    enum Verdict {
        case nothing
        case ping
        case dead
    }

    private(set) var isWatching = false
    private(set) var due = Instant(milliseconds: 0)
    /// What was read last came not later.
    private(set) var lastInbound = Instant(milliseconds: 0)

    /// The same of bytes that nobody has read yet.
    private var lastUnread = Instant(milliseconds: 0)
    private var isPongAwaited = false
    private var hasHeard = false
    private var lastPing = Instant(milliseconds: 0)
    /// Pings in a row without an answer.
    private(set) var misses = 0
    /// The last ping of this connection, and the last one that is answered.
    private(set) var pinged = PingNumber.none
    private(set) var ponged = PingNumber.none
    private var doubt: Doubt?
    /// The last value that any handshake supplied; it outlives the connection.
    private var serverTimeoutMs: Int64?
    private var rules: Rules

    /// There is a reason to doubt the connection, until its edge has answered a ping that was sent since. Other bytes, pongs of earlier
    /// pings among them, may have been under way already, or come on a way that has become a one-way street: they only mean another ping.
    private struct Doubt: Sendable {
        /// The first ping whose pong ends it.
        let ping: PingNumber
        /// By then something must have been heard since the last ping.
        var due: Instant
        let patienceMs: Int64
    }

    /// What the program may change.
    private struct Rules: Equatable, Sendable {
        var ownTimeoutMs: Int64?
        var pongTimeoutMs: Int64
        var missesMax: Int

        init(_ configuration: SessionConfiguration, _ dialect: Dialect) {
            ownTimeoutMs =
                switch dialect.activityTimeoutRule {
                case .serverOverrides: configuration.activityTimeoutMs
                case .smallerWins: configuration.activityTimeoutMs ?? Liveness.defaultTimeoutMs
                }
            pongTimeoutMs = configuration.pongTimeoutMs
            missesMax = configuration.pongMissesMax
        }
    }

    private static let defaultTimeoutMs: Int64 = 120_000
    private static let serverTimeoutMinMs: Int64 = 1_000
    private static let serverTimeoutMaxMs: Int64 = 86_400_000

    init(_ configuration: SessionConfiguration, _ dialect: Dialect) {
        rules = Rules(configuration, dialect)
    }

    /// What has changed holds for the silence and the ping of now too: `due` comes at once.
    mutating func configure(_ configuration: SessionConfiguration, _ dialect: Dialect, _ now: Instant) {
        let changed = Rules(configuration, dialect)
        guard changed != rules else { return }
        rules = changed
        due = now
    }

    /// The program's own value counts only if it set one, and only if it is smaller than the server's.
    var activityTimeoutMs: Int64 {
        switch (serverTimeoutMs, rules.ownTimeoutMs) {
        case (let server?, let own?): min(server, own)
        case (let server?, nil): server
        case (nil, let own?): own
        case (nil, nil): Self.defaultTimeoutMs
        }
    }

    mutating func note(_ now: Instant) {
        lastInbound = now
        hasHeard = true
    }

    /// Bytes wait unread while the program is slow: the edge lives, but pings still go out at each interval.
    mutating func noteUnread() {
        lastUnread = max(lastInbound, lastPing)
        hasHeard = true
    }

    /// The first handshake of a connection.
    mutating func begin(serverTimeoutMs: Int64?, _ now: Instant) {
        take(serverTimeoutMs)
        note(now)
        isWatching = true
        isPongAwaited = false
        doubt = nil
        pinged = .none
        ponged = .none
        due = now + activityTimeoutMs
    }

    /// A handshake on a connection that has had one. It may have lain unread for long, and says nothing of the edge of now: only its timeout
    /// counts, and `due` comes at once.
    mutating func handshakeRepeated(serverTimeoutMs: Int64?, _ now: Instant) {
        take(serverTimeoutMs)
        due = now
    }

    private mutating func take(_ serverTimeoutMs: Int64?) {
        guard let ms = serverTimeoutMs else { return }
        self.serverTimeoutMs = min(max(ms, Self.serverTimeoutMinMs), Self.serverTimeoutMaxMs)
    }

    // MARK: - Pings and pongs

    /// A ping is sent. Whether its pong comes in time is only of interest if `check` or `doubt` asked for it: others may be sent at any
    /// time, and change no deadline.
    mutating func pingIsSent() -> PingNumber {
        pinged.number += 1
        return pinged
    }

    /// Gives the ping that it answers; nil: no ping waits for one.
    @discardableResult
    mutating func pongCame() -> PingNumber? {
        guard ponged < pinged else { return nil }
        ponged.number += 1
        if let doubt, isAnswered(doubt.ping) { self.doubt = nil }
        return ponged
    }

    /// Its pong has come, or that of a later ping. Only of pings of the present connection.
    func isAnswered(_ ping: PingNumber) -> Bool { ping <= ponged }

    /// Every ping has its pong.
    var isEveryPingAnswered: Bool { pinged == ponged }

    mutating func stop() {
        isWatching = false
    }

    /// The next check would find as many pings unanswered as the program allows.
    func isDead(_ now: Instant) -> Bool {
        isWatching && isUnanswered && pongDue <= now && (isInDoubt || misses + 1 >= rules.missesMax)
    }

    /// An edge is dead `activityTimeoutMs` and so many times `pongTimeoutMs` as pings may be missed after its last byte.
    mutating func check(_ now: Instant) -> Verdict {
        guard isWatching, due <= now else { return .nothing }
        if isDead(now) { return .dead }
        if isUnanswered {
            guard pongDue <= now else {
                due = nextLook(now)
                return .nothing
            }
            misses += 1
        } else if let patienceMs = doubt?.patienceMs {
            guard pongDue <= now else {
                due = nextLook(now)
                return .nothing
            }
            misses = 0
            doubt?.due = now + patienceMs
        } else {
            misses = 0
            isPongAwaited = false
            due = max(lastInbound, lastUnread) + activityTimeoutMs
            guard due <= now else { return .nothing }
        }
        awaitPong(now)
        return .ping
    }

    private mutating func awaitPong(_ now: Instant) {
        isPongAwaited = true
        hasHeard = false
        lastPing = now
        due = nextLook(now)
    }

    /// There is a reason to doubt the connection, and `ping` has been sent to see: unless something is heard within `patienceMs`, the
    /// connection is dead. A ping that waits for its answer keeps its deadline, unless that passed while the machine was suspended.
    mutating func beginDoubt(_ ping: PingNumber, _ now: Instant, withinMs patienceMs: Int64) {
        guard isWatching else { return }
        let isWaiting = isUnanswered && now < pongDue
        let earlier = isWaiting ? doubt?.due : nil
        doubt = Doubt(ping: ping, due: min(earlier ?? .distantFuture, now + patienceMs), patienceMs: patienceMs)
        if isWaiting {
            due = min(due, pongDue)
        } else {
            awaitPong(now)
        }
    }

    var isInDoubt: Bool { doubt != nil }
    /// How long the last ping may go unanswered.
    var pongPatienceMs: Int64 { pongDue - lastPing }

    private var isUnanswered: Bool { isPongAwaited && !hasHeard }
    private var pongDue: Instant { min(lastPing + rules.pongTimeoutMs, doubt?.due ?? .distantFuture) }

    /// At the earliest moment at which an answer to the last ping could make the next one due.
    private func nextLook(_ now: Instant) -> Instant { min(now + activityTimeoutMs, pongDue) }
}
