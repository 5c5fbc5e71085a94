import BirdRealtimeCore
import Dispatch
import Synchronization

/// Brings records to a dispatch queue: while records wait there is one block on the queue, which runs the handlers of what waits. The
/// bound of the record queue is thus the bound of everything, and a slow queue makes the client stop reading.
final class QueueDelivery: Sendable {
    let records: RecordQueue
    private let turn: Turn

    init(_ queue: DispatchQueue) {
        let turn = Turn(queue)
        self.turn = turn
        // The turn owns the records while a block is on its way, so the records must not own the turn.
        records = RecordQueue(onReady: { [weak turn] in turn?.schedule() })
        turn.records.withLock { [records] in $0 = records }
    }

    private final class Turn: Sendable {
        private let queue: DispatchQueue
        private let isScheduled = Atomic<Bool>(false)
        let records = Mutex<RecordQueue?>(nil)

        init(_ queue: DispatchQueue) {
            self.queue = queue
        }

        func schedule() {
            guard !isScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
            queue.async { [self] in run() }
        }

        private func run() {
            guard let records = records.withLock({ $0 }) else { return }
            _ = try? records.dispatch(recordsMax: 0)
            // What came meanwhile waits its turn behind the queue's other blocks.
            isScheduled.store(false, ordering: .releasing)
            if !records.isEmpty { schedule() }
        }
    }
}
