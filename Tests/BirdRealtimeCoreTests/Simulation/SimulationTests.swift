import Testing

@testable import BirdRealtimeCore

#if canImport(Glibc)
    import Glibc
#endif

/// Sessions in a hostile world. SEED runs one world only, STEPS ends it early; SEEDS is how many worlds a run tries.
@Suite struct SimulationTests {
    @Test func everythingWantedComesBackWhenTheWorldHeals() {
        let first = Self.number("SEED")
        let seeds = first.map { $0...$0 } ?? 1...(Self.number("SEEDS") ?? 10)
        let steps = Self.number("STEPS").map(Int.init) ?? Int.max
        for seed in seeds {
            do {
                try World(seed: seed, clients: 10).run(stepsMax: steps)
            } catch {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test func aSeedDecidesEverything() throws {
        let runs = try (0..<2).map { _ in
            let world = World(seed: 4711, clients: 4)
            try world.run(stepsMax: 5_000)
            return [Int64(world.steps), world.now, Int64(truncatingIfNeeded: world.random.next())]
        }
        #expect(runs[0] == runs[1])
    }

    private static func number(_ variable: String) -> UInt64? {
        getenv(variable).flatMap { UInt64(String(cString: $0)) }
    }
}
