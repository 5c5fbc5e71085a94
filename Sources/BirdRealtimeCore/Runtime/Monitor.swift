import CLinux
import Glibc

/// A mutex with a condition variable (timed on CLOCK_MONOTONIC). Used where threads wait; never held while user code runs.
/// `@unchecked Sendable`: the pthread objects live at a fixed address and are made for use by many threads.
final class Monitor: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let process = HostProcess.generation

    init() {
        pthread_mutex_init(mutex, nil)
        _ = birdlinux_cond_init(condition)
    }

    deinit {
        // In a forked child threads of the parent's may count as waiting, and destroying the condition would wait for them.
        guard process == HostProcess.generation else { return }
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func lock() { pthread_mutex_lock(mutex) }
    func unlock() { pthread_mutex_unlock(mutex) }
    func tryLock() -> Bool { pthread_mutex_trylock(mutex) == 0 }
    /// In a forked child, by the thread that locked it before the fork. The condition is a new one: threads of the parent's may wait on the
    /// old one, and signalling that would wait for them.
    func unlockInChild() {
        _ = birdlinux_cond_init(condition)
        unlock()
    }

    func signalAll() { pthread_cond_broadcast(condition) }
    /// Where every waiting thread would do the same, and one is enough.
    func signalOne() { pthread_cond_signal(condition) }

    func withLock<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        lock()
        defer { unlock() }
        return try body()
    }

    /// Call with the lock held. False when the deadline has passed.
    func wait(until deadline: timespec?) -> Bool {
        guard var deadline else {
            return pthread_cond_wait(condition, mutex) == 0
        }
        return pthread_cond_timedwait(condition, mutex, &deadline) != ETIMEDOUT
    }

    /// Waits, lock held, until `isDone` or the time is over (`timeoutMs` negative: no limit). False on timeout.
    func wait(timeoutMs: Int64, until isDone: () -> Bool) -> Bool {
        let deadline: timespec? = timeoutMs < 0 ? nil : System.monotonicDeadline(afterMs: timeoutMs)
        while !isDone() {
            if !wait(until: deadline) { return isDone() }
        }
        return true
    }
}
