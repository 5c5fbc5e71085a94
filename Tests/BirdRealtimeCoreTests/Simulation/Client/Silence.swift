@testable import BirdRealtimeCore

/// When a connection on which nothing is heard is given up. Times are those of the client's clock.
struct Silence {
    /// From a hint to the check.
    private static let checkMsMax: Int64 = 1_000
    /// From the check to the end.
    private static let doubtMsMax: Int64 = 5_000

    private(set) var lastSignOfLife: Int64 = 0
    private(set) var optionsChanged: Int64 = 0
    /// Since when there is a reason to doubt the connection, and nothing was heard.
    private var doubted: Int64?
    private var lastDoubt = Int64.min / 2
    /// When a ping was answered, or the connection began: that ends a doubt, other bytes do not.
    private var lastAnswer: Int64 = 0

    mutating func heard(_ now: Int64) {
        lastSignOfLife = now
        doubted = nil
    }

    mutating func answered(_ now: Int64) { lastAnswer = now }

    mutating func changed(_ now: Int64) { optionsChanged = now }

    mutating func doubt(_ now: Int64) {
        doubted = doubted ?? now
        lastDoubt = now
    }

    /// Nobody could notice before.
    mutating func excuse(until now: Int64) {
        lastSignOfLife = max(lastSignOfLife, now)
        optionsChanged = max(optionsChanged, now)
        doubted = doubted.map { max($0, now) }
    }

    /// The connection is still there.
    func checkKept(_ now: Int64, intervalMs: Int64, _ configuration: SessionConfiguration) throws {
        let patienceMs = Int64(configuration.pongMissesMax) * configuration.pongTimeoutMs
        try require(
            now <= max(lastSignOfLife + intervalMs, optionsChanged) + patienceMs, "a silent connection is kept")
        try require(now <= (doubted ?? now) + Self.checkMsMax + Self.doubtMsMax, "a doubted connection is kept")
    }

    /// The connection is given up for its silence.
    func checkGivenUp(_ now: Int64, _ configuration: SessionConfiguration) throws {
        guard optionsChanged < lastSignOfLife else { return }
        let isInDoubt = lastDoubt + Self.checkMsMax >= lastAnswer
        let patienceMs =
            isInDoubt
            ? min(Self.doubtMsMax, configuration.pongTimeoutMs)
            : Int64(configuration.pongMissesMax) * configuration.pongTimeoutMs
        try require(
            now - lastSignOfLife >= patienceMs, "gives a connection up after \(now - lastSignOfLife) ms of silence")
    }
}
