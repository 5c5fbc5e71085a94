import Testing

@testable import BirdRealtimeCore

@Suite struct TimerHeapTests {
    @Test func firesInOrderWhateverTheOrderOfSetting() {
        var random = SystemRandomNumberGenerator()
        var heap = TimerHeap()
        var deadlines: [Int64] = []
        var timers: [ReactorTimer] = []
        for _ in 0..<500 {
            let timer = ReactorTimer { _ in }
            timers.append(timer)
            heap.set(timer, Instant(milliseconds: Int64.random(in: 0..<1_000, using: &random)))
        }
        // Moved and removed ones must not disturb the others.
        for (position, timer) in timers.enumerated() {
            switch position % 3 {
            case 0: heap.set(timer, Instant(milliseconds: Int64.random(in: 0..<1_000, using: &random)))
            case 1: heap.set(timer, nil)
            default: break
            }
        }
        for (position, timer) in timers.enumerated() where position % 3 != 1 {
            deadlines.append(timer.deadline.milliseconds)
        }
        var fired: [Int64] = []
        while let timer = heap.popDue(Instant(milliseconds: 1_000)) { fired.append(timer.deadline.milliseconds) }
        #expect(fired == deadlines.sorted())
        #expect(heap.next == nil)
    }

    @Test func keepsWhatIsNotDue() {
        var heap = TimerHeap()
        let timer = ReactorTimer { _ in }
        heap.set(timer, Instant(milliseconds: 10))
        #expect(heap.popDue(Instant(milliseconds: 9)) == nil)
        #expect(heap.next == Instant(milliseconds: 10))
        #expect(heap.popDue(Instant(milliseconds: 10)) === timer)
    }
}
