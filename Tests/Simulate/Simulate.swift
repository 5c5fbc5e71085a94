import Glibc

/// The program behind `make simulate`: SEEDS worlds from SEED on, each for STEPS steps at most. TRACE=1 writes down the first world even if
/// nothing is wrong in it.
@main
enum Simulate {
    static func main() {
        let first = number("SEED") ?? 1
        let count = max(1, number("SEEDS") ?? 1_000)
        let stepsMax = number("STEPS").map { Int($0) } ?? .max
        if number("TRACE") == 1 {
            let world = World(seed: first, traces: true)
            _ = world.run(stepsMax: stepsMax)
            print(world.traceText)
        }
        let (figures, failure) = Simulation.run(seeds: first..<first + count, stepsMax: stepsMax) { figures in
            if figures.worlds % 1_000 == 0, UInt64(figures.worlds) < count { print("simulate: \(figures.closingLine)") }
        }
        if let failure { print("\(failure)") } else { print(figures.table) }
        print("simulate: \(figures.closingLine)")
        exit(failure == nil ? 0 : 1)
    }

    private static let numberMax: UInt64 = 1 << 40

    private static func number(_ variable: String) -> UInt64? {
        guard let text = getenv(variable).map({ String(cString: $0) }), !text.isEmpty else { return nil }
        if let value = UInt64(text), value <= numberMax { return value }
        print("simulate: \(variable)=\(text) is no whole number from 0 to \(numberMax)")
        exit(2)
    }
}
