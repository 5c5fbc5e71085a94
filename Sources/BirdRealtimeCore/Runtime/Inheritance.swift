import CCurl
import CLinux
import Synchronization

/// What a forked child has of its parent's: handles that say so, and copies of the fds. The reactors rested when the process was forked,
/// so that their data can be read; locks of single objects may be held by threads that the child does not have.
enum Inheritance {
    private static let monitor = Monitor()
    nonisolated(unsafe) private static var reactors: [Reactor] = []  // guarded by `monitor`

    static func lockForFork() { monitor.lock() }
    static func unlockAfterFork() { monitor.unlock() }
    static func unlockInChild() { monitor.unlockInChild() }

    /// In the child, before anything else.
    static func add(_ inherited: [Reactor]) {
        for reactor in inherited {
            // Never freed: a thread that no longer exists may have been using it.
            _ = Unmanaged.passRetained(reactor)
            reactors.append(reactor)
        }
        birdcurl_inherit_sockets()
        guard birdlinux_callback_depth() > 0 else { return }
        // Forked inside a handler: nothing is delivered or sent by what it returns to.
        birdlinux_callback_depth_add(-birdlinux_callback_depth())
        for case let client as Client in Handles.inherited(.client) {
            client.hot.pointee.ending.store(true, ordering: .relaxed)
        }
        for reactor in inherited { reactor.becomeInheritedOnThread() }
    }

    /// The client's fds, and with the last client those that are nobody's in particular.
    static func closeFDs(of client: Client) {
        monitor.withLock {
            var isAnyLeft = false
            for reactor in reactors {
                let isDone = reactor.closeInherited(client)
                if !isDone { isAnyLeft = true }
            }
            if !isAnyLeft {
                birdcurl_close_all_inherited()
                reactors.removeAll { !$0.isHostDriven }
            }
        }
    }

    static func closeFDs(of loop: Reactor) {
        monitor.withLock { reactors.removeAll { $0 === loop } }
        loop.closeInheritedLoop()
    }
}

extension Client {
    /// In a forked child: closes this process's copies of the fds and frees what no vanished thread can have been using. No destructor
    /// runs: what it would release is the parent's too.
    package func destroyInherited() {
        hot.pointee.ending.store(true, ordering: .relaxed)
        Inheritance.closeFDs(of: self)
        guard lock.tryLock() else {
            // A thread that the child does not have was changing it.
            _ = Unmanaged.passRetained(self)
            return
        }
        let channels = takeChannelsInherited()
        lock.unlock()
        for channel in channels { Handles.disinherit(channel.handle, .channel) }
    }
}
