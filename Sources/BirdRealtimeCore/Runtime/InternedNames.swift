import Glibc

/// Event names that have been bound, with their numbers. Names are never removed: their entries live as long as the client.
final class InternedNames {
    /// More distinct event names than this are refused.
    static let namesMax = 65_536

    /// The values are addresses of entries.
    private(set) var table = NameTable(seed: Randomness.seed)
    private var entries: [UnsafeMutablePointer<NameEntry>] = []

    deinit {
        for entry in entries {
            entry.pointee.text.deallocate()
            entry.deallocate()
        }
    }

    /// The number of a name, new if need be; nil when there are too many.
    func intern(_ name: UnsafeRawBufferPointer) -> (id: UInt32, isNew: Bool)? {
        if let known = Self.entry(table.value(of: name)) { return (known.pointee.id, false) }
        guard entries.count < Self.namesMax else { return nil }
        let text = UnsafeMutablePointer<CChar>.allocate(capacity: name.count + 1)
        if let source = name.baseAddress { memcpy(text, source, name.count) }
        text[name.count] = 0
        let id = UInt32(truncatingIfNeeded: entries.count + 1)
        let entry = UnsafeMutablePointer<NameEntry>.allocate(capacity: 1)
        entry.initialize(
            to: NameEntry(id: id, length: UInt32(truncatingIfNeeded: name.count), text: UnsafePointer(text)))
        entries.append(entry)
        table.insert(String(decoding: name, as: UTF8.self), UInt64(UInt(bitPattern: entry)))
        return (id, true)
    }

    @inline(__always)
    static func entry(_ value: UInt64) -> UnsafePointer<NameEntry>? { UnsafePointer(bitPattern: UInt(value)) }
}
