import Synchronization

/// Events delivered to a sequence and not taken yet.
final class EventBuffer: Sendable {
    /// Held for the tasks that take them; when they are there, delivery waits.
    static let eventsMax = 256

    typealias Next = Result<ChannelEvent?, RealtimeError>

    private struct State {
        private var arrived: [ChannelEvent] = []
        /// Those that came before them, the first one last.
        private var taking: [ChannelEvent] = []
        var waiting: [(number: UInt64, continuation: CheckedContinuation<Next, Never>)] = []
        var lastNumber: UInt64 = 0
        /// What comes behind the last event; nil while more may come. An error is thrown once.
        var end: Next?
        var holdsUp = false
        /// The task that took, or waited, last.
        var consumer: Int?

        var count: Int { arrived.count + taking.count }

        mutating func append(_ event: ChannelEvent) { arrived.append(event) }

        mutating func popFirst() -> ChannelEvent? {
            if taking.isEmpty {
                swap(&taking, &arrived)
                taking.reverse()
            }
            return taking.popLast()
        }
    }

    private let state = Mutex(State())
    private let delivery: QueueDelivery

    init(_ delivery: QueueDelivery) {
        self.delivery = delivery
    }

    // MARK: From the delivery

    /// How many events may be delivered now. 0: taking some brings the delivery back.
    func room() -> Int {
        state.withLock { state in
            guard state.end == nil else { return .max }
            let room = Self.eventsMax - state.count
            if room == 0 { state.holdsUp = true }
            return room
        }
    }

    /// The task that holds the delivery up.
    var delayingTask: Int? { state.withLock { $0.holdsUp ? $0.consumer : nil } }

    func append(_ event: ChannelEvent) {
        let waiting = state.withLock { state -> CheckedContinuation<Next, Never>? in
            guard state.end == nil else { return nil }
            guard state.waiting.isEmpty else { return state.waiting.removeFirst().continuation }
            state.append(event)
            return nil
        }
        waiting?.resume(returning: .success(event))
    }

    /// Nothing comes any more, and nothing is held up. The first end counts.
    func finish(throwing error: RealtimeError? = nil) {
        let waiting = state.withLock { state -> [CheckedContinuation<Next, Never>] in
            guard state.end == nil else { return [] }
            state.end = error.map { .failure($0) } ?? .success(nil)
            state.holdsUp = false
            defer { state.waiting = [] }
            return state.waiting.map(\.continuation)
        }
        for continuation in waiting { continuation.resume(returning: takeEnd()) }
    }

    private func takeEnd() -> Next { state.withLock { Self.takeEnd(&$0) ?? .success(nil) } }

    private static func takeEnd(_ state: inout State) -> Next? {
        defer { if state.end != nil { state.end = .success(nil) } }
        return state.end
    }

    // MARK: From the tasks

    /// In the isolation of whoever asks, so that an event that is there costs no change of threads.
    func next(isolation actor: isolated (any Actor)?) async throws(RealtimeError) -> ChannelEvent? {
        let (task, isCancelled) = withUnsafeCurrentTask { ($0?.hashValue, $0?.isCancelled ?? false) }
        // What waits stays for whoever reads on.
        guard !isCancelled else { return nil }
        if let next = take(task) { return try next.get() }
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if let next = take(task, else: (number, continuation)) { continuation.resume(returning: next) }
                // Cancelled before there was anything to cancel.
                if Task.isCancelled { cancel(number) }
            }
        } onCancel: {
            cancel(number)
        }.get()
    }

    /// nil: there is nothing yet, and `waiting` waits for it.
    private func take(
        _ task: Int?, else waiting: (number: UInt64, continuation: CheckedContinuation<Next, Never>)? = nil
    ) -> Next? {
        let (next, hasRoomAgain) = state.withLock { state -> (Next?, Bool) in
            state.consumer = task
            guard let event = state.popFirst() else {
                if state.end == nil, let waiting { state.waiting.append(waiting) }
                return (Self.takeEnd(&state), false)
            }
            let hasRoomAgain = state.holdsUp && state.count <= Self.eventsMax / 2
            if hasRoomAgain { state.holdsUp = false }
            return (.success(event), hasRoomAgain)
        }
        if hasRoomAgain { delivery.resume() }
        return next
    }

    private func cancel(_ number: UInt64) {
        let waiting = state.withLock { state -> CheckedContinuation<Next, Never>? in
            guard let position = state.waiting.firstIndex(where: { $0.number == number }) else { return nil }
            return state.waiting.remove(at: position).continuation
        }
        waiting?.resume(returning: .success(nil))
    }
}

/// Tells tasks apart; nil outside of any.
func currentTask() -> Int? { withUnsafeCurrentTask { $0?.hashValue } }
