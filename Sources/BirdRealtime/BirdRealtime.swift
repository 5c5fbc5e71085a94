import BirdRealtimeCore
import CBirdRealtimeABI
public import Dispatch
public import Foundation
import Synchronization

/// A connection to Bird Realtime and its channels. It reconnects, subscribes again and signs in again by itself.
///
///     let bird = BirdRealtime(options: .init(appKey: "your-app-key", region: "us1"))
///     bird.subscribe("orders").bind("order-updated") { data in
///         print("order changed:", data ?? "")
///     }
///
/// Every member may be used from every thread and from every handler, except where it says otherwise. Handlers run on the delivery
/// queue (the main queue unless the options name another), one at a time, in one order over everything that the client tells.
///
/// Releasing the client closes its connection; no handler is called after that. A handler that captures the client keeps it
/// alive: capture it weakly.
public final class BirdRealtime: Sendable {
    private let client: Result<Client, Fault>
    private let delivery: QueueDelivery
    private let channels = Mutex<[String: Channel]>([:])
    private let signins: Signins
    /// The events sent to the member signed in.
    public let member: MemberChannel

    /// Neither throws nor traps: with options that cannot be used the client is `failed` from the start.
    public init(options: BirdRealtimeOptions) {
        let delivery = QueueDelivery(options.deliveryQueue)
        client = Result { () throws(Fault) in try Client(options.forCore(delivery.records)) }
        member = MemberChannel(
            "member",
            MemberChannel.open(client) { (client) throws(Fault) in
                try client.memberChannelReference()
            }, delivery)
        self.delivery = delivery
        let signins = Signins(delivery)
        self.signins = signins
        observe(BIRD_RECORD_STATE) { [weak delivery] record in
            if let change = record.detail?.load(as: bird_state_change.self) { delivery?.follow(change) }
        }
        observe(BIRD_RECORD_COMPLETION) { signins.complete($0) }
        observe(BIRD_RECORD_SIGNED_IN) { signins.last = Member(memberData: $0.payload) }
        let requests = Requests(options)
        observe(BIRD_RECORD_REQUEST) { requests.answer($0) }
        if options.autoConnect { connect() }
    }

    /// The same with handlers on this queue.
    public convenience init(options: BirdRealtimeOptions, deliveryQueue: DispatchQueue) {
        var options = options
        options.deliveryQueue = deliveryQueue
        self.init(options: options)
    }

    deinit { _ = (try? client.get())?.destroy() }

    /// Why no connection is possible with these options; nil if one is. `onError` tells it too.
    public var configurationError: RealtimeError? {
        if case .failure(let fault) = client { RealtimeError(fault) } else { nil }
    }

    // MARK: Connection

    /// Where the connection stands at this moment.
    public var connectionState: ConnectionState { (try? client.get()).map { ConnectionState($0.state) } ?? .failed }

    /// The id that the edge gave to the present connection; nil if there is none.
    public var connectionId: String? { (try? client.get()).flatMap { $0.connectionID.isEmpty ? nil : $0.connectionID } }

    /// Opens a connection, now if one is only planned. No effect when connecting or connected. An error is told by `onError`.
    public func connect() {
        attempt { (client) throws(Fault) in try client.connect() }
    }

    /// Closes the connection and plans nothing; channels and handlers stay for a later `connect`. Events that were triggered
    /// and not yet written may be lost: `flush` first.
    public func disconnect() {
        attempt { (client) throws(Fault) in try client.disconnect() }
    }

    /// Waits on the calling thread until everything triggered so far has been written to the socket.
    ///
    /// - Parameter timeout: seconds.
    /// - Throws: `RealtimeError`: the time has passed, or this is inside a handler.
    public func flush(timeout: TimeInterval) throws {
        try perform { (client) throws(Fault) in try client.flush(timeoutMs: milliseconds(timeout)) }
    }

