import CBirdRealtimeABI

/// What the clients of a process share. Started with the first use, ended with the last.
enum Shared {
    private static let monitor = Monitor()
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var reactor: Reactor?
    nonisolated(unsafe) private static var reactorUsers = 0

    static func acquireReactor() throws(Fault) -> Reactor {
        HostProcess.watchForks()
        return try monitor.withLock { () throws(Fault) -> Reactor in
            let current: Reactor
            if let reactor {
                current = reactor
            } else {
                try CurlGlobal.start()
                current = try Reactor()
                try current.start()
                reactor = current
            }
            reactorUsers += 1
            return current
        }
    }

    static func releaseReactor() {
        let unused: Reactor? = monitor.withLock {
            reactorUsers -= 1
            guard reactorUsers == 0 else { return nil }
            defer { reactor = nil }
            return reactor
        }
        unused?.stop()
    }

    /// For the exit handler.
    static var currentReactor: Reactor? { monitor.withLock { reactor } }

    static func lockForFork() {
        monitor.lock()
        DeliveryPool.lockForFork()
        Resolver.lockForFork()
        ChunkPool.lockForFork()
    }

    static func unlockAfterFork() {
        ChunkPool.unlockAfterFork()
        Resolver.unlockAfterFork()
        DeliveryPool.unlockAfterFork()
        monitor.unlock()
    }

    static func unlockInChild() {
        ChunkPool.unlockInChild()
        Resolver.unlockInChild()
        DeliveryPool.unlockInChild()
        monitor.unlockInChild()
    }

    /// The child has no thread but the one that forked.
    static func forgetInChild() {
        // Leaked on purpose: their memory may have been in use by a thread that no longer exists.
        if let reactor { _ = Unmanaged.passRetained(reactor) }
        reactor = nil
        reactorUsers = 0
        DeliveryPool.forgetInChild()
        Resolver.forgetInChild()
    }
}
