@testable import BirdRealtimeCore

/// What the application above a session wants.
struct Program {
    var wantsConnection = false
    var wantsIdentity = false
    private(set) var wanted: [String: ChannelReference] = [:]
    /// Accepted and not ended.
    private(set) var openOperations: Set<UInt64> = []
    private var lastOperation: UInt64 = 0
    private var lastReference: UInt64

    init(number: Int) {
        lastReference = UInt64(number) << 20
    }

    var names: [String] { wanted.keys.sorted() }

    func name(of reference: ChannelReference) -> String? {
        wanted.first { $0.value == reference }?.key
    }

    /// The same reference as long as the channel is wanted.
    mutating func want(_ name: String) -> ChannelReference {
        if let held = wanted[name] { return held }
        lastReference += 1
        wanted[name] = ChannelReference(bits: lastReference)
        return ChannelReference(bits: lastReference)
    }

    mutating func leave(_ name: String) -> ChannelReference? {
        wanted.removeValue(forKey: name)
    }

    mutating func beginOperation() -> UInt64 {
        lastOperation += 1
        openOperations.insert(lastOperation)
        return lastOperation
    }

    mutating func ended(_ operation: UInt64) throws {
        try require(openOperations.remove(operation) != nil, "operation \(operation) ends twice")
    }
}
