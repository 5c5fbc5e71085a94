import CBirdRealtimeABI
public import Foundation

/// Counters since the client was made, and gauges.
public struct Statistics: Sendable, Hashable {
    public let bytesReceived: UInt64
    public let messagesReceived: UInt64
    /// Application events for the delivery, dropped ones included.
    public let eventsDelivered: UInt64
    /// Messages that were no JSON object with the name of an event.
    public let framesMalformed: UInt64
    /// Events for channels that are not subscribed here.
    public let framesUnroutable: UInt64
    public let bytesSent: UInt64
    public let messagesSent: UInt64
    /// Client events that were accepted, and not written when the connection was lost.
    public let clientEventsLost: UInt64
    /// Handshakes.
    public let connects: UInt64
    /// Connections tried.
    public let attempts: UInt64
    /// Authorizations asked for.
    public let authorizations: UInt64
    /// Gauge: records that wait for the delivery queue.
    public let queueRecords: UInt64
    /// Gauge: their bytes.
    public let queueBytes: UInt64
    /// How often reading paused because the delivery queue was slow.
    public let readPauses: UInt64
    /// Planned attempts that the program refused.
    public let attemptsRefused: UInt64
    /// Application events dropped because the delivery queue was slow (`BirdRealtimeOptions.overflow`).
    public let eventsDropped: UInt64
    /// Entries of watchlist messages that are none, or messages without any.
    public let watchlistEntriesMalformed: UInt64
    /// Handshakes but the first.
    public let reconnects: UInt64
    /// Connections that ended without the program's doing, and were not refused.
    public let connectionsLost: UInt64
    /// Authorizations that were refused, unusable, or not answered in time.
    public let authorizationFailures: UInt64
    public let pingsSent: UInt64
    /// Pings that were not answered in time.
    public let pongsMissed: UInt64
    /// Gauge: seconds from the last ping to its pong; nil: none yet.
    public let roundTrip: TimeInterval?
    /// Gauge: seconds that the present connection has lasted.
    public let connectedTime: TimeInterval
    /// Seconds that all of them have lasted.
    public let connectedTimeTotal: TimeInterval
    /// Gauge: bytes of client events not yet written.
    public let outboundBytes: UInt64
    /// Gauge: channels wanted, that of the member left out.
    public let channels: UInt64
    /// Gauge: those of them that are subscribed.
    public let channelsSubscribed: UInt64
    /// Log entries that a sink had no room for.
    public let logEntriesDropped: UInt64
    /// Changes of the network that concerned the client, hints and suspends included.
    public let networkChanges: UInt64
    /// Events of encrypted channels that could not be opened.
    public let decryptionFailures: UInt64
    /// Times that the key of a subscribed channel was asked for again.
    public let keyRefreshes: UInt64

    init(_ core: bird_statistics) {
        bytesReceived = core.bytes_received
        messagesReceived = core.messages_received
        eventsDelivered = core.events_delivered
        framesMalformed = core.frames_malformed
        framesUnroutable = core.frames_unroutable
        bytesSent = core.bytes_sent
        messagesSent = core.messages_sent
        clientEventsLost = core.client_events_lost
        connects = core.connects
        attempts = core.attempts
        authorizations = core.authorizations
        queueRecords = core.queue_records
        queueBytes = core.queue_bytes
        readPauses = core.read_pauses
        attemptsRefused = core.attempts_refused
        eventsDropped = core.events_dropped
        watchlistEntriesMalformed = core.watchlist_entries_malformed
        decryptionFailures = core.decryption_failures
        keyRefreshes = core.key_refreshes
        networkChanges = core.network_changes
        reconnects = core.reconnects
        connectionsLost = core.connections_lost
        authorizationFailures = core.authorization_failures
        pingsSent = core.pings_sent
        pongsMissed = core.pongs_missed
        roundTrip = core.round_trip_us == 0 ? nil : TimeInterval(core.round_trip_us) / 1_000_000
        connectedTime = TimeInterval(core.connected_ms) / 1_000
        connectedTimeTotal = TimeInterval(core.connected_total_ms) / 1_000
        outboundBytes = core.outbound_bytes
        channels = core.channels
        channelsSubscribed = core.channels_subscribed
        logEntriesDropped = core.log_entries_dropped
    }
}