    /// Sends what was triggered, closes the connection and ends the client for good; no handler is called after that.
    /// Waits on the calling thread.
    ///
    /// - Parameter timeout: seconds that the edge is given to answer.
    /// - Throws: `RealtimeError`: the time has passed (the client is closed all the same), or this is inside a handler.
    public func close(timeout: TimeInterval = 5) throws {
        try perform { (client) throws(Fault) in
            // Inside a handler nothing is closed.
            defer { if client.isClosed { end(client) } }
            try client.close(timeoutMs: milliseconds(timeout))
        }
    }

    /// Counters since the client was made, and gauges of this moment.
    public var statistics: Statistics { Statistics((try? client.get())?.statistics ?? bird_statistics()) }

    /// All that a bug report should say of the client, as an object: versions, the options set, state, latest changes and errors,
    /// connection, plan, channels, statistics. Secrets and the values of headers are "***". Waits for nothing.
    public var dump: JSONValue { ((try? client.get())?.dump).flatMap { JSONValue(json: $0) } ?? .null }

    // MARK: Channels

    /// The channel of this name, subscribed now and on each later connection; the same object as long as it is not unsubscribed.
    /// Names that begin with "presence-" give a `PresenceChannel`, those with "private-encrypted-" an `EncryptedChannel`, others with
    /// "private-" a `PrivateChannel`.
    ///
    /// The answer is told to handlers that are bound later, too. What the edge sends with it, a cached event or the first count, may
    /// come before them on a connected client whose `deliveryQueue` is not the caller's: bind such handlers before `connect()`.
    ///
    /// A name that the protocol does not allow gives a channel that has failed: its `error`, `bird:subscription_error` on the
    /// channel and `onError` say why.
    @discardableResult
    public func subscribe(_ name: String) -> Channel {
        let channel = Channel.make(name, client, delivery) { (client) throws(Fault) in
            try client.subscribe(name, operation: 0)
        }
        guard let core = channel.core else { return channel }
        return channels.withLock { channels in
            // One object per channel; the other one gives its reference back.
            if let held = channels[name], held.core === core { return held }
            channels[name] = channel
            return channel
        }
    }

    /// Unsubscribes from the channel; its object and its handlers are of no further use. No effect on a channel that is not held.
    public func unsubscribe(_ name: String) {
        channels.withLock { $0.removeValue(forKey: name) }?.unsubscribe()
    }

    /// Calls the handler for each event of this name on every channel, after the handlers of the channel itself.
    @discardableResult
    public func bind(
        _ event: String, _ handler: @escaping @Sendable (_ channelName: String, _ data: JSONValue?) -> Void
    ) -> BindingToken {
        let names = RecordNames()
        return token { (client) throws(Fault) in
            try client.bind(event) { handler(names.channel(of: $0), $0.payload) }
        }
    }

    /// Calls the handler for each application event of every channel.
    @discardableResult
    public func bindGlobal(
        _ handler: @escaping @Sendable (_ channelName: String, _ event: String, _ data: JSONValue?) -> Void
    ) -> BindingToken {
        let names = RecordNames()
        return token { (client) throws(Fault) in
            try client.bind(nil) { handler(names.channel(of: $0), names.event(of: $0), $0.payload) }
        }
    }

    /// Removes a handler of this client or of one of its channels. Never waits: at most one call that is already running ends
    /// after it.
    public func unbind(_ token: BindingToken) {
        try? client.get().unbind(token.number)
    }

    /// Removes the handlers that were bound to this event of every channel, and no others.
    public func unbind(_ event: String) {
        attempt { (client) throws(Fault) in try client.unbind(event) }
    }

    /// Removes what `bind` and `bindGlobal` of this client have bound; a sequence of its events ends. What the `on…` functions have bound
    /// stays.
    public func unbindAll() {
        attempt { (client) throws(Fault) in try client.unbindAll() }
    }

    /// The application events of every channel, those sent to the member included, from now on.
    public func events() -> EventSequence {
        switch client {
        case .success(let client):
            EventSequence(
                EventSource(client, delivery) { (handler, _) throws(Fault) in
                    [try client.bind(nil, body: handler)]
                })
        case .failure(let fault): EventSequence(EventSource(failed: RealtimeError(fault), delivery))
        }
    }

    // MARK: Signin

