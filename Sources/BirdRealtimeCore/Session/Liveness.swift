/// Decides when to ping and when a silent connection is dead (Bird protocol 6). Inbound bytes only leave two notes here;
/// the deadline moves when it comes.
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
    private var doubt: Doubt?
    /// The last value that any handshake supplied; it outlives the connection.
    private var serverTimeoutMs: Int64?
    private var rules: Rules

    /// There is a reason to doubt the connection, until its edge has answered a ping. Other bytes may have been under way already, or
    /// come on a way that has become a one-way street: they only mean another ping.
    private struct Doubt: Sendable {
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

    mutating func handshakeCame(serverTimeoutMs ms: Int64?, _ now: Instant) {
        if let ms {
            serverTimeoutMs = min(max(ms, Self.serverTimeoutMinMs), Self.serverTimeoutMaxMs)
        }
        note(now)
        isWatching = true
        isPongAwaited = false
        doubt = nil
        due = now + activityTimeoutMs
    }

    mutating func pongCame() {
        doubt = nil
    }

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
        pinged(now)
        return .ping
    }

    private mutating func pinged(_ now: Instant) {
        isPongAwaited = true
        hasHeard = false
        lastPing = now
        due = nextLook(now)
    }

    /// There is a reason to doubt the connection: unless something is heard within `patienceMs`, it is dead. True: a ping must be sent,
    /// since none waits for its answer, or only one whose time ran out while the machine was suspended.
    mutating func checkNow(_ now: Instant, withinMs patienceMs: Int64) -> Bool {
        guard isWatching else { return false }
        let isWaiting = isUnanswered && now < pongDue
        let earlier = isWaiting ? doubt?.due : nil
        doubt = Doubt(due: min(earlier ?? .distantFuture, now + patienceMs), patienceMs: patienceMs)
        if isWaiting {
            due = min(due, pongDue)
        } else {
            pinged(now)
        }
        return !isWaiting
    }

    var isInDoubt: Bool { doubt != nil }
    /// How long the last ping may go unanswered.
    var pongPatienceMs: Int64 { pongDue - lastPing }

    private var isUnanswered: Bool { isPongAwaited && !hasHeard }
    private var pongDue: Instant { min(lastPing + rules.pongTimeoutMs, doubt?.due ?? .distantFuture) }

    /// At the earliest moment at which an answer to the last ping could make the next one due.
    private func nextLook(_ now: Instant) -> Instant { min(now + activityTimeoutMs, pongDue) }
}
