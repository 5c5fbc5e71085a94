import CBirdRealtimeABI

/// A reactor that the host drives: what a `bird_loop` names.
/// `@unchecked Sendable`: the counters are guarded by `monitor`.
package final class HostLoop: @unchecked Sendable {
    let reactor: Reactor
    private let monitor = Monitor()
    private var clientCount = 0
    private var isRetired = false
    package private(set) var handle: UInt = 0

    package init() throws(Fault) {
        reactor = try Shared.makeHostDriven()
        handle = Handles.register(self, as: .loop)
    }

    /// Readable when there is something to do.
    package var fd: Int32 { reactor.epollFD }

    package func wake() { reactor.wake() }

    package func runOnce(timeoutMs: Int64) throws(Fault) { try reactor.runOnce(timeoutMs: timeoutMs) }

    /// nil: there is nothing planned.
    package func idleMs() -> Int64? { reactor.idleMs() }

    func attachClient() throws(Fault) {
        try monitor.withLock { () throws(Fault) in
            guard !isRetired else {
                throw Fault(BIRD_ERR_HANDLE, .argument, field: "loop", "The loop of the options was destroyed.")
            }
            clientCount += 1
        }
    }

    func detachClient() { monitor.withLock { clientCount -= 1 } }

    /// True if no client uses the loop any more and nobody runs it; its handle is then gone and its fd closed.
    package func retire() -> Bool {
        let isMine = monitor.withLock {
            guard clientCount == 0, !isRetired, reactor.isIdle, Handles.release(handle, .loop) else { return false }
            isRetired = true
            return true
        }
        guard isMine else { return false }
        Shared.forget(reactor)
        reactor.shutDown()
        return true
    }

    /// In a forked child.
    package func closeInherited() { Inheritance.closeFDs(of: reactor) }
}