    /// Signs this connection in as a member, and again by itself on each later connection. Calls at the same time share one signin.
    ///
    /// - Parameter refresh: sign in again although signed in already, for a changed watchlist.
    /// - Returns: the member that the edge accepted.
    /// - Throws: `RealtimeError`: denied, the connection was lost, or there is none and none is planned; `CancellationError`.
    @discardableResult
    public func signin(refresh: Bool = false) async throws -> Member {
        try await signins.wait { (number) throws(Fault) in
            try client.get().signin(refresh: refresh, operation: number)
        }
    }

    /// The member that this connection is signed in as at this moment.
    public var signedInMember: Member? {
        guard let id = (try? client.get())?.memberID, !id.isEmpty else { return nil }
        // The answer itself may still wait on the delivery queue.
        return signins.last.flatMap { $0.memberId == id ? $0 : nil } ?? Member(memberId: id)
    }

    // MARK: What the client tells

    /// Calls the handler for each change of the state.
    @discardableResult
    public func onConnectionStateChange(
        _ handler: @escaping @Sendable (_ previous: ConnectionState, _ current: ConnectionState) -> Void
    ) -> BindingToken {
        onConnectionChange { handler($0.previous, $0.current) }
    }

    /// The same with the reasons.
    @discardableResult
    public func onConnectionChange(_ handler: @escaping @Sendable (ConnectionChange) -> Void) -> BindingToken {
        observe(BIRD_RECORD_STATE) { $0.connectionChange.map(handler) }
    }

    /// Calls the handler before each attempt that is planned: `delay` says when it comes.
    @discardableResult
    public func onConnectingIn(_ handler: @escaping @Sendable (ConnectionChange) -> Void) -> BindingToken {
        observe(BIRD_RECORD_CONNECTING_IN) { $0.connectionChange.map(handler) }
    }

    /// Calls the handler once whenever an established connection is lost.
    @discardableResult
    public func onConnectionLost(_ handler: @escaping @Sendable () -> Void) -> BindingToken {
        observe(BIRD_RECORD_CONNECTION_LOST) { _ in handler() }
    }

    /// Calls the handler for each error of the connection: refusals of the edge (`code` 4009 and others), attempts that failed, errors
    /// that the edge reports (`channel` is the one that it names), channel names that are not allowed, and the error of the configuration.
    @discardableResult
    public func onError(_ handler: @escaping @Sendable (RealtimeError) -> Void) -> BindingToken {
        if let configurationError {
            // Whenever it is bound, a handler hears of this one.
            delivery.queue.async { handler(configurationError) }
            return .none
        }
        return observe(BIRD_RECORD_ERROR) { $0.failure.map(handler) }
    }

    /// Calls the handler for each signin that the client made by itself on a new connection and that failed.
    @discardableResult
    public func onSigninError(_ handler: @escaping @Sendable (RealtimeError) -> Void) -> BindingToken {
        observe(BIRD_RECORD_SIGNIN_ERROR) { $0.failure.map(handler) }
    }

    /// Calls the handler for each signin that succeeded, those that the client made by itself included.
    @discardableResult
    public func onSignedIn(_ handler: @escaping @Sendable (Member) -> Void) -> BindingToken {
        observe(BIRD_RECORD_SIGNED_IN) { handler(Member(memberData: $0.payload)) }
    }

    // MARK: On to the core

    private func end(_ client: Client) {
        _ = client.destroy()
        signins.endAll(RealtimeError(Client.closedFault))
    }

    @discardableResult
    private func observe(_ kind: Int32, _ body: @escaping RecordBody) -> BindingToken {
        token { (client) throws(Fault) in try client.observe(kind, body: body) }
    }

    private func token(_ register: (Client) throws(Fault) -> UInt64) -> BindingToken {
        (try? client.get())?.token(register) ?? .none
    }

    func attempt(_ body: (Client) throws(Fault) -> Void) {
        guard let client = try? client.get() else { return }
        do throws(Fault) {
            try body(client)
        } catch {
            client.report(error)
        }
    }

    func perform(_ body: (Client) throws(Fault) -> Void) throws {
        do throws(Fault) {
            try body(client.get())
        } catch {
            throw RealtimeError(error)
        }
    }
}
