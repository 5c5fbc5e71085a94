import CBirdRealtimeABI
import Synchronization

/// Calls the program's handlers for one client. Used on the delivery context only, by one thread at a time.
final class Dispatcher {
    /// Set before first use; owns this object.
    unowned(unsafe) var client: Client?

    struct Observer {
        var kinds: UInt64
        var binding: Binding
    }

    private let hot: UnsafeMutablePointer<ClientHot>
    private var observers: [Observer] = []
    private var hasObservers = false
    private var seenObserversVersion: UInt32 = 0

    init(_ hot: UnsafeMutablePointer<ClientHot>) {
        self.hot = hot
    }

    private var isEnding: Bool { hot.pointee.ending.load(ordering: .relaxed) }

    /// Delivers records of a chunk in order, until `recordsMax`, the end or the end of the client. Returns how many.
    func deliver(_ chunk: RecordChunk, recordsMax: Int) -> Int {
        runRetired()
        let records = chunk.records
        let changes = chunk.rosterChanges
        let start = chunk.delivered
        let end = start + min(recordsMax, chunk.count - start)
        var position = start
        while position < end, !isEnding {
            let record = records + position
            if record.pointee.rosterChange >= 0 { changes[record.pointee.rosterChange].apply() }
            if record.pointee.visible.event_id == 0, let event = record.pointee.visible.event,
                chunk.namesVersion != hot.pointee.namesVersion.load(ordering: .acquiring), let client
            {
                // Bound since the record was made.
                record.pointee.visible.event_id = client.eventID(
                    UnsafeRawBufferPointer(start: event, count: Int(record.pointee.visible.event_length)))
            }
            position += 1
            chunk.delivered = position
            deliver(&record.pointee.visible, record.pointee.channel)
        }
        runRetired()
        return position - start
    }

    /// The channel's named handlers, its others, the client's named ones, its others; then observers.
    @inline(__always)
    func deliver(_ record: UnsafePointer<bird_record>, _ channel: UnsafeMutablePointer<ChannelHot>?) {
        if let channel { deliver(record, channel.pointee.scope, of: channel) }
        deliver(record, hot.pointee.scope, of: nil)
        if hot.pointee.observersVersion.load(ordering: .acquiring) != seenObserversVersion { refreshObservers() }
        if hasObservers { callObservers(record) }
    }

    @inline(__always)
    private func deliver(
        _ record: UnsafePointer<bird_record>, _ scope: UnsafeMutablePointer<ScopeState>,
        of channel: UnsafeMutablePointer<ChannelHot>?
    ) {
        if scope.pointee.version.load(ordering: .acquiring) != scope.pointee.seenVersion { rebuild(channel) }
        guard scope.pointee.count > 0 else { return }
        call(scope.pointee.named(record.pointee.event_id), record)
        if record.pointee.kind == UInt32(BIRD_RECORD_EVENT) { call(scope.pointee.global, record) }
    }

    @inline(__always)
    private func call(_ slots: UnsafeBufferPointer<BindingSlot>, _ record: UnsafePointer<bird_record>) {
        for slot in slots where slot.isActive.pointee.load(ordering: .relaxed) {
            if hot.pointee.ending.load(ordering: .relaxed) { return }
            slot.handler(record, slot.userData)
        }
    }

    @inline(never)
    private func rebuild(_ channel: UnsafeMutablePointer<ChannelHot>?) {
        guard let client else { return }
        let scope = channel?.pointee.channel.takeUnretainedValue().scope ?? client.book.scope
        client.lock.withLock { scope.rebuild() }
    }

    private func callObservers(_ record: UnsafePointer<bird_record>) {
        let bit = UInt64(1) << UInt64(record.pointee.kind & 63)
        // A copy: an observer may add or remove observers.
        let all = observers
        for observer in all where observer.kinds & bit != 0 {
            if observer.binding.isActive, !isEnding {
                observer.binding.handler(record, observer.binding.userData)
            }
        }
    }

    private func refreshObservers() {
        guard let client else { return }
        client.lock.withLock {
            seenObserversVersion = hot.pointee.observersVersion.load(ordering: .acquiring)
            observers = client.book.observers
            hasObservers = !observers.isEmpty
        }
    }

    /// Destructors of what was unbound; no handler is running now.
    func runRetired() {
        guard let client, client.book.hasRetired.load(ordering: .acquiring) else { return }
        for binding in client.takeRetired() { binding.runDestructor() }
    }
}
