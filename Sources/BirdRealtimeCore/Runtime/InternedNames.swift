import Glibc

/// Event names that have been bound, with their numbers. Names are never removed: their C strings live as long as the client.
final class InternedNames {
    /// More distinct event names than this are matched by nothing but their binding's refusal.
    static let namesMax = 65_536

    private(set) var table = NameTable(seed: Randomness.seed())
    private(set) var strings: [UnsafePointer<CChar>] = []
    private(set) var lengths: [Int] = []

    deinit {
        for string in strings { string.deallocate() }
    }

    /// The number of a name, new if need be; nil when there are too many.
    func intern(_ name: UnsafeRawBufferPointer) -> (id: UInt32, isNew: Bool)? {
        let known = table.value(of: name)
        if known != 0 { return (UInt32(truncatingIfNeeded: known), false) }
        guard strings.count < Self.namesMax else { return nil }
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: name.count + 1)
        if let source = name.baseAddress { memcpy(copy, source, name.count) }
        copy[name.count] = 0
        strings.append(UnsafePointer(copy))
        lengths.append(name.count)
        let id = UInt32(truncatingIfNeeded: strings.count)
        table.insert(String(decoding: name, as: UTF8.self), UInt64(id))
        return (id, true)
    }
}
