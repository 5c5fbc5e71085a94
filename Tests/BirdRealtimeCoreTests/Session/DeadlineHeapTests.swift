import Testing

@testable import BirdRealtimeCore

@Suite struct DeadlineHeapTests {
    @Test func earliestFirst() {
        var random = SplitMix64(seed: 5)
        var heap = DeadlineHeap()
        var expected: [Int64] = []
        for ticket in 0..<2_000 as Range<UInt64> {
            let due = Int64.random(in: 0...500, using: &random)
            heap.push(DeadlineHeap.Entry(due: Instant(milliseconds: due), applicant: .signin, ticket: ticket))
            expected.append(due)
        }
        heap.compact { $0.ticket % 2 == 0 }
        expected = expected.enumerated().filter { $0.offset % 2 == 0 }.map(\.element).sorted()
        var taken: [Int64] = []
        while let first = heap.first {
            taken.append(first.due.milliseconds)
            heap.popFirst()
        }
        #expect(taken == expected)
    }

    @Test func deadlinesOfChannelsThatComeAndGoLeaveNothingBehind() {
        var driver = SessionDriver()
        driver.connect()
        for reference in 1...5_000 as ClosedRange<UInt64> {
            driver.subscribe("orders", reference)
            driver.unsubscribe(reference)
        }
        #expect(driver.session.deadlines.count < 100)
    }
}
