#if canImport(Glibc)
    import Glibc
#endif

/// The first of the worlds that `make simulate` tries, each within a bound of steps. A line says what went wrong first.
let worlds: ClosedRange<UInt64> = 1...100
let stepsMax = 1_000_000

for seed in worlds {
    let world = World(seed: seed)
    if let failure = world.run(stepsMax: stepsMax) {
        print("seed \(seed), step \(failure.step): \(failure.message)")
        exit(1)
    }
    guard world.steps < stepsMax else {
        print("seed \(seed): no end after \(stepsMax) steps")
        exit(1)
    }
}
