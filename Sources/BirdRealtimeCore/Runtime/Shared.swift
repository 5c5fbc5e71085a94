import CBirdRealtimeABI
import CLinux
import Glibc

/// What the clients of a process share: the reactor, started with the first use and ended with the last. Loops that a host drives are known
/// here too, for what concerns every reactor: forks and the end of the process.
enum Shared {
    private static let monitor = Monitor()
    /// How long one waits for the threads of `leaving`.
    private static let leavingMsMax: Int64 = 100
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var reactor: Reactor?
    /// Without users, but not through with their last work.
    nonisolated(unsafe) private static var ending: [Reactor] = []
    /// So many threads of reactors have done their last work and were not joined yet. The TLS library frees what it keeps for a thread when
    /// that ends. At the end of the process it does so no more, once it has ended itself.
    nonisolated(unsafe) private static var leavingCount = 0
    /// Those of them that have stopped themselves: nobody waits for them yet.
    nonisolated(unsafe) private static var leaving: [pthread_t] = []
    nonisolated(unsafe) private static var hostDriven: [Reactor] = []
    nonisolated(unsafe) private static var watchesExit = false

    /// Lock held.
    private static func watchExit() {
        guard !watchesExit else { return }
        watchesExit = true
        atexit { Shared.holdForExit() }
    }

    static func startLibcurl() throws(Fault) {
        try monitor.withLock { () throws(Fault) in
            guard !HostProcess.isEnding else { throw HostProcess.endingFault }
            try CurlGlobal.start()
        }
    }

    static func acquireReactor() throws(Fault) -> Reactor {
        try monitor.withLock { () throws(Fault) -> Reactor in
            guard !HostProcess.isEnding else { throw HostProcess.endingFault }
            joinLeaving()
            let current: Reactor
            if let reactor {
                current = reactor
            } else {
                watchExit()
                current = try Reactor(isHostDriven: false)
                try current.start()
                reactor = current
            }
            current.users += 1
            return current
        }
    }

    static func release(_ used: Reactor) {
        let isUnused = monitor.withLock { () -> Bool in
            used.users -= 1
            guard used.users == 0, !HostProcess.isEnding else { return false }
            if reactor === used { reactor = nil }
            if !ending.contains(where: { $0 === used }) { ending.append(used) }
            return true
        }
        if isUnused { used.stop() }
    }

    /// From the reactor's thread: it is of no use for further clients.
    static func lost(_ lost: Reactor) {
        monitor.withLock {
            guard reactor === lost else { return }
            reactor = nil
            ending.append(lost)
        }
    }

    /// From the reactor's thread, at its end. `thread`: nobody waits for it yet.
    static func ended(_ reactor: Reactor, leaving thread: pthread_t?) {
        monitor.withLock {
            ending.removeAll { $0 === reactor }
            leavingCount += 1
            if let thread { leaving.append(thread) }
        }
    }

    /// The thread of a reactor has ended, and another thread has waited for that.
    static func joined() {
        monitor.withLock {
            leavingCount -= 1
            monitor.signalAll()
        }
    }

    /// Lock held. They run nothing any more but the destructors of what is theirs.
    private static func joinLeaving() {
        let deadline = System.now() + leavingMsMax
        for thread in leaving { birdlinux_thread_join(thread, max(0, deadline - System.now())) }
        leavingCount -= leaving.count
        leaving = []
    }

    static func makeHostDriven() throws(Fault) -> Reactor {
        try monitor.withLock { () throws(Fault) -> Reactor in
            guard !HostProcess.isEnding else { throw HostProcess.endingFault }
            watchExit()
            let reactor = try Reactor(isHostDriven: true)
            hostDriven.append(reactor)
            return reactor
        }
    }

    static func forget(_ reactor: Reactor) {
        monitor.withLock { hostDriven.removeAll { $0 === reactor } }
    }

    /// Lock held.
    private static var reactors: [Reactor] { hostDriven + ending + (reactor.map { [$0] } ?? []) }

    // MARK: The end of the process

    /// No TLS call is running, and none begins, after this returns (or 100 ms have passed).
    static func holdForExit() {
        guard !HostProcess.isEnding else { return }
        HostProcess.end()
        for reactor in monitor.withLock({ reactors }) { reactor.hold(timeoutMs: 100) }
        monitor.withLock {
            joinLeaving()
            _ = monitor.wait(timeoutMs: leavingMsMax) { leavingCount == 0 }
        }
        LogWriter.flushAll(timeoutMs: 100)
    }

    // MARK: Forks

    /// How long a fork waits for a handler that runs on a reactor; see `SafePoint`.
    private static let forkHoldMsMax: Int64 = 1_000
    /// From the beginning of a fork to its end; guarded by `monitor`.
    nonisolated(unsafe) private static var held: [Reactor] = []

    /// Every reactor rests, and every lock of the process's common data is held, when this returns.
    static func lockForFork() {
        monitor.lock()
        while true {
            let now = reactors
            // A reactor may need the lock to come to rest.
            monitor.unlock()
            for reactor in now { reactor.hold(timeoutMs: forkHoldMsMax) }
            monitor.lock()
            held = now
            if reactors.elementsEqual(now, by: ===) { break }
            letGoOfHeld()
        }
        for reactor in held { reactor.lockForFork() }
        DeliveryPool.lockForFork()
        Resolver.lockForFork()
        ChunkPool.lockForFork()
        LogFiles.lockForFork()
        LogWriter.lockForFork()
        Inheritance.lockForFork()
        birdlinux_lock_stdio_for_fork()
    }

    private static func letGoOfHeld() {
        for reactor in held { reactor.letGo() }
        held = []
    }

    static func unlockAfterFork() {
        birdlinux_unlock_stdio_after_fork(0)
        Inheritance.unlockAfterFork()
        LogWriter.unlockAfterFork()
        LogFiles.unlockAfterFork()
        ChunkPool.unlockAfterFork()
        Resolver.unlockAfterFork()
        DeliveryPool.unlockAfterFork()
        for reactor in held { reactor.unlockAfterFork() }
        letGoOfHeld()
        monitor.unlock()
    }

    /// The child has no thread but the one that forked.
    static func unlockInChild() {
        birdlinux_unlock_stdio_after_fork(1)
        for reactor in held { reactor.unlockInChild() }
        Inheritance.unlockInChild()
        Inheritance.add(held)
        reactor = nil
        hostDriven = []
        ending = []
        (leaving, leavingCount) = ([], 0)
        held = []
        DeliveryPool.forgetInChild()
        Resolver.forgetInChild()
        LogWriter.forgetInChild()
        LogFiles.forgetInChild()
        LogWriter.unlockInChild()
        LogFiles.unlockInChild()
        ChunkPool.unlockInChild()
        Resolver.unlockInChild()
        DeliveryPool.unlockInChild()
        monitor.unlockInChild()
    }
}
