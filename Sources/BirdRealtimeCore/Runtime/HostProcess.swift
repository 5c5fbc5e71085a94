import CBirdRealtimeABI
import CLinux
import Synchronization

/// The process that hosts the library: which one it is, across fork.
package enum HostProcess {
    private static let current = Atomic<UInt32>(1)
    private static let registered = Atomic<Bool>(false)
    private static let ending = Atomic<Bool>(false)

    /// Changes in a forked child, so that inherited handles can be told from the child's own.
    static var generation: UInt32 { current.load(ordering: .relaxed) }

    /// The library's exit handler has run. Exit handlers of the host's, and destructors of its static objects, may come after it: what they
    /// call neither waits for the reactors, which rest, nor does their work, since the TLS library may be gone.
    static var isEnding: Bool { ending.load(ordering: .sequentiallyConsistent) }

    static func end() { ending.store(true, ordering: .sequentiallyConsistent) }

    static let endingFault = Fault(BIRD_ERR_STATE, .system, field: "process", "The process is ending.")

    /// From the first handle on: without one a fork needs no care.
    static func watchForks() {
        guard !registered.load(ordering: .relaxed), !registered.exchange(true, ordering: .relaxed) else { return }
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
