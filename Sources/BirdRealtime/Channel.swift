import BirdRealtimeCore
import Dispatch

/// A channel that the program wants to be subscribed to, from `subscribe` to `unsubscribe`, across connections. Every member may be
/// used from every thread.
///
/// `@unchecked Sendable`: immutable, with state in the core, which guards it; unchecked only because it has subclasses.
public class Channel: @unchecked Sendable {
    public let name: String
    /// Why it cannot ever be subscribed: a name that the protocol does not allow, or options that no client can use.
    public let error: RealtimeError?
    let core: BirdRealtimeCore.Channel?
    private let delivery: QueueDelivery

    required init(_ name: String, _ core: Result<BirdRealtimeCore.Channel, Fault>, _ delivery: QueueDelivery) {
        self.name = name
        self.core = try? core.get()
        if case .failure(let fault) = core { error = RealtimeError(fault) } else { error = nil }
        self.delivery = delivery
    }

    /// The channel that `open` gives, of the class that belongs to its name. A refusal is reported and makes a failed one.
    static func make(
        _ name: String, _ client: Result<Client, Fault>, _ delivery: QueueDelivery,
        _ open: (Client) throws(Fault) -> BirdRealtimeCore.Channel
    ) -> Channel {
        let type =
            switch ChannelKind.of(name) {
            case .presence: PresenceChannel.self
            case .encrypted: EncryptedChannel.self
            case .private: PrivateChannel.self
            case .public, .member: Channel.self
            }
        return type.init(name, self.open(client, open), delivery)
    }

    static func open(
        _ client: Result<Client, Fault>, _ open: (Client) throws(Fault) -> BirdRealtimeCore.Channel
    ) -> Result<BirdRealtimeCore.Channel, Fault> {
        let core = client.flatMap { client in Result { () throws(Fault) in try open(client) } }
        if case .success(let client) = client, case .failure(let fault) = core { client.report(fault) }
        return core
    }

    deinit { core?.release() }

    /// True if events arrive and can be sent at this moment.
    public var subscribed: Bool { core?.state == .subscribed }

    /// True once the subscription was denied, or if it never can succeed; `subscribe` tries again.
    public var failed: Bool { core.map { $0.state == .failed } ?? true }

    /// Calls the handler, on the delivery queue, for each event of this name, those of `BirdProtocol.Event` included. Handlers of one
    /// event run in the order of binding: the channel's, the client's, then those that `bindGlobal` has bound. One for
    /// `subscriptionSucceeded` or `subscriptionError` that is bound when this is how the subscription stands already hears of it
    /// once. The channel keeps the handler until it is unbound or the channel is unsubscribed: capture what owns the client weakly.
    @discardableResult
    public func bind(_ event: String, _ handler: @escaping @Sendable (_ data: JSONValue?) -> Void) -> BindingToken {
        guard let core else {
            // Whenever it is bound, a handler for errors hears of this one.
            if let error, event == BirdProtocol.Event.subscriptionError {
                delivery.queue.async { handler(error.json(willRetry: false)) }
            }
            return .none
        }
        return core.client.token { _ throws(Fault) in try core.bind(event) { handler($0.payload) } }
    }

    /// Calls the handler for each application event of this channel; those of `BirdProtocol.Event` are not among them.
    @discardableResult
    public func bindGlobal(
        _ handler: @escaping @Sendable (_ event: String, _ data: JSONValue?) -> Void
    ) -> BindingToken {
        guard let core else { return .none }
        let names = RecordNames()
        return core.client.token { _ throws(Fault) in
            try core.bind(nil) { handler(names.event(of: $0), $0.payload) }
        }
    }

    /// The channel's application events from now on.
    public func events() -> EventSequence {
        guard let core else {
            return EventSequence(EventSource(failed: error ?? RealtimeError(Client.closedFault), delivery))
        }
        return EventSequence(
            EventSource(core.client, delivery) { (handler, buffer) throws(Fault) in
                [
                    try core.bind(nil, body: handler),
                    try core.bind(BirdProtocol.Event.subscriptionError) {
                        $0.denial.map { buffer.finish(throwing: $0) }
                    },
                ]
            })
    }

    /// Removes a handler. Never waits: at most one call that is already running ends after it.
    public func unbind(_ token: BindingToken) {
        try? core?.client.unbind(token.number)
    }

    /// Removes the handlers that were bound to this event.
    public func unbind(_ event: String) {
        guard let core else { return }
        try? core.client.unbind(event, of: core)
    }

    /// Removes every handler of the channel; a sequence of its events ends.
    public func unbindAll() {
        guard let core else { return }
        try? core.client.unbindAll(of: core)
    }

    /// Sends an event to the other subscribers of a private or presence channel; nothing is sent back to this one. The name begins
    /// with "client-". What was not written when the connection is lost is not sent later.
    ///
    /// - Returns: true if it is on its way; false if the channel is not subscribed now.
    /// - Throws: `RealtimeError` for a name, a payload or a kind of channel that cannot work, or when too much waits to be written.
    @discardableResult
    public func trigger(_ event: String, data: JSONValue? = nil) throws -> Bool {
        guard let core else { return false }
        do throws(Fault) {
            if let data {
                try data.bytes.withUnsafeBufferPointer { (bytes) throws(Fault) in
                    try core.trigger(event, UnsafeRawBufferPointer(bytes))
                }
            } else {
                try core.trigger(event, nil)
            }
            return true
        } catch {
            if RealtimeError(error).kind == .notSubscribed { return false }
            throw RealtimeError(error)
        }
    }

    func unsubscribe() {
        try? core?.unsubscribe()
    }
}

// The subclasses add no state: they are as Sendable as Channel is.

/// A channel that the application's backend authorizes ("private-…").
public class PrivateChannel: Channel, @unchecked Sendable {}

/// A private channel whose events only subscribers can read ("private-encrypted-…"). The authorizer gives its key, which stays in this
/// process. `trigger` throws. An event that neither the key at hand nor the one then asked for opens is lost and told by
/// `BirdProtocol.Event.decryptionError`.
public final class EncryptedChannel: PrivateChannel, @unchecked Sendable {}

/// The events sent to the member signed in. Bind to it at any time; it can be neither triggered on nor unsubscribed.
public final class MemberChannel: Channel, @unchecked Sendable {
    /// Who is there of the members that this one watches.
    public var watchlist: Watchlist { Watchlist(client: core?.client) }
}

/// A private channel that knows who is there ("presence-…").
public final class PresenceChannel: PrivateChannel, @unchecked Sendable {
    /// The members by id. Inside a handler this is the roster as of that event; empty while not subscribed.
    public var members: [String: Member] {
        (core?.members ?? []).reduce(into: [:]) { $0[$1.id] = Member($1) }
    }

    /// How many members there are.
    public var memberCount: Int { core?.memberCount ?? 0 }

    /// The id of this connection's own member; nil while not subscribed.
    public var myId: String? { core.flatMap { $0.myID.isEmpty ? nil : $0.myID } }
}
