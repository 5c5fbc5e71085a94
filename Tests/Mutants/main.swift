#if canImport(Glibc)
    import Glibc
#endif

/// As many worlds as the tests try, each within a bound of steps. The line that it ends with says what went wrong first.
let stepsMax = 1_000_000

for seed in 1...UInt64(10) {
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
