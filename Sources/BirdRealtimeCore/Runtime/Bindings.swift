package import CBirdRealtimeABI
import Synchronization

package typealias RecordHandler = @convention(c) (UnsafePointer<bird_record>?, UnsafeMutableRawPointer?) -> Void
package typealias Destructor = @convention(c) (UnsafeMutableRawPointer?) -> Void

/// One handler of the program's. The destructor runs exactly once: through `runDestructor`, by whoever owns the moment.
/// `@unchecked Sendable`: immutable but for the atomics; `userData` is the program's own business.
package final class Binding: @unchecked Sendable {
    let number: UInt64
    let handler: RecordHandler
    let userData: UnsafeMutableRawPointer?
    /// Read by slots that may outlast this object's place in the lists, but not the object.
    let active = UnsafeMutablePointer<Atomic<Bool>>.allocate(capacity: 1)
    private let destructor: Destructor?
    private let destroyed = Atomic<Bool>(false)

    init(number: UInt64, handler: @escaping RecordHandler, userData: UnsafeMutableRawPointer?, destructor: Destructor?)
    {
        self.number = number
        self.handler = handler
        self.userData = userData
        self.destructor = destructor
        active.initialize(to: Atomic(true))
    }

    deinit {
        active.deinitialize(count: 1)
        active.deallocate()
    }

    var isActive: Bool { active.pointee.load(ordering: .relaxed) }

    /// No call starts after this.
    func deactivate() { active.pointee.store(false, ordering: .sequentiallyConsistent) }

    func runDestructor() {
        if !destroyed.exchange(true, ordering: .acquiringAndReleasing) { destructor?(userData) }
    }
}

/// The bindings of one channel, or of the client for all its channels: the master copy. All of it is guarded by the client's lock but
/// for `state`, which is the delivery context's; the version in it tells when that has to be made anew.
final class BindingScope {
    struct Entry {
        /// 0: every application event.
        var eventID: UInt32
        var binding: Binding
    }

    let state: UnsafeMutablePointer<ScopeState>
    /// In the cache line of the state: the slot of a scope with one binding, as most channels have it.
    private let single: UnsafeMutablePointer<BindingSlot>
    private var entries: [Entry] = []
    /// What the slots of `state` point into.
    private var owners: [Binding] = []

    init() {
        let slotOffset = MemoryLayout<ScopeState>.stride
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: slotOffset + MemoryLayout<BindingSlot>.stride, alignment: 64)
        state = memory.bindMemory(to: ScopeState.self, capacity: 1)
        state.initialize(to: ScopeState())
        single = (memory + slotOffset).bindMemory(to: BindingSlot.self, capacity: 1)
    }

    deinit {
        freeSlots()
        state.deinitialize(count: 1)
        state.deallocate()
    }

    private func freeSlots() {
        if let slots = state.pointee.slots, slots != single { slots.deallocate() }
    }

    var count: Int { entries.count }

    func add(_ entry: Entry) {
        entries.append(entry)
        state.pointee.version.wrappingAdd(1, ordering: .releasing)
    }

    func remove(_ number: UInt64) -> Binding? {
        guard let position = entries.firstIndex(where: { $0.binding.number == number }) else { return nil }
        let binding = entries.remove(at: position).binding
        state.pointee.version.wrappingAdd(1, ordering: .releasing)
        return binding
    }

    func removeAll(where isMeant: (Entry) -> Bool) -> [Binding] {
        let removed = entries.filter(isMeant).map(\.binding)
        entries.removeAll(where: isMeant)
        state.pointee.version.wrappingAdd(1, ordering: .releasing)
        return removed
    }

    /// On the delivery context, no handler of this scope running.
    func rebuild() {
        // A stable sort by id keeps the order of binding within each event.
        let sorted = entries.enumerated().sorted {
            ($0.element.eventID, $0.offset) < ($1.element.eventID, $1.offset)
        }.map(\.element)
        owners = sorted.map(\.binding)
        freeSlots()
        let slots = sorted.count <= 1 ? single : .allocate(capacity: sorted.count)
        for (position, entry) in sorted.enumerated() {
            (slots + position).initialize(
                to: BindingSlot(
                    eventID: entry.eventID, handler: entry.binding.handler, userData: entry.binding.userData,
                    isActive: UnsafePointer(entry.binding.active)))
        }
        state.pointee.slots = slots
        state.pointee.count = sorted.count
        state.pointee.globalCount = sorted.prefix { $0.eventID == 0 }.count
        state.pointee.seenVersion = state.pointee.version.load(ordering: .acquiring)
    }
}
