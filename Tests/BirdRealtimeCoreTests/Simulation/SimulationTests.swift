import Testing

@testable import BirdRealtimeCore

/// Sessions in hostile worlds, the first few; `make simulate` tries as many as one likes (docs/testing.md).
@Suite struct SimulationTests {
    private static let seeds: ClosedRange<UInt64> = 1...13

    @Test func everythingWantedComesBackWhenTheWorldHeals() {
        let (figures, failure) = Simulation.run(seeds: Self.seeds)
        if let failure { Issue.record("\(failure)") }
        #expect(figures.missing == [], "a fault that never happens")
    }

    @Test func aSeedDecidesEverything() {
        let runs = (0..<2).map { _ in
            let world = World(seed: 3)
            let failure = world.run(stepsMax: 5_000)
            #expect(failure == nil)
            return [Int64(world.steps), world.now, Int64(truncatingIfNeeded: world.random.next())]
        }
        #expect(runs[0] == runs[1])
    }
}
