/// Something that must always hold does not.
struct Wrong: Error {
    var message: String
}

func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Wrong(message: message()) }
}

/// A world in which something that must always hold did not.
struct SimulationFailure: Error, CustomStringConvertible {
    var seed: UInt64
    var step: Int
    var now: Int64
    var client: Int
    var message: String
    /// The last of what happened to the client, and to the world.
    var trace: [String]

    var description: String {
        """
        seed \(seed), step \(step), after \(now) virtual ms: client \(client) \(message)
        \(trace.joined(separator: "\n"))
        seed \(seed), step \(step), after \(now) virtual ms: client \(client) \(message)
        again: make simulate SEED=\(seed) SEEDS=1 STEPS=\(step + 1)
        """
    }
}
