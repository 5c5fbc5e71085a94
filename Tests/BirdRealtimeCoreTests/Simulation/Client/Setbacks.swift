import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// What fails for a while is tried again: not too soon, not too late, and the program hears of it once, at the fourth failure of an
/// authorizer or the first silence of the edge.
struct Setbacks {
    private static let silentMax = 3
    private static let retryAfterMsMax: Int64 = 60_000
    private static let backoffMsMax: Int64 = 30_000

    private struct Row {
        var failures = 0
        var isTold = false
        /// Nobody is asked again before.
        var restsUntil = Int64.min
    }

    /// By channel; nil: the signin.
    private var rows: [String?: Row] = [:]

    /// Somebody asks anew, or the connection has gone.
    mutating func renew(_ name: String?) { rows[name] = nil }
    mutating func forgetConnection() { rows = [:] }

    /// `againInMs` nil: it is final.
    mutating func failed(_ name: String?, againInMs: Int64?, after input: SessionInput, _ now: Int64) throws {
        guard let againInMs else {
            rows[name] = nil
            return
        }
        var wishMs: Int64 = 0
        if case .authorization(_, .refused(_, let retryAfterMs?)) = input {
            wishMs = min(max(retryAfterMs, 0), Self.retryAfterMsMax)
        }
        let failures = rows[name]?.failures ?? 0
        let windowMs: Int64 = min(Self.backoffMsMax, 1_000 << Int64(min(failures, 10)))
        let allowed = wishMs...wishMs + windowMs
        try require(
            allowed.contains(againInMs),
            "tries \(name ?? "the signin") again in \(againInMs) ms, and not in \(allowed)")
        rows[name, default: Row()].failures += 1
        rows[name]?.restsUntil = now + againInMs
    }

    /// Another round of the signin does not wait for the one that has failed.
    func asked(_ name: String?, _ now: Int64) throws {
        guard let name, let row = rows[name] else { return }
        try require(now >= row.restsUntil, "asks for \(name) before it has rested")
    }

    /// The program is told, and that it will be tried again.
    mutating func told(_ name: String, _ fault: Fault) throws {
        let row = rows[name] ?? Row()
        try require(!row.isTold, "tells again that \(name) fails")
        try require(
            row.failures > Self.silentMax || fault.field == "answer_timeout_ms",
            "tells of failure \(row.failures) of \(name)")
        rows[name, default: row].isTold = true
    }

    func check() throws {
        for (name, row) in rows {
            guard let name else { continue }
            try require(row.failures <= Self.silentMax || row.isTold, "does not tell that \(name) fails")
        }
    }
}
