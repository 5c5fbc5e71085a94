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
    private(set) var lastInbound = Instant(milliseconds: 0)

    private var isPongAwaited = false
    private var hasHeard = false
    private var lastPing = Instant(milliseconds: 0)
    private var pongDue = Instant(milliseconds: 0)
    /// The last value that any handshake supplied; it outlives the connection.
    private var serverTimeoutMs: Int64?
    private let ownTimeoutMs: Int64?
    private let pongTimeoutMs: Int64

    private static let defaultTimeoutMs: Int64 = 120_000
    private static let serverTimeoutMinMs: Int64 = 1_000
    private static let serverTimeoutMaxMs: Int64 = 86_400_000

    init(_ configuration: SessionConfiguration, _ dialect: Dialect) {
        ownTimeoutMs =
            switch dialect.activityTimeoutRule {
            case .serverOverrides: configuration.activityTimeoutMs
            case .smallerWins: configuration.activityTimeoutMs ?? Self.defaultTimeoutMs
            }
        pongTimeoutMs = configuration.pongTimeoutMs
    }

    /// The program's own value counts only if it set one, and only if it is smaller than the server's.
    var activityTimeoutMs: Int64 {
        switch (serverTimeoutMs, ownTimeoutMs) {
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
        lastInbound = max(lastInbound, lastPing)
        hasHeard = true
    }

    mutating func handshakeCame(serverTimeoutMs ms: Int64?, _ now: Instant) {
        if let ms {
            serverTimeoutMs = min(max(ms, Self.serverTimeoutMinMs), Self.serverTimeoutMaxMs)
        }
        note(now)
        isWatching = true
        isPongAwaited = false
        due = now + activityTimeoutMs
    }

    mutating func stop() {
        isWatching = false
    }

    /// A ping was not answered in time.
    func isDead(_ now: Instant) -> Bool {
        isWatching && isPongAwaited && !hasHeard && pongDue <= now
    }

    mutating func check(_ now: Instant) -> Verdict {
        guard isWatching, due <= now else { return .nothing }
        if isDead(now) { return .dead }
        if isPongAwaited, !hasHeard {
            due = pongDue
            return .nothing
        }
        isPongAwaited = false
        due = lastInbound + activityTimeoutMs
        guard due <= now else { return .nothing }
        isPongAwaited = true
        hasHeard = false
        lastPing = now
        pongDue = now + pongTimeoutMs
        // Looks at the earliest moment at which an answer to this ping could make the next one due.
        due = min(now + activityTimeoutMs, pongDue)
        return .ping
    }
}
