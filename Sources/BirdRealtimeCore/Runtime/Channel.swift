import CBirdRealtimeABI
import Glibc
import Synchronization

/// A channel that the program holds, from subscribe to unsubscribe, across connections.
/// `@unchecked Sendable`: immutable but for atomics, and for what the client's lock guards.
package final class Channel: @unchecked Sendable {
    package let client: Client
    /// The member channel's is only the prefix; see `currentName`.
    package let name: String
    /// Every name that records may still point to; only the member channel has more than one.
    private var names: [UnsafePointer<CChar>] = []
    package let kind: ChannelKind
    package let isMemberChannel: Bool
    let hot: UnsafeMutablePointer<ChannelHot>
    let scope: BindingScope
    private let stateValue = Atomic<Int32>(ChannelState.idle.rawValue)
    private let unsubscribed = Atomic<Bool>(false)
    // Guarded by the client's lock.
    /// As far as records have been delivered.
    private var roster = Roster()
    private var myIDText = ""
    /// How the subscription stands, as far as it has been delivered.
    private(set) var standing: RecordContent?
    /// References that the program holds; guarded by the client's lock. The handle lives while this is not 0 or the channel is registered.
    private var references = 0
    package var handle: UInt { hot.pointee.handle }

    init(client: Client, name: String, isMemberChannel: Bool) {
        self.client = client
        self.name = name
        self.isMemberChannel = isMemberChannel
        kind = ChannelKind.of(name)
        let text = Self.copy(name)
        names = [text]
        scope = BindingScope(ownerBytes: MemoryLayout<ChannelHot>.stride)
        hot = scope.ownerMemory.bindMemory(to: ChannelHot.self, capacity: 1)
        hot.initialize(
            to: ChannelHot(
                channel: .passUnretained(self), handle: Handles.register(self, as: .channel),
                name: text, nameLength: UInt32(truncatingIfNeeded: name.utf8.count),
                scope: scope.state, isEncrypted: kind == .encrypted))
    }

    deinit {
        for name in names { name.deallocate() }
        hot.deinitialize(count: 1)
    }

    private static func copy(_ text: String) -> UnsafePointer<CChar> {
        let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: text.utf8.count + 1)
        for (position, byte) in text.utf8.enumerated() { buffer[position] = CChar(bitPattern: byte) }
        buffer[text.utf8.count] = 0
        return UnsafePointer(buffer)
    }

    /// The name as the edge knows it now.
    package var currentName: String {
        isMemberChannel ? ChannelName.ofMember(client.memberID) : name
    }

    /// From the driver: whose channel this is from now on.
    func follow(memberID: String) {
        let name = ChannelName.ofMember(memberID)
        guard String(cString: hot.pointee.name) != name else { return }
        let text = Self.copy(name)
        names.append(text)
        hot.pointee.name = text
        hot.pointee.nameLength = UInt32(truncatingIfNeeded: name.utf8.count)
    }

    var reference: ChannelReference { ChannelReference(hot) }

    package var state: ChannelState {
        if unsubscribed.load(ordering: .acquiring) { return .unsubscribed }
        return ChannelState(rawValue: stateValue.load(ordering: .acquiring)) ?? .idle
    }

    func setState(_ state: ChannelState) { stateValue.store(state.rawValue, ordering: .releasing) }

    package func setTag(_ tag: UInt64) { hot.pointee.tag.store(tag, ordering: .relaxed) }

    package var isUnsubscribed: Bool { unsubscribed.load(ordering: .acquiring) }

    package static let unsubscribedFault = Fault(
        BIRD_ERR_UNSUBSCRIBED, .channel, field: "channel",
        "The channel was unsubscribed; subscribe again for a new reference.")

    // MARK: References (the client's lock is held)

    func addReference() { references += 1 }
    var isReferenced: Bool { references > 0 }
    func dropReference() {
        if references > 0 { references -= 1 }
    }

    /// False if it was already.
    func markUnsubscribed() -> Bool { !unsubscribed.exchange(true, ordering: .acquiringAndReleasing) }

    /// Gives one reference of the program's back.
    package func release() {
        let isOver = client.lock.withLock {
            dropReference()
            return !isReferenced && (isUnsubscribed || client.isEnding)
        }
        if isOver { Handles.release(handle, .channel) }
    }

    // MARK: What was delivered (the client's lock is held)

    func takeUp(_ content: RecordContent) {
        standing = content
        // What has happened once does not happen again, and the channel does not keep itself alive.
        standing?.change = nil
        if content.data.bytes.count > RecordContent.standingBytesMax { standing?.data = .none }
    }

    /// The program asks anew.
    func forgetFailure() {
        if standing?.kind == BIRD_RECORD_SUBSCRIPTION_ERROR { standing = nil }
    }

    func forgetConnection() {
        roster = Roster()
        myIDText = ""
        standing = nil
    }

    // MARK: Presence

    func updateRoster(_ change: (inout Roster) -> Void) { client.lock.withLock { change(&roster) } }

    func replaceRoster(_ new: consuming Roster, myID: String) {
        // The old one goes after the lock: it may be large.
        var other = new
        client.lock.withLock {
            swap(&roster, &other)
            myIDText = myID
        }
    }

    package var members: [Member] { client.lock.withLock { roster.members } }
    package var rosterCopy: Roster { client.lock.withLock { roster.separated() } }
    package var memberCount: Int { client.lock.withLock { roster.count } }
    package var myID: String { client.lock.withLock { myIDText } }

    // MARK: Calls of the program

    /// Binds a handler for an event, nil: for every application event. Throws after running the destructor if refused.
    package func bind(
        _ event: UnsafeRawBufferPointer?, _ handler: @escaping RecordHandler, userData: UnsafeMutableRawPointer?,
        destructor: Destructor?
    ) throws(Fault) -> UInt64 {
        try client.bind(event, of: self, handler, userData: userData, destructor: destructor)
    }

    package func unsubscribe() throws(Fault) {
        guard !isMemberChannel else {
            throw Fault(BIRD_ERR_UNSUPPORTED, .channel, field: "channel", "The member channel follows the signin.")
        }
        try client.unsubscribe(self)
    }

    /// Queues a client event (Bird protocol 14).
    package func trigger(_ event: String, _ data: UnsafeRawBufferPointer?) throws(Fault) {
        guard !client.isClosed else { throw Client.closedFault }
        guard !isUnsubscribed else { throw Self.unsubscribedFault }
        guard kind.allowsClientEvents else {
            throw Fault(
                BIRD_ERR_UNSUPPORTED, .channel, field: "channel",
                "Client events exist on private and presence channels only, not on \(name).")
        }
        try EventName.checkClientEvent(event)
        if let data {
            guard data.count <= client.options.clientEventBytesMax else {
                throw Fault(
                    BIRD_ERR_SIZE, .argument, field: "client_event_bytes_max",
                    "The data has \(data.count) bytes, client_event_bytes_max is \(client.options.clientEventBytesMax)."
                )
            }
            guard JSONValidator.isValue(data) else {
                throw Fault(
                    BIRD_ERR_PAYLOAD, .argument, field: "data", "The data of a client event must be one JSON value.")
            }
        }
        guard state == .subscribed else {
            throw Fault(
                BIRD_ERR_NOT_SUBSCRIBED, .channel, field: "channel",
                "\(name) is not subscribed now; wait for \(client.options.dialect.subscriptionSucceeded).",
                isRetriable: true)
        }
        try client.queueClientEvent(self, event, data.map { Array($0) })
    }
}
