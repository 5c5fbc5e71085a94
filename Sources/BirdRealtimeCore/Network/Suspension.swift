/// Notices that the machine was suspended: a clock that goes on meanwhile (CLOCK_BOOTTIME) is further ahead of one that stands still
/// (CLOCK_MONOTONIC) than before.
struct Suspension: Sendable {
    /// Shorter ones do no harm to a connection.
    private static let suspendMsMin: Int64 = 1_000

    /// The most that the one was ahead. A thread that is not run between its two looks at the clocks sees less than that, never more.
    private var aheadMs: Int64?

    /// True once after each suspend. `running` must have been looked at before `standing`.
    mutating func hasEnded(_ running: Instant, _ standing: Instant) -> Bool {
        let nowMs = running - standing
        guard let before = aheadMs else {
            aheadMs = nowMs
            return false
        }
        aheadMs = max(before, nowMs)
        return nowMs - before >= Self.suspendMsMin
    }
}
