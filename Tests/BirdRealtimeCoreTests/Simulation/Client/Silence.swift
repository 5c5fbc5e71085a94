@testable import BirdRealtimeCore

/// When a connection on which nothing is heard is given up. Times are those of the client's clock.
///
/// The edge writes into each pong which ping it answers, which the session does not look at: pings and pongs have no content, and it can
/// only count them. It may be mistaken for the better after a pong that nobody asked for, and then is excused; where an edge has left out
/// pongs it takes later ones for those of earlier pings, and doubts longer than it has to.
struct Silence {
    /// From a hint to the check.
    private static let checkMsMax: Int64 = 1_000
    /// From a ping to the end, or to the next ping if anything was heard.
    private static let doubtMsMax: Int64 = 5_000

    /// A reason to doubt the connection that the edge has not dispelled.
    private struct Doubt {
        var since: Int64
        /// The first ping sent since.
        var ping: Int?
    }

    private(set) var lastSignOfLife: Int64 = 0
    private(set) var optionsChanged: Int64 = 0
    /// Since when there is a reason to doubt the connection, and nothing was heard.
    private var doubted: Int64?
    private var doubt: Doubt?

    // How the session may count.
    private(set) var pings = 0
    private(set) var pongs = 0
    /// Pongs that nobody asked for were counted, and the last ping has no pong of its own yet.
    private var isCountOff = false
    /// One of these pings is the session's own reason to have less patience.
    private var lastDoubt = Int64.min / 2
    private var lastPingInDoubt = 0

    mutating func connectionBegan() {
        (doubted, doubt) = (nil, nil)
        (pings, pongs, isCountOff) = (0, 0, false)
        (lastDoubt, lastPingInDoubt) = (.min / 2, 0)
    }

    mutating func heard(_ now: Int64) {
        lastSignOfLife = now
        doubted = nil
    }

    mutating func changed(_ now: Int64) { optionsChanged = now }

    mutating func doubt(_ now: Int64) {
        doubted = doubted ?? now
        doubt = Doubt(since: now)
        lastDoubt = now
    }

    mutating func pinged(_ now: Int64) {
        pings += 1
        if let doubt, doubt.ping == nil { self.doubt?.ping = pings }
        if now <= lastDoubt + Self.checkMsMax { lastPingInDoubt = pings }
    }

    /// `ping`: the one that the edge answers; nil: none, the pong came unasked.
    mutating func ponged(_ ping: Int?) {
        if pongs < pings {
            pongs += 1
            isCountOff = isCountOff || ping == nil
        }
        // An unasked one may have been heard before the doubt, and read behind it.
        if let expected = doubt?.ping, ping ?? 0 >= expected || isCountOff && pongs >= expected {
            (doubted, doubt) = (nil, nil)
        }
        if ping == pings { isCountOff = false }
    }

    /// Nobody could notice before.
    mutating func excuse(until now: Int64) {
        lastSignOfLife = max(lastSignOfLife, now)
        optionsChanged = max(optionsChanged, now)
        doubted = doubted.map { max($0, now) }
        guard let since = doubt?.since else { return }
        doubt?.since = max(since, now)
        lastDoubt = max(lastDoubt, now)
    }

    /// The connection is still there.
    func checkKept(_ now: Int64, intervalMs: Int64, _ configuration: SessionConfiguration) throws {
        let patienceMs = Int64(configuration.pongMissesMax) * configuration.pongTimeoutMs
        try require(
            now <= max(lastSignOfLife + intervalMs, optionsChanged) + patienceMs, "a silent connection is kept")
        try require(now <= (doubted ?? now) + Self.checkMsMax + Self.doubtMsMax, "a doubted connection is kept")
        guard let doubt else { return }
        try require(
            now <= max(lastSignOfLife, doubt.since + Self.checkMsMax) + 2 * Self.doubtMsMax,
            "a doubted connection is kept, since something was heard that was not the answer")
    }

    /// The connection is given up for its silence.
    func checkGivenUp(_ now: Int64, _ configuration: SessionConfiguration) throws {
        guard optionsChanged < lastSignOfLife else { return }
        let isInDoubt = pongs < lastPingInDoubt || now <= lastDoubt + Self.checkMsMax + Self.doubtMsMax
        let patienceMs =
            isInDoubt
            ? min(Self.doubtMsMax, configuration.pongTimeoutMs)
            : Int64(configuration.pongMissesMax) * configuration.pongTimeoutMs
        try require(
            now - lastSignOfLife >= patienceMs, "gives a connection up after \(now - lastSignOfLife) ms of silence")
    }
}
