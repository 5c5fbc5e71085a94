package import CBirdRealtimeABI
import Synchronization

package typealias RecordHandler = @convention(c) (UnsafePointer<bird_record>?, UnsafeMutableRawPointer?) -> Void
package typealias Destructor = @convention(c) (UnsafeMutableRawPointer?) -> Void

/// One handler of the program's. The destructor runs exactly once: through `retire`, by whoever owns the moment.
/// `@unchecked Sendable`: immutable but for the atomics; `userData` is the program's own business.
package final class Binding: @unchecked Sendable {
    let number: UInt64
    let handler: RecordHandler
    let userData: UnsafeMutableRawPointer?
    private let destructor: Destructor?
    private let active = Atomic<Bool>(true)
    private let destroyed = Atomic<Bool>(false)

    init(number: UInt64, handler: RecordHandler, userData: UnsafeMutableRawPointer?, destructor: Destructor?) {
        self.number = number
        self.handler = handler
        self.userData = userData
        self.destructor = destructor
    }

    @inline(__always)
    var isActive: Bool { active.load(ordering: .relaxed) }

    /// No call starts after this.
    func deactivate() { active.store(false, ordering: .sequentiallyConsistent) }

    func runDestructor() {
        if !destroyed.exchange(true, ordering: .acquiringAndReleasing) { destructor?(userData) }
    }
}

/// The bindings of one channel, or of the client for all its channels. The master copy is guarded by the client's lock; the delivery
/// context reads an index of its own, made anew after a change.
final class BindingScope {
    struct Entry {
        /// 0: every application event.
        var eventID: UInt32
        var binding: Binding
    }

    /// Grows with each change; read by the delivery context without the lock.
    let version = Atomic<UInt32>(0)
    /// Guarded by the client's lock.
    private(set) var entries: [Entry] = []

    // Delivery context only.
    private var seenVersion: UInt32 = 0
    private(set) var index = BindingIndex()

    func add(_ entry: Entry) {
        entries.append(entry)
        version.wrappingAdd(1, ordering: .releasing)
    }

    func remove(_ number: UInt64) -> Binding? {
        guard let position = entries.firstIndex(where: { $0.binding.number == number }) else { return nil }
        let binding = entries.remove(at: position).binding
        version.wrappingAdd(1, ordering: .releasing)
        return binding
    }

    func removeAll() -> [Binding] {
        let all = entries.map(\.binding)
        entries = []
        version.wrappingAdd(1, ordering: .releasing)
        return all
    }

    @inline(__always)
    func refresh(_ lock: Monitor) {
        if version.load(ordering: .acquiring) != seenVersion { rebuild(lock) }
    }

    @inline(never)
    private func rebuild(_ lock: Monitor) {
        lock.withLock {
            seenVersion = version.load(ordering: .acquiring)
            index = BindingIndex(entries)
        }
    }
}

/// Handlers by event id, sorted, in one block that never changes.
final class BindingIndex {
    struct Slot {
        var eventID: UInt32
        var binding: Unmanaged<Binding>
    }

    init() {
        slots = .allocate(capacity: 1)
        count = 0
        globalCount = 0
        owners = []
    }

    private let slots: UnsafeMutablePointer<Slot>
    private let count: Int
    /// The first `globalCount` slots are for every application event.
    private let globalCount: Int
    private let owners: [Binding]

    init(_ entries: [BindingScope.Entry]) {
        // A stable sort by id keeps the order of binding within each event.
        let sorted = entries.enumerated().sorted {
            ($0.element.eventID, $0.offset) < ($1.element.eventID, $1.offset)
        }.map(\.element)
        owners = sorted.map(\.binding)
        count = sorted.count
        globalCount = sorted.prefix { $0.eventID == 0 }.count
        slots = .allocate(capacity: max(1, sorted.count))
        for (position, entry) in sorted.enumerated() {
            slots.advanced(by: position).initialize(
                to: Slot(eventID: entry.eventID, binding: .passUnretained(entry.binding)))
        }
    }

    deinit { slots.deallocate() }

    @inline(__always)
    var isEmpty: Bool { count == 0 }

    @inline(__always)
    var global: UnsafeBufferPointer<Slot> { UnsafeBufferPointer(start: slots, count: globalCount) }

    @inline(__always)
    func named(_ eventID: UInt32) -> UnsafeBufferPointer<Slot> {
        guard eventID != 0, count > globalCount else { return UnsafeBufferPointer(start: nil, count: 0) }
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
