package import CBirdRealtimeABI
import Synchronization

/// Statistics: written by one thread each (the reactor), read by any.
final class Counters: Sendable {
    let bytesReceived = Atomic<UInt64>(0)
    let messagesReceived = Atomic<UInt64>(0)
    let eventsDelivered = Atomic<UInt64>(0)
    let framesMalformed = Atomic<UInt64>(0)
    let framesUnroutable = Atomic<UInt64>(0)
    let bytesSent = Atomic<UInt64>(0)
    let messagesSent = Atomic<UInt64>(0)
    let clientEventsLost = Atomic<UInt64>(0)
    let connects = Atomic<UInt64>(0)
    let attempts = Atomic<UInt64>(0)
    let authorizations = Atomic<UInt64>(0)
    let readPauses = Atomic<UInt64>(0)
    let eventsDropped = Atomic<UInt64>(0)
    let attemptsRefused = Atomic<UInt64>(0)
    let watchlistEntriesMalformed = Atomic<UInt64>(0)
    let networkChanges = Atomic<UInt64>(0)
    let reconnects = Atomic<UInt64>(0)
    let connectionsLost = Atomic<UInt64>(0)
    let authorizationFailures = Atomic<UInt64>(0)
    let pingsSent = Atomic<UInt64>(0)
    let pongsMissed = Atomic<UInt64>(0)
    let roundTripUs = Atomic<UInt64>(0)
    /// When the present connection was made (`System.now`), 0: there is none; and how long those before it have lasted.
    private let connectedAtMs = Atomic<Int64>(0)
    private let connectedBeforeMs = Atomic<Int64>(0)

    func connected() { connectedAtMs.store(System.now().milliseconds, ordering: .relaxed) }

    func disconnected() {
        let lastedMs = connectedMs
        connectedAtMs.store(0, ordering: .relaxed)
        connectedBeforeMs.store(connectedBeforeMs.load(ordering: .relaxed) + lastedMs, ordering: .relaxed)
    }

    /// How long the present connection has lasted.
    var connectedMs: Int64 {
        let since = connectedAtMs.load(ordering: .relaxed)
        return since == 0 ? 0 : System.now().milliseconds - since
    }

    var connectedTotalMs: Int64 { connectedBeforeMs.load(ordering: .relaxed) + connectedMs }
    let decryptionFailures = Atomic<UInt64>(0)
    let keyRefreshes = Atomic<UInt64>(0)
}

extension Atomic<UInt64> {
    /// For a counter with one writer: a load and a store, no locked instruction.
    @inline(__always)
    func add(_ amount: UInt64) {
        store(load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }
}

extension Client {
    package var statistics: bird_statistics {
        let channels = lock.withLock { registeredChannelsLocked }
        return bird_statistics(
            struct_size: UInt32(MemoryLayout<bird_statistics>.size), reserved: 0,
            bytes_received: counters.bytesReceived.load(ordering: .relaxed),
            messages_received: counters.messagesReceived.load(ordering: .relaxed),
            events_delivered: counters.eventsDelivered.load(ordering: .relaxed),
            frames_malformed: counters.framesMalformed.load(ordering: .relaxed),
            frames_unroutable: counters.framesUnroutable.load(ordering: .relaxed),
            bytes_sent: counters.bytesSent.load(ordering: .relaxed),
            messages_sent: counters.messagesSent.load(ordering: .relaxed),
            client_events_lost: counters.clientEventsLost.load(ordering: .relaxed),
            connects: counters.connects.load(ordering: .relaxed),
            attempts: counters.attempts.load(ordering: .relaxed),
            authorizations: counters.authorizations.load(ordering: .relaxed),
            queue_records: UInt64(max(0, hot.pointee.queuedRecords.load(ordering: .relaxed))),
            queue_bytes: UInt64(max(0, hot.pointee.queuedBytes.load(ordering: .relaxed))),
            read_pauses: counters.readPauses.load(ordering: .relaxed),
            attempts_refused: counters.attemptsRefused.load(ordering: .relaxed),
            events_dropped: counters.eventsDropped.load(ordering: .relaxed),
            watchlist_entries_malformed: counters.watchlistEntriesMalformed.load(ordering: .relaxed),
            network_changes: counters.networkChanges.load(ordering: .relaxed),
            reconnects: counters.reconnects.load(ordering: .relaxed),
            connections_lost: counters.connectionsLost.load(ordering: .relaxed),
            authorization_failures: counters.authorizationFailures.load(ordering: .relaxed),
            pings_sent: counters.pingsSent.load(ordering: .relaxed),
            pongs_missed: counters.pongsMissed.load(ordering: .relaxed),
            round_trip_us: counters.roundTripUs.load(ordering: .relaxed),
            connected_ms: UInt64(max(0, counters.connectedMs)),
            connected_total_ms: UInt64(max(0, counters.connectedTotalMs)),
            outbound_bytes: UInt64(max(0, outboundBytes.load(ordering: .relaxed))),
            channels: UInt64(channels.count),
            channels_subscribed: UInt64(channels.count { $0.state == .subscribed }),
            log_entries_dropped: log.droppedEntries,
            decryption_failures: counters.decryptionFailures.load(ordering: .relaxed),
            key_refreshes: counters.keyRefreshes.load(ordering: .relaxed))
    }
}
