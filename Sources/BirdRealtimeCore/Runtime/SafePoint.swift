import Synchronization

/// Keeps a reactor out of libcurl and out of its own data while another thread forks or ends the process. The reactor works between
/// `beginWork` and `endWork` and rests in between, waiting for events.
/// `@unchecked Sendable`: the atomics and the monitor are made for many threads.
final class SafePoint: @unchecked Sendable {
    private let monitor = Monitor()
    private let holders = Atomic<Int>(0)
    private let isResting = Atomic<Bool>(true)

    /// Reactor: rests on while anybody holds it, and says whether somebody did. Costs two atomic operations when nobody does.
    @discardableResult
    func beginWork() -> Bool {
        isResting.store(false, ordering: .sequentiallyConsistent)
        guard holders.load(ordering: .sequentiallyConsistent) > 0 else { return false }
        stay()
        return true
    }

    func endWork() {
        isResting.store(true, ordering: .sequentiallyConsistent)
        if holders.load(ordering: .sequentiallyConsistent) > 0 { monitor.withLock { monitor.signalAll() } }
    }

    private func stay() {
        monitor.withLock {
            while holders.load(ordering: .sequentiallyConsistent) > 0 {
                isResting.store(true, ordering: .sequentiallyConsistent)
                monitor.signalAll()
                _ = monitor.wait(timeoutMs: -1) { holders.load(ordering: .sequentiallyConsistent) == 0 }
                isResting.store(false, ordering: .sequentiallyConsistent)
            }
        }
    }

    /// Another thread: returns when the reactor rests, which it does until `letGo`, or after `timeoutMs`: a handler of the program's in LOOP
    /// mode may wait for the very thread that calls this.
    func hold(timeoutMs: Int64) {
        holders.wrappingAdd(1, ordering: .sequentiallyConsistent)
        guard !isResting.load(ordering: .sequentiallyConsistent) else { return }
        monitor.withLock {
            _ = monitor.wait(timeoutMs: timeoutMs) { isResting.load(ordering: .sequentiallyConsistent) }
        }
    }

    func letGo() {
        holders.wrappingSubtract(1, ordering: .sequentiallyConsistent)
        monitor.withLock { monitor.signalAll() }
    }
}
