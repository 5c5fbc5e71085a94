package import CBirdRealtimeABI
import Glibc

/// A record as the library keeps it: what the program sees, and behind it what only the dispatch needs. The stride that drain
/// reports covers both.
struct StoredRecord {
    var visible: bird_record
    /// Kept alive by the chunk.
    var channel: UnsafeMutablePointer<ChannelHot>?
    /// What the delivery has to do beside calling handlers; an index into the chunk's `contents`, -1 for nothing.
    var content: Int
}

/// A batch of records of one client in one block of memory: the records grow from the front, their strings from the back.
/// Filled by the reactor, then handed to one consumer; never used by two threads at a time.
/// `@unchecked Sendable`: ownership passes as a whole under the lock of the queue.
package final class RecordChunk: @unchecked Sendable {
    /// What is kept between two uses; a larger one is made for a record that fits in none of these.
    static let sizes = [bytesSmallest, bytesSmall, 32_768, bytesNormal]
    static let bytesSmallest = 2_048
    static let bytesSmall = 8_192
    static let bytesNormal = 131_072
    package static let stride = MemoryLayout<StoredRecord>.stride

    private(set) var base: UnsafeMutableRawPointer
    private(set) var capacityBytes: Int
    package private(set) var count = 0
    /// Records that a dispatch has delivered already, or that have been dropped.
    var delivered = 0
    private var dropped = 0
    private var droppedBytes = 0
    /// Where the strings of what has been dropped end.
    private var firstString: Int
    private var stringsStart: Int
    /// Whose records these are. Strings of interned names and of channels live in it.
    private(set) var client: Client?
    private var era = 0
    private var channels: [Channel] = []
    private var lastKept: UnsafeMutablePointer<ChannelHot>?
    private var errors: [ErrorObject] = []
    private var rosters: [MembersObject] = []
    private(set) var contents: [RecordContent] = []
    /// Version of the client's names when the records were made.
    var namesVersion: UInt32 = 0
    package var handle: UInt = 0
    /// The queue that it was drained from, while the program holds it.
    var queue: RecordQueue?
    /// Its place among the chunks of its client.
    var number: UInt64 = 0
    /// Holds application events alone, which an overflow may drop.
    private(set) var isDroppable = false

    init(capacityBytes: Int) {
        self.capacityBytes = capacityBytes
        base = UnsafeMutableRawPointer.allocate(byteCount: capacityBytes, alignment: 16)
        stringsStart = capacityBytes
        firstString = capacityBytes
        channels.reserveCapacity(4)
    }

    deinit { base.deallocate() }

    /// What it counts for until it has been consumed.
    var usedBytes: Int { count * Self.stride + (capacityBytes - stringsStart) - droppedBytes }
    var usedRecords: Int { count - dropped }
    var isEmpty: Bool { count == 0 }
    var isDelivered: Bool { delivered == count }

    /// Brings the rosters to the end of what has not been delivered yet.
    func applyChanges() {
        guard !contents.isEmpty else { return }
        for position in delivered..<count where records[position].content >= 0 {
            contents[records[position].content].change?.apply()
        }
    }
    var records: UnsafeMutablePointer<StoredRecord> { base.assumingMemoryBound(to: StoredRecord.self) }
    /// For a program that walks them itself, `stride` apart.
    package var visibleRecords: UnsafePointer<bird_record> {
        UnsafePointer((base + delivered * Self.stride).assumingMemoryBound(to: bird_record.self))
    }
    package var visibleCount: Int { count - delivered }

    func begin(for client: Client, isDroppable: Bool) {
        self.client = client
        era = client.hot.pointee.chunkEras.begin()
        self.isDroppable = isDroppable
    }

    /// Back to an empty chunk without an owner.
    func reset() {
        count = 0
        delivered = 0
        dropped = 0
        droppedBytes = 0
        stringsStart = capacityBytes
        firstString = capacityBytes
        channels.removeAll(keepingCapacity: true)
        lastKept = nil
        errors.removeAll(keepingCapacity: true)
        rosters.removeAll(keepingCapacity: true)
        contents.removeAll(keepingCapacity: true)
        client?.hot.pointee.chunkEras.end(era)
        client = nil
    }

    @inline(__always)
    func hasRoom(forStringBytes bytes: Int) -> Bool {
        stringsStart - (count + 1) * Self.stride >= bytes
    }

    /// Drops the oldest event that waits, and returns its bytes.
    func dropFirst() -> Int {
        let record = records[delivered].visible
        let before = firstString
        for text in [record.event, record.data, record.sender] {
            let offset = UnsafeRawPointer(text).map { $0 - UnsafeRawPointer(base) } ?? -1
            // Names of bound events live elsewhere.
            if offset >= 0, offset < firstString { firstString = offset }
        }
        let bytes = Self.stride + before - firstString
        delivered += 1
        dropped += 1
        droppedBytes += bytes
        return bytes
    }

    /// Takes `bytes` for strings. The caller has asked `hasRoom`.
    @inline(__always)
    func reserve(_ bytes: Int) -> UnsafeMutablePointer<UInt8> {
        stringsStart -= bytes
        return base.advanced(by: stringsStart).assumingMemoryBound(to: UInt8.self)
    }

    /// Where the next string goes.
    var mark: Int { stringsStart }

    /// Everything reserved since the mark was taken is free again.
    func giveBack(to mark: Int) { stringsStart = mark }

    /// The first bytes of what was reserved last are free again; returns where the rest begins.
    func giveBack(_ bytes: Int) -> UnsafeMutablePointer<UInt8> {
        stringsStart += bytes
        return base.advanced(by: stringsStart).assumingMemoryBound(to: UInt8.self)
    }

    /// Takes memory for a detail struct.
    func reserveDetail<T>(_ value: T) -> UnsafeRawPointer {
        stringsStart -= MemoryLayout<T>.stride
        stringsStart &= ~7
        let pointer = base.advanced(by: stringsStart)
        pointer.initializeMemory(as: T.self, repeating: value, count: 1)
        return UnsafeRawPointer(pointer)
    }

    /// Takes memory for an array that a detail struct points to.
    func reserveDetail<T>(of values: [T]) -> UnsafePointer<T> {
        stringsStart -= MemoryLayout<T>.stride * values.count
        stringsStart &= ~7
        let pointer = base.advanced(by: stringsStart)
        for (index, value) in values.enumerated() {
            pointer.advanced(by: index * MemoryLayout<T>.stride).initializeMemory(as: T.self, to: value)
        }
        return UnsafePointer(pointer.assumingMemoryBound(to: T.self))
    }

    @inline(__always)
    func copyString(_ source: UnsafePointer<UInt8>, _ length: Int) -> UnsafePointer<CChar> {
        let target = reserve(length + 1)
        memcpy(target, source, length)
        target[length] = 0
        return UnsafeRawPointer(target).assumingMemoryBound(to: CChar.self)
    }

    func copyString(_ text: String) -> (pointer: UnsafePointer<CChar>, length: Int) {
        var text = text
        return text.withUTF8 { bytes in
            let target = reserve(bytes.count + 1)
            if let source = bytes.baseAddress { memcpy(target, source, bytes.count) }
            target[bytes.count] = 0
            return (UnsafeRawPointer(target).assumingMemoryBound(to: CChar.self), bytes.count)
        }
    }

    @inline(never)
    func copySender(_ sender: Span, _ base: UnsafeMutableRawPointer, into record: UnsafeMutablePointer<bird_record>) {
        let target = reserve(sender.length + 1)
        let length = JSONString.unescape(sender, in: base, into: target)
        target[length] = 0
        record.pointee.sender = UnsafeRawPointer(target).assumingMemoryBound(to: CChar.self)
        record.pointee.sender_length = UInt32(truncatingIfNeeded: length)
    }

    /// Keeps the channel, and so its name, alive with the chunk.
    @inline(__always)
    func keep(_ channel: UnsafeMutablePointer<ChannelHot>) {
        if channel != lastKept {
            lastKept = channel
            channels.append(channel.pointee.channel.takeUnretainedValue())
        }
    }

    func keep(_ fault: Fault) -> OpaquePointer {
        let error = ErrorObject(fault)
        errors.append(error)
        return error.pointer
    }

    func keep(_ roster: MembersObject) -> OpaquePointer {
        rosters.append(roster)
        return roster.pointer
    }

    func keep(_ content: RecordContent) -> Int {
        contents.append(content)
        return contents.count - 1
    }

    @inline(__always)
    func append(_ record: StoredRecord) {
        records.advanced(by: count).initialize(to: record)
        count += 1
    }

    /// A record of an event on the channel, to be filled where it lies.
    @inline(__always)
    func append(_ blank: StoredRecord, of channel: UnsafeMutablePointer<ChannelHot>) -> UnsafeMutablePointer<
        bird_record
    > {
        append(blank)
        let record = records.advanced(by: count - 1)
        record.pointee.channel = channel
        record.pointee.visible.setChannel(channel)
        keep(channel)
        return UnsafeMutableRawPointer(record).assumingMemoryBound(to: bird_record.self)
    }
}
