import Testing

@testable import BirdRealtimeCore

@Suite struct RingTests {
    @Test func isAQueueWithTwoEnds() {
        var ring = Ring<Int>()
        var model: [Int] = []
        var random = SystemRandomNumberGenerator()
        for number in 0..<5_000 {
            switch Int.random(in: 0..<5, using: &random) {
            case 0:
                let first = ring.popFirst()
                #expect(first == (model.isEmpty ? nil : model.removeFirst()))
            case 1:
                let last = ring.popLast()
                #expect(last == model.popLast())
            case 2:
                ring.prepend(number)
                model.insert(number, at: 0)
            default:
                ring.append(number)
                model.append(number)
            }
            let (count, last) = (ring.count, ring.last)
            #expect(count == model.count)
            #expect(last == model.last)
        }
    }
}
