/// Numbers by name: an open-addressing hash table over the names' bytes that is read without building a string,
/// allocating or counting references. Two cache lines answer a look-up, one of `slots` and one of `records`.
struct NameTable: Sendable {
    /// `tag` is the name's hash; `record` is where its record starts in `records`, 0 when the slot is free.
    private struct Slot {
        var tag: UInt32 = 0
        var record: UInt32 = 0
    }

    private static let slotsMin = 16
    private static let wastedWordsMin = 1024

    private(set) var count = 0
    private let seed: UInt64
    /// A power of two, at most half occupied.
    private var slots = [Slot](repeating: Slot(), count: slotsMin)
    /// One after the other: value, length in bytes, then the name in zero-padded words. Word 0 is not used.
    private(set) var records: [UInt64] = [0]
    private var wastedWords = 0

    /// `seed`: what keeps names chosen by strangers from being chosen to collide.
    init(seed: UInt64) {
        self.seed = seed
    }

    /// The value of exactly this name, 0 if there is none.
    func value(of name: UnsafeRawBufferPointer) -> UInt64 {
        let tag = hash(name)
        return slots.withUnsafeBufferPointer { slots in
            records.withUnsafeBufferPointer { records in
                let mask = slots.count &- 1
                var index = Int(tag) & mask
                while slots[index].record != 0 {
                    let record = Int(slots[index].record)
                    if slots[index].tag == tag, Self.matches(name, records, record) {
                        return records[record]
                    }
                    index = (index &+ 1) & mask
                }
                return 0
            }
        }
    }

    func value(of name: String) -> UInt64 {
        var name = name
        return name.withUTF8 { value(of: UnsafeRawBufferPointer($0)) }
    }

    /// `value` is not 0; the name has no value yet.
    mutating func insert(_ name: String, _ value: UInt64) {
        if (count + 1) * 2 > slots.count {
            rebuild(slots: slots.count * 2)
        }
        var name = name
        name.withUTF8 { utf8 in
            let bytes = UnsafeRawBufferPointer(utf8)
            let record = records.count
            records.append(value)
            records.append(UInt64(bytes.count))
            for offset in stride(from: 0, to: bytes.count, by: 8) {
                records.append(Self.word(bytes, offset))
            }
            place(Slot(tag: hash(bytes), record: UInt32(truncatingIfNeeded: record)))
        }
        count += 1
    }

    mutating func remove(_ name: String) {
        var name = name
        name.withUTF8 { remove(UnsafeRawBufferPointer($0)) }
    }

    private mutating func remove(_ name: UnsafeRawBufferPointer) {
        let tag = hash(name)
        let mask = slots.count - 1
        var hole = Int(tag) & mask
        while slots[hole].record != 0 {
            if slots[hole].tag == tag,
                records.withUnsafeBufferPointer({ Self.matches(name, $0, Int(slots[hole].record)) })
            {
                break
            }
            hole = (hole + 1) & mask
        }
        guard slots[hole].record != 0 else { return }
        count -= 1
        wastedWords += 2 + (name.count + 7) / 8

        // Later entries of the same run move up, so that no probe ends early and no tombstone is needed.
        var index = hole
        while true {
            index = (index + 1) & mask
            guard slots[index].record != 0 else { break }
            let distance = (index - Int(slots[index].tag)) & mask
            if distance >= (index - hole) & mask {
                slots[hole] = slots[index]
                hole = index
            }
        }
        slots[hole] = Slot()
        if wastedWords > Self.wastedWordsMin, wastedWords > records.count / 2 {
            rebuild(slots: slots.count)
        }
    }

    private mutating func rebuild(slots slotCount: Int) {
        let oldSlots = slots
        let oldRecords = records
        slots = [Slot](repeating: Slot(), count: slotCount)
        records = [0]
        records.reserveCapacity(oldRecords.count - wastedWords)
        wastedWords = 0
        for slot in oldSlots where slot.record != 0 {
            let start = Int(slot.record)
            let record = records.count
            records += oldRecords[start..<start + 2 + (Int(oldRecords[start + 1]) + 7) / 8]
            place(Slot(tag: slot.tag, record: UInt32(truncatingIfNeeded: record)))
        }
    }

    private mutating func place(_ slot: Slot) {
        let mask = slots.count - 1
        var index = Int(slot.tag) & mask
        while slots[index].record != 0 {
            index = (index + 1) & mask
        }
        slots[index] = slot
    }

    @inline(__always)
    private static func matches(
        _ name: UnsafeRawBufferPointer, _ records: UnsafeBufferPointer<UInt64>, _ record: Int
    ) -> Bool {
        guard records[record &+ 1] == UInt64(truncatingIfNeeded: name.count) else { return false }
        var index = record &+ 2
        var offset = 0
        while offset < name.count {
            guard records[index] == word(name, offset) else { return false }
            index &+= 1
            offset &+= 8
        }
        return true
    }

    @inline(__always)
    private func hash(_ name: UnsafeRawBufferPointer) -> UInt32 {
        var state = seed ^ UInt64(truncatingIfNeeded: name.count)
        var offset = 0
        while offset < name.count {
            state = Self.mix(state ^ Self.word(name, offset), 0x9E37_79B9_7F4A_7C15)
            offset &+= 8
        }
        return UInt32(truncatingIfNeeded: Self.mix(state, 0xD6E8_FEB8_6659_FD93) &>> 16)
    }

    @inline(__always)
    private static func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    /// The eight bytes at the offset, those behind the end being zero.
    @inline(__always)
    private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        let left = bytes.count &- offset
        if left >= 8 {
            return UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        if bytes.count >= 8 {
            let last = bytes.loadUnaligned(fromByteOffset: bytes.count &- 8, as: UInt64.self)
            return UInt64(littleEndian: last) &>> UInt64(truncatingIfNeeded: (8 &- left) &* 8)
        }
        var word: UInt64 = 0
        var index = bytes.count
        while index > offset {
            index &-= 1
            word = word &<< 8 | UInt64(bytes[index])
        }
        return word
    }
}
