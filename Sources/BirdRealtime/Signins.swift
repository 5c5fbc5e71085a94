import BirdRealtimeCore
import CBirdRealtimeABI
import Synchronization

/// The calls of `signin()` that wait for their answer, and who is signed in.
final class Signins: Sendable {
    private struct State {
        var number: UInt64 = 0
        var waiting: [UInt64: (task: Int?, continuation: CheckedContinuation<Member, any Error>)] = [:]
        var last: Member?
    }

    private let state = Mutex(State())

    private let delivery: QueueDelivery

    init(_ delivery: QueueDelivery) {
        self.delivery = delivery
        delivery.whenHeldUp { [weak self] tasks in self?.refuse(tasks) }
    }

    /// Waits for the answer to what `start` begins under the number it is given.
    func wait(_ start: (UInt64) throws(Fault) -> Void) async throws -> Member {
        let task = currentTask()
        let number = state.withLock { state in
            state.number += 1
            return state.number
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                state.withLock { $0.waiting[number] = (task, continuation) }
                do throws(Fault) {
                    try start(number)
                } catch {
                    end(number, .failure(RealtimeError(error)))
                }
                refuse(delivery.delayingTasks)
                // Cancelled before there was anything to cancel.
                if Task.isCancelled { end(number, .failure(CancellationError())) }
            }
        } onCancel: {
            end(number, .failure(CancellationError()))
        }
    }

    func end(_ number: UInt64, _ result: Result<Member, any Error>) {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.continuation.resume(with: result)
    }

    /// These tasks hold up the delivery of the answers that they wait for.
    private func refuse(_ tasks: [Int]) {
        let refused = state.withLock { state in
            state.waiting.filter { _, waiting in waiting.task.map(tasks.contains) ?? false }.keys
        }
        for number in refused { end(number, .failure(Self.heldUp)) }
    }

    private static let heldUp = RealtimeError(
        Fault(
            BIRD_ERR_FULL, .signin, field: "events",
            "The sequence of events that this task reads is full and holds up the answer: take its events first.",
            isRetriable: true))

    func endAll(_ error: RealtimeError) {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            return state.waiting
        }
        for (_, continuation) in waiting.values { continuation.resume(throwing: error) }
    }

    /// From the record of a completion.
    func complete(_ record: bird_record) {
        guard let completion = record.detail?.load(as: bird_completion.self) else { return }
        if let error = completion.error {
            end(record.operation_tag, .failure(RealtimeError(error)))
        } else {
            end(record.operation_tag, .success(Member(memberData: record.payload)))
        }
    }

    var last: Member? {
        get { state.withLock { $0.last } }
        set { state.withLock { $0.last = newValue } }
    }
}
