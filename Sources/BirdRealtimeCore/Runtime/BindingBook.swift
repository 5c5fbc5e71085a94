import CBirdRealtimeABI
import Synchronization

/// Who is to be called for what, of one client and its channels. Guarded by the client's lock, but for `hasRetired`.
final class BindingBook {
    /// The bindings for every channel of the client.
    let scope = BindingScope()
    let names = InternedNames()
    private(set) var observers: [Dispatcher.Observer] = []
    /// There are bindings whose destructor has yet to run.
    let hasRetired = Atomic<Bool>(false)
    private let hot: UnsafeMutablePointer<ClientHot>
    private let dialect: Dialect
    /// Where a binding is; those of `scope` are not in it.
    private var channels = FewOrMany<UInt64, Channel>()
    private var lastNumber: UInt64 = 0
    private var retired: [Binding] = []
    /// As far as it has been delivered.
    var watchlist = Watchlist()
    /// Handlers that have yet to be told what was delivered before they were bound.
    private var late: [(binding: Binding, content: RecordContent?)] = []
    let hasLate = Atomic<Bool>(false)

    init(_ hot: UnsafeMutablePointer<ClientHot>, _ dialect: Dialect) {
        self.hot = hot
        self.dialect = dialect
    }

    /// Bindings and observers, of the client and of its channels.
    var count: Int { scope.count + channels.count + observers.count }

    /// `channel` nil: for every channel; `event` nil: for every application event. Returns the number of the binding.
    func bind(
        _ event: UnsafeRawBufferPointer?, of channel: Channel?, _ make: (UInt64) -> Binding
    ) throws(Fault) -> UInt64 {
        let eventID = try event.map { (name) throws(Fault) in try intern(name) } ?? 0
        lastNumber += 1
        let binding = make(lastNumber)
        (channel?.scope ?? scope).add(BindingScope.Entry(eventID: eventID, binding: binding))
        channels[lastNumber] = channel
        if eventID != 0, let standing = channel?.standing, self.eventID(of: standing.event) == eventID {
            addLate(binding, standing)
        }
        return lastNumber
    }

    func observe(_ kinds: UInt64, _ make: (UInt64) -> Binding) -> UInt64 {
        lastNumber += 1
        let binding = make(lastNumber)
        observers.append(Dispatcher.Observer(kinds: kinds, binding: binding))
        hot.pointee.observersVersion.wrappingAdd(1, ordering: .releasing)
        if kinds & (1 << UInt64(BIRD_RECORD_WATCHLIST)) != 0, !watchlist.isEmpty { addLate(binding, nil) }
        return lastNumber
    }

    /// `content` nil: how the watchlist stands when the handler is called.
    private func addLate(_ binding: Binding, _ content: RecordContent?) {
        late.append((binding, content))
        hasLate.store(true, ordering: .releasing)
    }

    func takeLate() -> [(binding: Binding, contents: [RecordContent])] {
        guard !late.isEmpty else { return [] }
        defer { late = [] }
        hasLate.store(false, ordering: .releasing)
        return late.map { ($0.binding, $0.content.map { [$0] } ?? watchlist.summary.map(RecordContent.watchlist)) }
    }

    /// False if there is no such binding (any more).
    func unbind(_ number: UInt64) -> Bool {
        if let position = observers.firstIndex(where: { $0.binding.number == number }) {
            retire([observers.remove(at: position).binding])
            hot.pointee.observersVersion.wrappingAdd(1, ordering: .releasing)
            return true
        }
        guard let binding = (channels[number]?.scope ?? scope).remove(number) else { return false }
        retire([binding])
        return true
    }

    /// `event` nil: those for every application event; `channel` nil: those for every channel.
    func unbind(_ event: UnsafeRawBufferPointer?, of channel: Channel?) {
        let eventID = event.map { self.eventID(of: dialect.ownName(of: String(decoding: $0, as: UTF8.self))) } ?? 0
        guard event == nil || eventID != 0 else { return }
        retire((channel?.scope ?? scope).removeAll { $0.eventID == eventID })
    }

    /// `channel` nil: those for every channel. Observers stay.
    func unbindAll(of channel: Channel?) { retire((channel?.scope ?? scope).removeAll { _ in true }) }

    private func retire(_ bindings: [Binding]) {
        guard !bindings.isEmpty else { return }
        for binding in bindings {
            binding.deactivate()
            channels[binding.number] = nil
        }
        retired.append(contentsOf: bindings)
        hasRetired.store(true, ordering: .releasing)
    }

    func takeRetired() -> [Binding] {
        defer { retired = [] }
        hasRetired.store(false, ordering: .releasing)
        return retired
    }

    /// The client has ended: everything that is left, unbound.
    func takeAll(of channels: [Channel]) -> [Binding] {
        defer {
            observers = []
            late = []
            forgetChannels()
        }
        var all = takeRetired() + observers.map(\.binding) + scope.removeAll { _ in true }
        for channel in channels { all += channel.scope.removeAll { _ in true } }
        for binding in all { binding.deactivate() }
        return all
    }

    func forgetChannels() { channels = FewOrMany() }

    /// 0: nobody has interned the name.
    func eventID(of name: UnsafeRawBufferPointer) -> UInt32 {
        InternedNames.entry(names.table.value(of: name))?.pointee.id ?? 0
    }

    private func eventID(of name: String) -> UInt32 {
        var name = name
        return name.withUTF8 { eventID(of: UnsafeRawBufferPointer($0)) }
    }

    func intern(_ name: UnsafeRawBufferPointer) throws(Fault) -> UInt32 {
        let text = String(decoding: name, as: UTF8.self)
        guard UTF8Validator.isValid(name), EventName.isValid(text) else {
            throw Fault(
                BIRD_ERR_NAME, .argument, field: "event", "An event name has 1 to 200 characters and is valid UTF-8.")
        }
        var known = dialect.ownName(of: text)
        guard let (id, isNew) = known.withUTF8({ names.intern(UnsafeRawBufferPointer($0)) }) else {
            throw Fault(
                BIRD_ERR_FULL, .argument, field: "event",
                "More than \(InternedNames.namesMax) different event names are bound.")
        }
        if isNew { hot.pointee.namesVersion.wrappingAdd(1, ordering: .releasing) }
        return id
    }
}
