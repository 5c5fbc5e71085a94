import CBirdRealtimeABI
import Synchronization

// What the way of an event reads, in memory of its own: behind a pointer that is never reassigned, reading costs a load, where a
// class property may cost a reference count. Each block is owned by the object that allocates it.

/// One handler, ready to be called.
struct BindingSlot {
    /// 0: every application event.
    var eventID: UInt32
    var handler: RecordHandler
    var userData: UnsafeMutableRawPointer?
    /// Kept alive by the scope. Its own memory: not looked at without need.
    var binding: Unmanaged<Binding>

    var isActive: Bool { binding._withUnsafeGuaranteedRef { $0.isActive } }
}

/// The bindings of a channel or of a client, as the delivery context sees them.
struct ScopeState: ~Copyable {
    /// Grows with each change; what was read under an older one must be read again.
    let version = Atomic<UInt32>(0)
    var seenVersion: UInt32 = 0
    /// Sorted by event id, the ones for every event (id 0) first; within an event in order of binding.
    var slots: UnsafeMutablePointer<BindingSlot>?
    var count = 0
    var globalCount = 0

    /// What was bound and unbound has not been taken over yet.
    @inline(__always)
    var isChanged: Bool { version.load(ordering: .acquiring) != seenVersion }

    @inline(__always)
    var global: UnsafeBufferPointer<BindingSlot> { UnsafeBufferPointer(start: slots, count: globalCount) }

    @inline(__always)
    func named(_ eventID: UInt32) -> UnsafeBufferPointer<BindingSlot> {
        guard eventID != 0, count > globalCount, let slots else { return UnsafeBufferPointer(start: nil, count: 0) }
        var low = globalCount
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if slots[middle].eventID < eventID { low = middle + 1 } else { high = middle }
        }
        var end = low
        while end < count, slots[end].eventID == eventID { end += 1 }
        return UnsafeBufferPointer(start: slots + low, count: end - low)
    }
}

/// A channel, as events meet it. A `ChannelReference` is its address.
struct ChannelHot: ~Copyable {
    let channel: Unmanaged<Channel>
    let handle: UInt
    /// That of the member channel follows the signin.
    var name: UnsafePointer<CChar>
    var nameLength: UInt32
    let tag = Atomic<UInt64>(0)
    let scope: UnsafeMutablePointer<ScopeState>
    /// Its application events arrive sealed.
    let isEncrypted: Bool

    @inline(__always)
    static func at(_ reference: ChannelReference) -> UnsafeMutablePointer<ChannelHot>? {
        UnsafeMutablePointer(bitPattern: UInt(reference.bits))
    }
}

extension ChannelReference {
    @inline(__always)
    init(_ channel: UnsafeMutablePointer<ChannelHot>) {
        self.init(bits: UInt64(UInt(bitPattern: channel)))
    }
}

/// A client, as events meet it.
struct ClientHot: ~Copyable {
    let ending = Atomic<Bool>(false)
    let namesVersion = Atomic<UInt32>(0)
    let chunkEras = ChunkEras()
    let observersVersion = Atomic<UInt32>(0)
    let queuedBytes = Atomic<Int>(0)
    let queuedRecords = Atomic<Int>(0)
    /// Application events have been dropped, and the queue has not fallen below half of its bounds since.
    let isOverflowing = Atomic<Bool>(false)
    var handle: UInt = 0
    let tag: UInt64
    let records: UInt64
    let queueBytesMax: Int
    let queueRecordsMax: Int
    /// Where reading pauses: at the bounds of the queue or, where an overflow drops events, when the reserved room is full too.
    let pauseBytes: Int
    let pauseRecords: Int
    let scope: UnsafeMutablePointer<ScopeState>

    init(_ options: ClientOptions, scope: UnsafeMutablePointer<ScopeState>) {
        self.scope = scope
        tag = options.tag
        records = options.records
        queueBytesMax = options.queueBytesMax
        queueRecordsMax = options.queueRecordsMax
        let drops = options.overflow != .pause
        pauseBytes = options.queueBytesMax + (drops ? Int(BIRD_QUEUE_RESERVED_BYTES) : 0)
        pauseRecords = options.queueRecordsMax + (drops ? Int(BIRD_QUEUE_RESERVED_RECORDS) : 0)
    }

    /// Records that wait for the program, and those a call has promised, fill the reserved room as well.
    func isReserveFull(promised: Int) -> Bool {
        queuedRecords.load(ordering: .acquiring) + promised >= queueRecordsMax + Int(BIRD_QUEUE_RESERVED_RECORDS)
            || queuedBytes.load(ordering: .acquiring) >= queueBytesMax + Int(BIRD_QUEUE_RESERVED_BYTES)
    }

    /// More than half of what the queue may hold waits; what is held up by a full queue goes on below that.
    var isOverHalf: Bool {
        queuedRecords.load(ordering: .sequentiallyConsistent) > queueRecordsMax / 2
            || queuedBytes.load(ordering: .sequentiallyConsistent) > queueBytesMax / 2
    }
}

/// An interned event name. The reactor reads it without the client's lock; how it is used stands in `InternedNames`.
struct NameEntry {
    let id: UInt32
    let length: UInt32
    let text: UnsafePointer<CChar>
}
