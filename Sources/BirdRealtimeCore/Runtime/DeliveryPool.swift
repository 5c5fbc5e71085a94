import CBirdRealtimeABI
import CLinux
import Glibc

/// The threads that run handlers of clients with BIRD_DELIVERY_THREAD. One client is served by one thread at a time.
package enum DeliveryPool {
    /// Records of one client before another gets its turn.
    private static let turnRecordsMax = 4_096

    private static let monitor = Monitor()
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var threadsWanted = 4
    nonisolated(unsafe) private static var threads: [pthread_t] = []
    nonisolated(unsafe) private static var members = 0
    nonisolated(unsafe) private static var waiting = Ring<Membership>()
    /// Threads of an earlier period look at this to see that they are no longer wanted.
    nonisolated(unsafe) private static var period: UInt64 = 0

    /// A client's place in the pool.
    final class Membership: @unchecked Sendable {
        // `@unchecked Sendable`: set once before use, or guarded by the pool's monitor.
        weak var client: Client?
        fileprivate var isScheduled = false
        fileprivate var hasJoined = false
        private var hasLeft = false

        /// A thread of the pool will serve the client. One is woken for it, and takes whichever client has waited longest.
        func schedule() {
            if DeliveryPool.monitor.withLock(list) { DeliveryPool.monitor.signalOne() }
        }

        /// The pool's lock is held. False: its turn comes anyway, or never.
        fileprivate func list() -> Bool {
            guard !isScheduled, hasJoined else { return false }
            isScheduled = true
            DeliveryPool.waiting.append(self)
            return true
        }

        /// The client will deliver from now on.
        func join() throws(Fault) {
            try DeliveryPool.monitor.withLock { () throws(Fault) in
                guard !hasJoined, !hasLeft else { return }
                if DeliveryPool.members == 0 { try DeliveryPool.startThreads() }
                DeliveryPool.members += 1
                hasJoined = true
            }
        }

        func leave() {
            let ended: [pthread_t] = DeliveryPool.monitor.withLock {
                hasLeft = true
                guard hasJoined else { return [] }
                hasJoined = false
                DeliveryPool.members -= 1
                guard DeliveryPool.members == 0 else { return [] }
                DeliveryPool.period += 1
                DeliveryPool.monitor.signalAll()
                defer { DeliveryPool.threads = [] }
                return DeliveryPool.threads
            }
            for thread in ended {
                if pthread_equal(thread, pthread_self()) != 0 {
                    pthread_detach(thread)
                } else {
                    pthread_join(thread, nil)
                }
            }
        }
    }

    package static func setThreads(_ count: Int32) throws(Fault) {
        guard (1...64).contains(count) else {
            throw Fault(BIRD_ERR_ARGUMENT, .argument, field: "threads", "The pool has 1 to 64 threads, not \(count).")
        }
        try monitor.withLock { () throws(Fault) in
            guard threads.isEmpty else {
                throw Fault(BIRD_ERR_STATE, .argument, field: "threads", "The pool has started already.")
            }
            threadsWanted = Int(count)
        }
    }

    private static func startThreads() throws(Fault) {
        for _ in 0..<threadsWanted {
            var thread = pthread_t()
            let number = UnsafeMutableRawPointer(bitPattern: UInt(period) + 1)
            let error = birdlinux_thread_start(
                &thread, "bird-delivery",
                { argument in
                    DeliveryPool.run(period: UInt64(UInt(bitPattern: argument)) - 1)
                    return nil
                }, number)
            guard error == 0 else {
                // One thread is enough to serve; none is a failure.
                if !threads.isEmpty { return }
                throw Fault(
                    BIRD_ERR_SYSTEM, .system, field: "thread",
                    "No thread for the delivery: \(Errno(code: error).message).", isRetriable: true)
            }
            threads.append(thread)
        }
    }

    private static func run(period mine: UInt64) {
        while true {
            let next: Membership? = monitor.withLock {
                _ = monitor.wait(timeoutMs: -1) { period != mine || !waiting.isEmpty }
                return period == mine ? waiting.popFirst() : nil
            }
            guard let next else { return }
            let queue = next.client?.queue
            _ = try? queue?.dispatch(recordsMax: turnRecordsMax)
            // A thread of an earlier period, be it in a forked child, touches nothing.
            let isCurrent = monitor.withLock { () -> Bool in
                guard period == mine else { return false }
                next.isScheduled = false
                return true
            }
            guard isCurrent else { return }
            // Nobody is woken: this thread serves the first that waits, and the others have threads woken for them.
            if let queue, !queue.isEmpty() { _ = monitor.withLock(next.list) }
        }
    }

    static func lockForFork() { monitor.lock() }
    static func unlockAfterFork() { monitor.unlock() }
    static func unlockInChild() { monitor.unlockInChild() }

    static func forgetInChild() {
        threads = []
        members = 0
        waiting = Ring()
        period += 1
    }
}
