/// Numbers by name: an open-addressing hash table over the names' bytes that is read without building a string,
/// allocating or counting references. Two cache lines answer a look-up, one of `slots` and one of `records`; with the value in the first,
/// the processor goes on with it while the name is still being compared.
struct NameTable: Sendable {
    /// `tag` is the name's hash; `record` is where its record starts in `records`, 0 when the slot is free; `value` is the name's.
    private struct Slot {
        var tag: UInt32 = 0
        var record: UInt32 = 0
        var value: UInt64 = 0
    }

    private static let slotsMin = 4
    private static let wastedWordsMin = 1024

    private(set) var count = 0
    private let seed: UInt64
    /// A power of two, at most half occupied.
    private var slots = [Slot](repeating: Slot(), count: slotsMin)
    /// One after the other: length in bytes, then the name in zero-padded words. Word 0 is not used.
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
            records.withUnsafeBytes { records in
                let mask = slots.count &- 1
                var index = Int(tag) & mask
                while slots[index].record != 0 {
                    let record = Int(slots[index].record) &* 8
                    if slots[index].tag == tag, Self.isName(name, of: record, records) { return slots[index].value }
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
            records.append(UInt64(bytes.count))
            records.append(contentsOf: repeatElement(0, count: (bytes.count + 7) / 8))
            records.withUnsafeMutableBytes { records in
                UnsafeMutableRawBufferPointer(rebasing: records[((record + 1) * 8)...]).copyMemory(from: bytes)
            }
            place(Slot(tag: hash(bytes), record: UInt32(truncatingIfNeeded: record), value: value))
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
                records.withUnsafeBytes({ Self.isName(name, of: Int(slots[hole].record) * 8, $0) })
            {
                break
            }
            hole = (hole + 1) & mask
        }
        guard slots[hole].record != 0 else { return }
        count -= 1
        wastedWords += 1 + (name.count + 7) / 8

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
            records += oldRecords[start..<start + 1 + (Int(oldRecords[start]) + 7) / 8]
            place(Slot(tag: slot.tag, record: UInt32(truncatingIfNeeded: record), value: slot.value))
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

    /// `record` in bytes. Overlapping loads instead of a loop over the rest.
    @inline(__always)
    private static func isName(
        _ name: UnsafeRawBufferPointer, of record: Int, _ records: UnsafeRawBufferPointer
    ) -> Bool {
        let count = name.count
        guard records.load(fromByteOffset: record, as: Int.self) == count else { return false }
        let start = record &+ 8
        if count >= 8 {
            var offset = 0
            while offset &+ 8 < count {
                guard word(name, offset) == word(records, start &+ offset) else { return false }
                offset &+= 8
            }
            return word(name, count &- 8) == word(records, start &+ count &- 8)
        }
        if count >= 4 {
            return halfWord(name, 0) == halfWord(records, start)
                && halfWord(name, count &- 4) == halfWord(records, start &+ count &- 4)
        }
        for offset in 0..<count where name[offset] != records[start &+ offset] {
            return false
        }
        return true
    }

    /// Sixteen bytes per multiplication, folded to 64 bits; the last sixteen may overlap those before.
    @inline(__always)
    private func hash(_ name: UnsafeRawBufferPointer) -> UInt32 {
        let count = name.count
        var state = seed
        var first: UInt64 = 0
        var last: UInt64 = 0
        if count >= 8 {
            var offset = 0
            while offset &+ 16 < count {
                state = Self.folded(Self.word(name, offset) ^ Self.factors.0, Self.word(name, offset &+ 8) ^ state)
                offset &+= 16
            }
            first = Self.word(name, max(0, count &- 16))
            last = Self.word(name, count &- 8)
        } else if count >= 4 {
            first = Self.halfWord(name, 0)
            last = Self.halfWord(name, count &- 4)
        } else if count > 0 {
            first = UInt64(name[0]) << 16 | UInt64(name[count / 2]) << 8 | UInt64(name[count &- 1])
        }
        let mixed = Self.folded(first ^ Self.factors.0, last ^ state)
        let hash = Self.folded(mixed ^ UInt64(truncatingIfNeeded: count), Self.factors.1)
        return UInt32(truncatingIfNeeded: hash)
    }

    private static var factors: (UInt64, UInt64) { (0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93) }

    @inline(__always)
    private static func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    @inline(__always)
    private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }

    @inline(__always)
    private static func halfWord(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        UInt64(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
}
