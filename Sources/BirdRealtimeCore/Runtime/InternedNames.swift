import Glibc

/// Event names that handlers are bound to, with their numbers. A name is counted by use. One that nobody uses any more stays known for a
/// while, as the next of its kind often comes soon; then it is forgotten, and its number and memory are used again once no record can
/// carry them. Guarded by the client's lock.
final class InternedNames {
    /// More names than this at a time are refused.
    static let namesMax = 65_536
    /// Unused names that stay known.
    static let idleMax = 1_024
    /// So many of them are forgotten at once: each time, the reactor takes a new copy of the table.
    private static let forgottenAtOnce = 512

    private typealias Entry = UnsafeMutablePointer<NameEntry>

    /// How a name is used. It lies apart from the entry, which the reactor reads without the lock.
    private struct Usage {
        let entry: Entry
        var uses = 0
        /// The program has asked for its number, which it keeps.
        var isPinned = false
        /// In the list of those that nobody used for a moment.
        var isIdle = false

        var isOver: Bool { uses == 0 && !isPinned }
    }

    /// The values are addresses of entries.
    private(set) var table = NameTable(seed: Randomness.seed)
    private let hot: UnsafeMutablePointer<ClientHot>
    /// By number, from 1 on.
    private var usages: [Usage?] = []
    private var freeIDs = Ring<UInt32>()
    private var count = 0
    /// Unused since; some are in use again.
    private var idle = Ring<Entry>()
    /// Forgotten, but the reactor may still have the table of before: with the number of the change.
    private var leaving = Ring<(entry: Entry, change: UInt64)>()
    /// Forgotten everywhere: records of this era, and of those before it, may carry them.
    private var left = Ring<(entry: Entry, era: Int)>()
    private var changes: UInt64 = 0
    /// The change with which the reactor's copy was taken; nil: there is none.
    private var adopted: UInt64?

    init(_ hot: UnsafeMutablePointer<ClientHot>) {
        self.hot = hot
    }

    deinit {
        for usage in usages.compactMap({ $0 }) { Self.free(usage.entry) }
    }

    private static func free(_ entry: Entry) {
        entry.pointee.text.deallocate()
        entry.deallocate()
    }

    // MARK: Use

    /// One more use of a name, for good if `isPinned`; nil when there are too many names.
    func use(_ name: UnsafeRawBufferPointer, isPinned: Bool = false) -> UInt32? {
        guard let id = (known(name) ?? make(name))?.pointee.id else { return nil }
        if isPinned { usages[Int(id) - 1]?.isPinned = true } else { usages[Int(id) - 1]?.uses += 1 }
        return id
    }

    func giveBack(_ id: UInt32) {
        let index = Int(id) - 1
        guard usages.indices.contains(index), var usage = usages[index], usage.uses > 0 else { return }
        usage.uses -= 1
        let becomesIdle = usage.isOver && !usage.isIdle
        if becomesIdle { usage.isIdle = true }
        usages[index] = usage
        guard becomesIdle else { return }
        idle.append(usage.entry)
        if idle.count > Self.idleMax { forgetIdle() }
    }

    private func known(_ name: UnsafeRawBufferPointer) -> Entry? {
        Entry(bitPattern: UInt(table.value(of: name)))
    }

    private func make(_ name: UnsafeRawBufferPointer) -> Entry? {
        tidy()
        if count >= Self.namesMax { forgetIdle() }
        guard count < Self.namesMax else { return nil }
        let text = UnsafeMutablePointer<CChar>.allocate(capacity: name.count + 1)
        if let source = name.baseAddress { memcpy(text, source, name.count) }
        text[name.count] = 0
        let id = freeIDs.popFirst() ?? UInt32(truncatingIfNeeded: usages.count + 1)
        let entry = Entry.allocate(capacity: 1)
        entry.initialize(
            to: NameEntry(id: id, length: UInt32(truncatingIfNeeded: name.count), text: UnsafePointer(text)))
        let usage = Usage(entry: entry)
        if Int(id) > usages.count { usages.append(usage) } else { usages[Int(id) - 1] = usage }
        count += 1
        table.insert(String(decoding: name, as: UTF8.self), UInt64(UInt(bitPattern: entry)))
        changed()
        return entry
    }

    private func changed() {
        changes += 1
        hot.pointee.namesVersion.wrappingAdd(1, ordering: .releasing)
    }

    // MARK: Forgetting

    private func forgetIdle() {
        var hasForgotten = false
        for _ in 0..<Self.forgottenAtOnce {
            guard let entry = idle.popFirst() else { break }
            let index = Int(entry.pointee.id) - 1
            usages[index]?.isIdle = false
            guard usages[index]?.isOver == true else { continue }
            table.remove(String(cString: entry.pointee.text))
            leaving.append((entry, changes + 1))
            hasForgotten = true
        }
        if hasForgotten { changed() }
        tidy()
    }

    /// The reactor has taken a copy of the table, and no record of its own is under way with a name of the copy before.
    func wasAdopted() {
        adopted = changes
        tidy()
    }

    /// Names wait until the reactor takes a copy, which it does by itself only when an event comes.
    var awaitsAdoption: Bool { !leaving.isEmpty }

    /// Frees what no record can carry any more.
    private func tidy() {
        while let next = leaving.first, next.change <= adopted ?? .max {
            _ = leaving.popFirst()
            left.append((next.entry, hot.pointee.chunkEras.current))
        }
        guard !left.isEmpty else { return }
        hot.pointee.chunkEras.advance()
        while let next = left.first, hot.pointee.chunkEras.isOver(next.era) {
            _ = left.popFirst()
            usages[Int(next.entry.pointee.id) - 1] = nil
            freeIDs.append(next.entry.pointee.id)
            Self.free(next.entry)
            count -= 1
        }
    }

    @inline(__always)
    static func entry(_ value: UInt64) -> UnsafePointer<NameEntry>? { UnsafePointer(bitPattern: UInt(value)) }
}
