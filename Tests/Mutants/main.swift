#if canImport(Glibc)
    import Glibc
#endif

/// Worlds that `make simulate` tries, each within a bound of steps: the first ones, those that have found a fault once, and further ones for
/// faults that show rarely. A line says what went wrong first.
let first: ClosedRange<UInt64> = 1...100
let found: [UInt64] = [
    325, 734, 887, 1067, 1342, 1368, 1399, 1836, 2377, 2607, 3765, 4600, 5255, 5279, 7965, 8544, 9214, 9713, 20619,
    32053, 42527, 51894, 56517, 58669, 70511, 99255, 154146, 161994, 169617, 173887, 181978, 188315, 189600, 200497,
    201102, 201455, 204999,
]
let further: ClosedRange<UInt64> = 101...2000
let stepsMax = 1_000_000

for seed in Array(first) + found + Array(further) {
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
