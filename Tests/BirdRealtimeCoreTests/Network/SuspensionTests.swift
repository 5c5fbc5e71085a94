import Testing

@testable import BirdRealtimeCore

@Suite struct SuspensionTests {
    /// Pairs of clocks: one that goes on while the machine is suspended, and one that does not.
    private final class Clocks {
        var suspension = Suspension()
        var running: Int64 = 5_000_000
        var standing: Int64 = 4_000_000

        func hasEnded(afterMs ms: Int64 = 10, suspendedMs: Int64 = 0, lateMs: Int64 = 0) -> Bool {
            running += ms + suspendedMs
            standing += ms
            let isOver = suspension.hasEnded(
                Instant(milliseconds: running), Instant(milliseconds: standing + lateMs))
            running += lateMs
            standing += lateMs
            return isOver
        }
    }

    @Test func aSuspendIsNoticedOnce() {
        let clocks = Clocks()
        #expect(!clocks.hasEnded(), "how far apart they were before says nothing")
        for _ in 0..<100 { #expect(!clocks.hasEnded(afterMs: 60_000)) }
        #expect(clocks.hasEnded(suspendedMs: 3_600_000))
        for _ in 0..<100 { #expect(!clocks.hasEnded()) }
        #expect(clocks.hasEnded(suspendedMs: 1_000))
    }

    @Test func rounding() {
        let clocks = Clocks()
        for step in 0..<1_000 { #expect(!clocks.hasEnded(suspendedMs: step % 2 == 0 ? 1 : -1)) }
    }

    @Test func shortOnesDoNoHarm() {
        let clocks = Clocks()
        _ = clocks.hasEnded()
        #expect(!clocks.hasEnded(suspendedMs: 999))
    }

    @Test func aThreadThatWaitsBetweenItsTwoLooksIsNone() {
        let clocks = Clocks()
        _ = clocks.hasEnded()
        #expect(!clocks.hasEnded(lateMs: 20_000))
        #expect(!clocks.hasEnded())
        #expect(clocks.hasEnded(suspendedMs: 60_000, lateMs: 900))
        #expect(!clocks.hasEnded(), "not a second time when the looks are close again")
    }
}
