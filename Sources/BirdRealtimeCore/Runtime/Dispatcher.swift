import CBirdRealtimeABI
import Synchronization

/// Calls the program's handlers for one client. Used on the delivery context only, by one thread at a time.
final class Dispatcher {
    /// Set before first use; owns this object.
    unowned(unsafe) var client: Client?

    struct Observer: Sendable {
        var kinds: UInt64
        var binding: Binding
    }

    private let hot: UnsafeMutablePointer<ClientHot>
    private var observers: [Observer] = []
    /// Of all of them together, a bit each.
    private var observedKinds: UInt64 = 0
    private var seenObserversVersion: UInt32 = 0

    init(_ hot: UnsafeMutablePointer<ClientHot>) {
        self.hot = hot
    }

    private var isEnding: Bool { hot.pointee.ending.load(ordering: .relaxed) }

    /// Delivers records of a chunk in order, until `recordsMax`, the end or the end of the client. Returns how many.
    func deliver(_ chunk: RecordChunk, recordsMax: Int) -> Int {
        runChores()
        let records = chunk.records
        let contents = chunk.contents
        let start = chunk.delivered
        let end = start + min(recordsMax, chunk.count - start)
        var position = start
        while position < end, !isEnding {
            let record = records + position
            position += 1
            chunk.delivered = position
            if record.pointee.content >= 0 {
                let content = contents[record.pointee.content]
                if content.isStanding {
                    deliverStanding(record, content)
                    continue
                }
                if let change = content.change {
                    tellLate()
                    change.apply()
                }
            }
            if record.pointee.visible.event_length > 0, let event = record.pointee.visible.event,
                chunk.namesVersion != hot.pointee.namesVersion.load(ordering: .acquiring), let client
            {
                // Bound since the record was made, or bound anew under another number.
                record.pointee.visible.event_id = client.eventID(
                    UnsafeRawBufferPointer(start: event, count: Int(record.pointee.visible.event_length)))
            }
            deliver(&record.pointee.visible, record.pointee.channel)
        }
        runChores()
        return position - start
    }

    /// Whoever is bound when this holds is told now, whoever is bound from then on is told late.
    private func deliverStanding(_ record: UnsafeMutablePointer<StoredRecord>, _ content: RecordContent) {
        guard let client else { return }
        content.change?.apply()
        let channel = record.pointee.channel
        let late = client.lock.withLock {
            // Before anything changes: whoever is bound already, and has yet to be told how things stood, is told that first.
            let late = client.book.takeLate()
            if let channel {
                let name = UnsafeRawBufferPointer(
                    start: record.pointee.visible.event, count: Int(record.pointee.visible.event_length))
                record.pointee.visible.event_id = client.book.eventID(of: name)
                channel.pointee.channel.takeUnretainedValue().takeUp(content)
                rebuild(channel)
                rebuild(nil)
            } else if case .watchlist(let name, let ids) = content.change {
                client.book.watchlist.take(name, ids)
            }
            takeObservers()
            return late
        }
        tell(late)
        callHandlers(&record.pointee.visible, channel)
    }

    /// The channel's named handlers, the client's, then those for every event, in the same order; then observers.
    @inline(__always)
    func deliver(_ record: UnsafePointer<bird_record>, _ channel: UnsafeMutablePointer<ChannelHot>?) {
        if let channel, channel.pointee.scope.pointee.isChanged || hot.pointee.scope.pointee.isChanged {
            refresh(channel)
        }
        if hot.pointee.observersVersion.load(ordering: .acquiring) != seenObserversVersion { refresh(nil) }
        callHandlers(record, channel)
    }

    @inline(__always)
    private func callHandlers(
        _ record: UnsafePointer<bird_record>, _ channel: UnsafeMutablePointer<ChannelHot>?
    ) {
        if let channel {
            let (ofChannel, ofClient) = (channel.pointee.scope, hot.pointee.scope)
            if ofChannel.pointee.count > 0 { call(ofChannel.pointee.named(record.pointee.event_id), ofChannel, record) }
            if ofClient.pointee.count > 0 { call(ofClient.pointee.named(record.pointee.event_id), ofClient, record) }
            if record.pointee.kind == UInt32(BIRD_RECORD_EVENT) {
                call(ofChannel.pointee.global, ofChannel, record)
                call(ofClient.pointee.global, ofClient, record)
            }
        }
        let kind = UInt64(1) &<< UInt64(record.pointee.kind)
        if observedKinds & kind != 0 { callObservers(record, kind) }
    }

    /// As long as nothing has changed, all are active, and that lies elsewhere in memory.
    @inline(__always)
    private func call(
        _ slots: UnsafeBufferPointer<BindingSlot>, _ scope: UnsafeMutablePointer<ScopeState>,
        _ record: UnsafePointer<bird_record>
    ) {
        for slot in slots where !scope.pointee.isChanged || slot.isActive {
            if hot.pointee.ending.load(ordering: .relaxed) { return }
            slot.handler(record, slot.userData)
        }
    }

    /// Takes over what was bound and unbound, on this channel if there is one. Who was bound late is told first.
    @inline(never)
    private func refresh(_ channel: UnsafeMutablePointer<ChannelHot>?) {
        guard let client else { return }
        let late = client.lock.withLock {
            let late = client.book.takeLate()
            if let channel { rebuild(channel) }
            rebuild(nil)
            takeObservers()
            return late
        }
        tell(late)
    }

    /// The client's lock is held.
    private func rebuild(_ channel: UnsafeMutablePointer<ChannelHot>?) {
        guard let client else { return }
        let scope = channel?.pointee.channel.takeUnretainedValue().scope ?? client.book.scope
        if scope.state.pointee.isChanged { scope.rebuild() }
    }

    private func callObservers(_ record: UnsafePointer<bird_record>, _ kind: UInt64) {
        // A copy: an observer may add or remove observers.
        let all = observers
        for observer in all where observer.kinds & kind != 0 {
            if observer.binding.isActive, !isEnding {
                observer.binding.handler(record, observer.binding.userData)
            }
        }
    }

    /// The client's lock is held.
    private func takeObservers() {
        guard let client else { return }
        seenObserversVersion = hot.pointee.observersVersion.load(ordering: .acquiring)
        observers = client.book.observers
        observedKinds = observers.reduce(0) { $0 | $1.kinds }
    }

    /// Handlers that were bound late, then destructors of what was unbound; no handler is running now.
    func runChores() {
        tellLate()
        runRetired()
    }

    private func tellLate() {
        if let client, client.book.hasLate.load(ordering: .acquiring) { tell(client.takeLate()) }
    }

    /// Calls handlers with what was delivered before they were bound.
    private func tell(_ late: [(binding: Binding, contents: [RecordContent])]) {
        guard let client else { return }
        for (binding, contents) in late {
            for content in contents where binding.isActive && !isEnding {
                let chunk = ChunkPool.take(for: client, stringBytes: content.stringBytes, preferredBytes: 0)
                chunk.append(content, of: hot, eventID: client.eventID)
                binding.handler(&chunk.records.pointee.visible, binding.userData)
                ChunkPool.give(chunk)
            }
        }
    }

    func runRetired() {
        guard let client, client.book.hasRetired.load(ordering: .acquiring) else { return }
        for binding in client.takeRetired() { binding.runDestructor() }
    }
}
