import CLinux
import Synchronization

/// The process that hosts the library: which one it is, across fork.
package enum HostProcess {
    private static let current = Atomic<UInt32>(1)
    private static let registered = Atomic<Bool>(false)

    /// Changes in a forked child, so that inherited handles can be told from the child's own.
    static var generation: UInt32 { current.load(ordering: .relaxed) }

    /// Called before the first thread starts: without threads a fork needs no care.
    static func watchForks() {
        guard !registered.exchange(true, ordering: .relaxed) else { return }
        _ = birdlinux_atfork(
            {
                Shared.lockForFork()
                Handles.lockForFork()
            },
            {
                Handles.unlockAfterFork()
                Shared.unlockAfterFork()
            },
            {
                HostProcess.current.wrappingAdd(1, ordering: .relaxed)
                Handles.unlockInChild()
                Shared.unlockInChild()
            })
    }
}
