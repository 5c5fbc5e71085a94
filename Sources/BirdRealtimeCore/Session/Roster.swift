/// The members of a presence channel in order of arrival, ids and infos in one block of bytes. To add one, to change one and to remove one
/// costs the same however many there are: what has gone leaves a hole, and once holes are the larger part all are closed.
package struct Roster: Sendable {
    /// Far above what an edge allows (a hundred members of a kilobyte each). An edge that sends more must not fill the memory.
    package static let membersMax = 100_000
    /// Of ids and infos together.
    package static let bytesMax = 4 * 1_048_576

    private static let slotsMin = 8
    private static let holesMin = 64
    private static let wastedBytesMin = 4_096

    private struct Entry {
        /// Where the id begins in `text`; the info follows it.
        var start: UInt32
        /// -1: a hole.
        var idBytes: Int32
        /// -1: there is no info.
        var infoBytes: Int32
        var hash: UInt32

        var textBytes: Int { Int(idBytes) + Int(max(0, infoBytes)) }
    }

    package private(set) var count = 0
    /// Members of the edge's list that did not fit.
    package private(set) var leftOut = 0
    private var bytes = 0
    private var entries: [Entry] = []
    /// Open addressing: the position of an entry and one, 0 for a free slot. A power of two, at most half occupied.
    private var slots: [UInt32] = []
    private var text: [UInt8] = []

    package init() {}

    package init(_ members: [Member]) {
        for member in members { if !add(member) { leftOut += 1 } }
    }

    package var isEmpty: Bool { count == 0 }

    package var members: [Member] {
        var members: [Member] = []
        members.reserveCapacity(count)
        forEach { id, info in
            members.append(Member(id: String(decoding: id, as: UTF8.self), info: info.map(Array.init)))
        }
        return members
    }

    /// Every member's id and info, in order of arrival; the bytes are there during the call.
    package func forEach(_ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer?) -> Void) {
        text.withUnsafeBytes { text in
            for entry in entries where entry.idBytes >= 0 { body(Self.id(entry, text), Self.info(entry, text)) }
        }
    }

    /// A copy that shares no memory: a change of either would copy all of it at the wrong moment.
    package func separated() -> Roster {
        var copy = Roster()
        copy.count = count
        copy.leftOut = leftOut
        copy.bytes = bytes
        copy.entries = entries.map { $0 }
        copy.slots = slots.map { $0 }
        copy.text = text.withUnsafeBytes { Array($0) }
        return copy
    }

    // MARK: - Changes

    /// A new member comes last, a known one gets its new info. False: there is no room, and nothing has changed.
    package mutating func add(_ member: Member) -> Bool {
        var id = member.id
        return id.withUTF8 { id in
            let id = UnsafeRawBufferPointer(id)
            guard let info = member.info else { return add(id, info: nil) }
            return info.withUnsafeBytes { add(id, info: $0) }
        }
    }

    package mutating func add(_ id: UnsafeRawBufferPointer, info: UnsafeRawBufferPointer?) -> Bool {
        let size = id.count + (info?.count ?? 0)
        let hash = Self.hash(id)
        if let slot = slot(of: id, hash) {
            let position = Int(slots[slot]) - 1
            let before = entries[position].textBytes
            guard bytes - before + size <= Self.bytesMax else { return false }
            entries[position] = entry(id, info, hash)
            bytes += size - before
            closeHoles()
            return true
        }
        guard count < Self.membersMax, bytes + size <= Self.bytesMax else { return false }
        if (count + 1) * 2 > slots.count { rebuild(slots: max(Self.slotsMin, slots.count * 2)) }
        entries.append(entry(id, info, hash))
        place(entries.count - 1)
        count += 1
        bytes += size
        return true
    }

    /// Adds what the edge lists, or counts it as left out.
    mutating func take(_ id: UnsafeRawBufferPointer, info: UnsafeRawBufferPointer?) {
        if count == Self.membersMax, info == nil {
            leftOut += 1
        } else if !add(id, info: info) {
            leftOut += 1
        }
    }

    func contains(_ id: UnsafeRawBufferPointer) -> Bool { slot(of: id, Self.hash(id)) != nil }

    /// The member with its last known info, nil if it is not on the roster.
    package mutating func remove(id: String) -> Member? {
        var name = id
        return name.withUTF8 { name in
            let name = UnsafeRawBufferPointer(name)
            guard let slot = slot(of: name, Self.hash(name)) else { return nil }
            let position = Int(slots[slot]) - 1
            let entry = entries[position]
            let info = text.withUnsafeBytes { Self.info(entry, $0).map { Array($0) } }
            free(slot)
            entries[position].idBytes = -1
            count -= 1
            bytes -= entry.textBytes
            closeHoles()
            return Member(id: id, info: info)
        }
    }

    // MARK: - Memory

    private static func id(_ entry: Entry, _ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: text[Int(entry.start)..<Int(entry.start) + Int(entry.idBytes)])
    }

    private static func info(_ entry: Entry, _ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard entry.infoBytes >= 0 else { return nil }
        let start = Int(entry.start) + Int(entry.idBytes)
        return UnsafeRawBufferPointer(rebasing: text[start..<start + Int(entry.infoBytes)])
    }

    /// Keyed by the process, so that nobody can choose ids that collide.
    private static func hash(_ id: UnsafeRawBufferPointer) -> UInt32 {
        var hasher = Hasher()
        hasher.combine(bytes: id)
        return UInt32(truncatingIfNeeded: hasher.finalize())
    }

    /// Appends what it says to `text`, whose size is bounded by `bytesMax` and as much waste.
    private mutating func entry(
        _ id: UnsafeRawBufferPointer, _ info: UnsafeRawBufferPointer?, _ hash: UInt32
    ) -> Entry {
        let start = text.count
        text.append(contentsOf: id)
        if let info { text.append(contentsOf: info) }
        return Entry(
            start: UInt32(truncatingIfNeeded: start), idBytes: Int32(truncatingIfNeeded: id.count),
            infoBytes: info.map { Int32(truncatingIfNeeded: $0.count) } ?? -1, hash: hash)
    }

    private func slot(of id: UnsafeRawBufferPointer, _ hash: UInt32) -> Int? {
        guard !slots.isEmpty else { return nil }
        let mask = slots.count - 1
        var slot = Int(hash) & mask
        while slots[slot] != 0 {
            let entry = entries[Int(slots[slot]) - 1]
            if entry.hash == hash, text.withUnsafeBytes({ id.isSame(as: Self.id(entry, $0)) }) { return slot }
            slot = (slot + 1) & mask
        }
        return nil
    }

    private mutating func place(_ position: Int) {
        let mask = slots.count - 1
        var slot = Int(entries[position].hash) & mask
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        slots[slot] = UInt32(truncatingIfNeeded: position + 1)
    }

    /// Later entries of the same run move up, so that no probe ends early.
    private mutating func free(_ slot: Int) {
        let mask = slots.count - 1
        var hole = slot
        var next = slot
        while true {
            next = (next + 1) & mask
            guard slots[next] != 0 else { break }
            let home = Int(entries[Int(slots[next]) - 1].hash) & mask
            if (next - home) & mask >= (next - hole) & mask {
                slots[hole] = slots[next]
                hole = next
            }
        }
        slots[hole] = 0
    }

    private mutating func closeHoles() {
        let holes = entries.count - count
        let wasted = text.count - bytes
        guard (holes > Self.holesMin && holes > count) || (wasted > Self.wastedBytesMin && wasted > bytes) else {
            return
        }
        rebuild(slots: slots.count)
    }

    /// Everything is put together anew, without holes.
    private mutating func rebuild(slots slotCount: Int) {
        let (oldEntries, oldText) = (entries, text)
        entries = []
        entries.reserveCapacity(count + 1)
        text = []
        text.reserveCapacity(bytes)
        slots = [UInt32](repeating: 0, count: slotCount)
        for var entry in oldEntries where entry.idBytes >= 0 {
            let start = Int(entry.start)
            entry.start = UInt32(truncatingIfNeeded: text.count)
            text += oldText[start..<start + entry.textBytes]
            entries.append(entry)
            place(entries.count - 1)
        }
    }
}

extension Roster: Equatable {
    package static func == (left: Roster, right: Roster) -> Bool { left.members == right.members }
}
