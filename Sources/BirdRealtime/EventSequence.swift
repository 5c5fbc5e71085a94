import BirdRealtimeCore
import CBirdRealtimeABI

/// An application event of a channel, as sequences give it.
public struct ChannelEvent: Sendable, Hashable {
    /// The channel it came on; for events sent to the member signed in, the member channel.
    public let channelName: String
    public let name: String
    /// nil if the event carries none.
    public let data: JSONValue?
    /// The id of the member that sent a client event, where the edge says so: on presence channels. Else nil.
    public let sender: String?

    init(_ record: bird_record, _ names: RecordNames) {
        channelName = names.channel(of: record)
        name = names.event(of: record)
        data = record.payload
        sender = record.senderID
    }
}

/// Application events from the moment that the sequence was made, each once.
///
///     for try await event in bird.subscribe("orders").events() {
///         print(event.name, event.data ?? "")
///     }
///
/// It ends when the channel is unsubscribed, when the client is closed or released, and with nil when the task is cancelled; it
/// throws the `RealtimeError` that ended it when the subscription is denied or the edge refuses the connection for good. Events
/// delivered before that come first. What is missed while a connection is down is missed here too: bind
/// `BirdProtocol.Event.subscriptionSucceeded` to learn of it.
///
/// A sequence that is made and not kept up with holds up, 256 events later, all that its client delivers, as a slow handler does;
/// the option `overflow` says what becomes of the rest, and nothing is lost in silence. Let go of one that is no longer read.
/// Tasks that read from the same sequence share its events.
public struct EventSequence: AsyncSequence, Sendable {
    public typealias Element = ChannelEvent
    public typealias Failure = RealtimeError

    private let source: EventSource

    init(_ source: EventSource) {
        self.source = source
    }

    public func makeAsyncIterator() -> Iterator { Iterator(source: source) }

    public struct Iterator: AsyncIteratorProtocol {
        let source: EventSource

        public func next() async throws(RealtimeError) -> ChannelEvent? {
            try await next(isolation: nil)
        }

        public func next(isolation actor: isolated (any Actor)?) async throws(RealtimeError) -> ChannelEvent? {
            try await source.buffer.next(isolation: actor)
        }
    }
}

/// What fills one sequence, as long as somebody holds that.
final class EventSource: Sendable {
    let buffer: EventBuffer
    private let client: Client?
    private let delivery: QueueDelivery
    private let bindings: [UInt64]

    /// A sequence that has nothing to tell but why.
    init(failed error: RealtimeError, _ delivery: QueueDelivery) {
        buffer = EventBuffer(delivery)
        client = nil
        self.delivery = delivery
        bindings = []
        buffer.finish(throwing: error)
    }

    /// - Parameter bind: binds what fills the buffer, and is given the handler of application events.
    init(
        _ client: Client, _ delivery: QueueDelivery,
        _ bind: (_ events: @escaping RecordBody, EventBuffer) throws(Fault) -> [UInt64]
    ) {
        let buffer = EventBuffer(delivery)
        self.buffer = buffer
        self.client = client
        self.delivery = delivery
        delivery.add(buffer)
        let end = EndOfEvents(buffer)
        let names = RecordNames()
        var bindings: [UInt64] = []
        do throws(Fault) {
            bindings = try bind({ end.buffer.append(ChannelEvent($0, names)) }, buffer)
        } catch {
            buffer.finish(throwing: RealtimeError(error))
        }
        self.bindings = bindings
    }

    deinit {
        for binding in bindings { try? client?.unbind(binding) }
        delivery.remove(buffer)
    }
}

/// Held by the handler of the events: where that is unbound, the channel or the client has ended.
private final class EndOfEvents: Sendable {
    let buffer: EventBuffer

    init(_ buffer: EventBuffer) {
        self.buffer = buffer
    }

    deinit { buffer.finish() }
}
