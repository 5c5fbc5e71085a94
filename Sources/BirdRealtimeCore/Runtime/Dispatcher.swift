import CBirdRealtimeABI
import Synchronization

/// Calls the program's handlers for one client. Used on the delivery context only, by one thread at a time.
final class Dispatcher {
    private unowned(unsafe) let client: Client

    struct Observer {
        var kinds: UInt64
        var binding: Binding
    }

    private var observers: [Observer] = []
    private var seenObserversVersion: UInt32 = 0

    init(client: Client) {
        self.client = client
    }

    /// Delivers records of a chunk in order, until `recordsMax`, the end or the end of the client. Returns how many.
    func deliver(_ chunk: RecordChunk, recordsMax: Int) -> Int {
        runRetired()
        let records = chunk.records
        let changes = chunk.rosterChanges
        let start = chunk.delivered
        let end = start + min(recordsMax, chunk.count - start)
        var position = start
        while position < end, !client.isEnding {
            let record = records + position
            if record.pointee.rosterChange >= 0 { changes[record.pointee.rosterChange].apply() }
            if record.pointee.visible.event_id == 0, let event = record.pointee.visible.event,
                chunk.namesVersion != client.namesVersion
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

    /// Named handlers, channel-global ones, those of the client, then observers.
    @inline(__always)
    func deliver(_ record: UnsafePointer<bird_record>, _ channel: Unmanaged<Channel>?) {
        let isApplicationEvent = record.pointee.kind == UInt32(BIRD_RECORD_EVENT)
        let eventID = record.pointee.event_id
        if let channel {
            let scope = channel._withUnsafeGuaranteedRef { $0.scope }
            scope.refresh(client.lock)
            let index = scope.index
            if !index.isEmpty {
                call(index.named(eventID), record)
                if isApplicationEvent { call(index.global, record) }
                // Keeps the block alive for as long as it is walked.
                withExtendedLifetime(index) {}
            }
        }
        let scope = client.scope
        scope.refresh(client.lock)
        let index = scope.index
        if !index.isEmpty {
            call(index.named(eventID), record)
            if isApplicationEvent { call(index.global, record) }
            withExtendedLifetime(index) {}
        }
        if client.observersVersion.load(ordering: .acquiring) != seenObserversVersion { refreshObservers() }
        if !observers.isEmpty { callObservers(record) }
    }

    @inline(__always)
    private func call(_ slots: UnsafeBufferPointer<BindingIndex.Slot>, _ record: UnsafePointer<bird_record>) {
        for slot in slots {
            slot.binding._withUnsafeGuaranteedRef {
                if $0.isActive, !client.isEnding { $0.handler(record, $0.userData) }
            }
        }
    }

    private func callObservers(_ record: UnsafePointer<bird_record>) {
        let bit = UInt64(1) << UInt64(record.pointee.kind & 63)
        // A copy: an observer may add or remove observers.
        let all = observers
        for observer in all where observer.kinds & bit != 0 {
            if observer.binding.isActive, !client.isEnding {
                observer.binding.handler(record, observer.binding.userData)
            }
        }
    }

    private func refreshObservers() {
        client.lock.withLock {
            seenObserversVersion = client.observersVersion.load(ordering: .acquiring)
            observers = client.observers
        }
    }

    /// Destructors of what was unbound; no handler is running now.
    func runRetired() {
        guard client.hasRetired.load(ordering: .acquiring) else { return }
        for binding in client.takeRetired() { binding.runDestructor() }
    }
}
