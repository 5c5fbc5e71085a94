@testable import BirdRealtimeCore

/// A machine's clock, which is ahead of the world's by what it has jumped, and what its process does with it.
struct Clock {
    private(set) var offset: Int64 = 0
    /// How long the machine was suspended, which the clock that stands still meanwhile does not know.
    private var suspendedMs: Int64 = 0
    private var suspension = Suspension()
    /// In world time: nothing of the process runs before.
    private(set) var frozenUntil: Int64 = 0

    mutating func jump(_ ms: Int64) {
        offset += ms
    }

    mutating func suspend(_ ms: Int64, from worldNow: Int64) {
        suspendedMs += ms
        freeze(ms, from: worldNow)
    }

    /// The process is stopped.
    mutating func freeze(_ ms: Int64, from worldNow: Int64) {
        frozenUntil = max(frozenUntil, worldNow + ms)
    }

    /// The process looks at both clocks.
    mutating func hasResumed(_ now: Int64) -> Bool {
        suspension.hasEnded(Instant(milliseconds: now), Instant(milliseconds: now - suspendedMs))
    }
}
