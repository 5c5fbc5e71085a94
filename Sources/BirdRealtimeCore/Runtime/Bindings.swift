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
    private let active = Atomic<Bool>(true)
    private let destructor: Destructor?
    private let destroyed = Atomic<Bool>(false)

    init(number: UInt64, handler: @escaping RecordHandler, userData: UnsafeMutableRawPointer?, destructor: Destructor?)
    {
        self.number = number
        self.handler = handler
        self.userData = userData
        self.destructor = destructor
    }

    var isActive: Bool { active.load(ordering: .relaxed) }

    /// No call starts after this.
    func deactivate() { active.store(false, ordering: .sequentiallyConsistent) }

    func runDestructor() {
        if !destroyed.exchange(true, ordering: .acquiringAndReleasing) { destructor?(userData) }
    }
}

/// The bindings of one channel, or of the client for all its channels: the master copy. All of it is guarded by the client's lock but
/// for `state`, which is the delivery context's; the version in it tells when that has to be made anew.
final class BindingScope {
    struct Entry: Sendable {
        /// 0: every application event.
        var eventID: UInt32
        var binding: Binding
    }

    /// One block: room for what the owner reads beside it, the state, and the slot of a scope with one binding, as most channels have it.
    /// With an owner it is two cache lines side by side, all that an event on one of many channels touches of both.
    let ownerMemory: UnsafeMutableRawPointer
    let state: UnsafeMutablePointer<ScopeState>
    private let single: UnsafeMutablePointer<BindingSlot>
    /// By the numbers of the bindings, which grow: their order is the order of binding.
    private var entries = FewOrMany<UInt64, Entry>()
    /// What the slots of `state` point into.
    private var owners: [Binding] = []

    private static let cacheLineBytes = 64

    /// The owner initializes and deinitializes what it keeps in `ownerMemory`.
    init(ownerBytes: Int = 0) {
        let headBytes = (ownerBytes + Self.cacheLineBytes - 1) / Self.cacheLineBytes * Self.cacheLineBytes
        let stateBytes = MemoryLayout<ScopeState>.stride
        ownerMemory = .allocate(
            byteCount: headBytes + stateBytes + MemoryLayout<BindingSlot>.stride,
            alignment: ownerBytes == 0 ? MemoryLayout<ScopeState>.alignment : Self.cacheLineBytes)
        state = (ownerMemory + headBytes).bindMemory(to: ScopeState.self, capacity: 1)
        single = (ownerMemory + headBytes + stateBytes).bindMemory(to: BindingSlot.self, capacity: 1)
        state.initialize(to: ScopeState())
    }

    deinit {
        freeSlots()
        state.deinitialize(count: 1)
        ownerMemory.deallocate()
    }

    private func freeSlots() {
        if let slots = state.pointee.slots, slots != single { slots.deallocate() }
    }

    var count: Int { entries.count }

    func add(_ entry: Entry) {
        entries[entry.binding.number] = entry
        state.pointee.version.wrappingAdd(1, ordering: .releasing)
    }

    func remove(_ number: UInt64) -> Entry? {
        guard let entry = entries[number] else { return nil }
        entries[number] = nil
        state.pointee.version.wrappingAdd(1, ordering: .releasing)
        return entry
    }

    /// In order of binding.
    func removeAll(where isMeant: (Entry) -> Bool) -> [Entry] {
        let removed = entries.values.filter(isMeant).sorted { $0.binding.number < $1.binding.number }
        if removed.count == entries.count {
            entries = FewOrMany()
        } else {
            for entry in removed { entries[entry.binding.number] = nil }
        }
        state.pointee.version.wrappingAdd(1, ordering: .releasing)
        return removed
    }

    /// On the delivery context, no handler of this scope running.
    func rebuild() {
        let sorted = entries.values.sorted {
            ($0.eventID, $0.binding.number) < ($1.eventID, $1.binding.number)
        }
        owners = sorted.map(\.binding)
        freeSlots()
        let slots = sorted.count <= 1 ? single : .allocate(capacity: sorted.count)
        for (position, entry) in sorted.enumerated() {
            (slots + position).initialize(
                to: BindingSlot(
                    eventID: entry.eventID, handler: entry.binding.handler, userData: entry.binding.userData,
                    binding: .passUnretained(entry.binding)))
        }
        state.pointee.slots = slots
        state.pointee.count = sorted.count
        state.pointee.globalCount = sorted.prefix { $0.eventID == 0 }.count
        state.pointee.seenVersion = state.pointee.version.load(ordering: .acquiring)
    }
}
