import CBirdRealtimeABI
import Synchronization

/// Who is to be called for what, of one client and its channels. Guarded by the client's lock, but for `hasRetired`.
final class BindingBook {
    /// The bindings for every channel of the client.
    let scope = BindingScope()
    let names: InternedNames
    private var observersByNumber = FewOrMany<UInt64, Dispatcher.Observer>()
    /// There are bindings whose destructor has yet to run.
    let hasRetired = Atomic<Bool>(false)
    /// Bindings whose destructors wait for the delivery context, which may be inside a handler for long, before binding is refused.
    private static let retiredMax = 131_072
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
        names = InternedNames(hot)
    }

    /// Bindings and observers, of the client and of its channels.
    var count: Int { scope.count + channels.count + observersByNumber.count }

    /// In order of binding.
    var observers: [Dispatcher.Observer] {
        observersByNumber.values.sorted { $0.binding.number < $1.binding.number }
    }

    private func requireRoom() throws(Fault) {
        guard retired.count >= Self.retiredMax else { return }
        throw Fault(
            BIRD_ERR_FULL, .argument, field: "handler",
            "\(retired.count) handlers that were unbound wait for the delivery to run their destructors.",
            isRetriable: true)
    }

    /// `channel` nil: for every channel; `event` nil: for every application event. Returns the number of the binding.
    func bind(
        _ event: UnsafeRawBufferPointer?, of channel: Channel?, _ make: (UInt64) -> Binding
    ) throws(Fault) -> UInt64 {
        try requireRoom()
        let eventID = try event.map { (name) throws(Fault) in try use(name) } ?? 0
        lastNumber += 1
        let binding = make(lastNumber)
        (channel?.scope ?? scope).add(BindingScope.Entry(eventID: eventID, binding: binding))
        channels[lastNumber] = channel
        if eventID != 0, let standing = channel?.standing, self.eventID(of: standing.event) == eventID {
            addLate(binding, standing)
        }
        return lastNumber
    }

    func observe(_ kinds: UInt64, _ make: (UInt64) -> Binding) throws(Fault) -> UInt64 {
        try requireRoom()
        lastNumber += 1
        let binding = make(lastNumber)
        observersByNumber[lastNumber] = Dispatcher.Observer(kinds: kinds, binding: binding)
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
        if let observer = observersByNumber[number] {
            observersByNumber[number] = nil
            retire([BindingScope.Entry(eventID: 0, binding: observer.binding)])
            hot.pointee.observersVersion.wrappingAdd(1, ordering: .releasing)
            return true
        }
        guard let entry = (channels[number]?.scope ?? scope).remove(number) else { return false }
        retire([entry])
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

    private func retire(_ entries: [BindingScope.Entry]) {
        guard !entries.isEmpty else { return }
        for entry in entries {
            entry.binding.deactivate()
            channels[entry.binding.number] = nil
            if entry.eventID != 0 { names.giveBack(entry.eventID) }
            retired.append(entry.binding)
        }
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
            observersByNumber = FewOrMany()
            late = []
            forgetChannels()
        }
        var all = takeRetired() + observers.map(\.binding) + scope.removeAll { _ in true }.map(\.binding)
        for channel in channels { all += channel.scope.removeAll { _ in true }.map(\.binding) }
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

    /// The number of a name, which the program keeps.
    func intern(_ name: UnsafeRawBufferPointer) throws(Fault) -> UInt32 { try use(name, isPinned: true) }

    private func use(_ name: UnsafeRawBufferPointer, isPinned: Bool = false) throws(Fault) -> UInt32 {
        let text = String(decoding: name, as: UTF8.self)
        guard UTF8Validator.isValid(name), EventName.isValid(text) else {
            throw Fault(
                BIRD_ERR_NAME, .argument, field: "event", "An event name has 1 to 200 characters and is valid UTF-8.")
        }
        var known = dialect.ownName(of: text)
        guard let id = known.withUTF8({ names.use(UnsafeRawBufferPointer($0), isPinned: isPinned) }) else {
            throw Fault(
                BIRD_ERR_FULL, .argument, field: "event",
                "\(InternedNames.namesMax) different event names are bound, or were and are in records that wait.",
                isRetriable: true)
        }
        return id
    }
}
