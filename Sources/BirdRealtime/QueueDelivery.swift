import BirdRealtimeCore
import CBirdRealtimeABI
import Dispatch
import Synchronization

/// Brings records to a dispatch queue: while records wait there is one block on the queue, which runs the handlers of what waits. The
/// bound of the record queue is thus the bound of everything: a slow queue, and a sequence of events that is full, leave the
/// records there, where the client's overflow policy acts.
final class QueueDelivery: Sendable {
    let queue: DispatchQueue
    let records: RecordQueue
    private let turn: Turn

    init(_ queue: DispatchQueue) {
        let turn = Turn(queue)
        self.queue = queue
        self.turn = turn
        // The turn owns the records while a block is on its way, so the records must not own the turn.
        records = RecordQueue(onReady: { [weak turn] in turn?.schedule() })
        turn.records.withLock { [records] in $0 = records }
    }

    func add(_ buffer: EventBuffer) {
        let refusal = turn.readers.withLock { readers in
            readers.buffers.append(buffer)
            return readers.refusal
        }
        if let refusal { buffer.finish(throwing: refusal) }
    }

    func remove(_ buffer: EventBuffer) {
        turn.readers.withLock { $0.buffers.removeAll { $0 === buffer } }
        resume()
    }

    /// The record of a new state of the connection is being delivered. One that the edge has refused for good brings no events.
    func follow(_ change: bird_state_change) {
        let refusal = change.current == BIRD_STATE_FAILED ? RealtimeError(change) : nil
        let buffers = turn.readers.withLock { readers in
            readers.refusal = refusal
            return readers.buffers
        }
        if let refusal { for buffer in buffers { buffer.finish(throwing: refusal) } }
    }

    /// A buffer has room again.
    func resume() { turn.schedule() }

    /// Calls `body` whenever delivery finds that it has to wait, with the tasks that it waits for.
    func whenHeldUp(_ body: @escaping @Sendable (_ tasks: [Int]) -> Void) {
        turn.whenHeldUp.withLock { $0 = body }
    }

    /// Tasks that delivery waits for.
    var delayingTasks: [Int] { turn.delayingTasks }

    private struct Readers {
        var buffers: [EventBuffer] = []
        /// Why the connection is in the state failed, as far as that was delivered.
        var refusal: RealtimeError?
    }

    private final class Turn: Sendable {
        private let queue: DispatchQueue
        private let isScheduled = Atomic<Bool>(false)
        let records = Mutex<RecordQueue?>(nil)
        let readers = Mutex(Readers())
        let whenHeldUp = Mutex<(@Sendable ([Int]) -> Void)?>(nil)

        init(_ queue: DispatchQueue) {
            self.queue = queue
        }

        func schedule() {
            guard !isScheduled.exchange(true, ordering: .acquiringAndReleasing) else { return }
            queue.async { [self] in run() }
        }

        /// How many records every buffer has room for, whatever they are.
        private var room: Int { readers.withLock { $0.buffers }.map { $0.room() }.min() ?? .max }

        var delayingTasks: [Int] { readers.withLock { $0.buffers }.compactMap(\.delayingTask) }

        private func run() {
            guard let records = records.withLock({ $0 }) else { return }
            let room = room
            if room > 0 { _ = try? records.dispatch(recordsMax: room == .max ? 0 : room) }
            // What came meanwhile waits its turn behind the queue's other blocks.
            isScheduled.store(false, ordering: .releasing)
            guard !records.isEmpty() else { return }
            if self.room > 0 {
                schedule()
            } else {
                whenHeldUp.withLock { $0 }?(delayingTasks)
            }
        }
    }
}
