import CLinux

/// While handlers of the program run on a reactor's thread, the signals of the program's threads may come: from the first handler of a round to
/// the round's end, so that it costs two system calls a round and none an event. Only used on the reactor's thread.
final class HandlerMask {
    private var isOpen = false

    /// Before a handler.
    @inline(__always)
    func begin() { if !isOpen { open() } }

    @inline(never)
    private func open() {
        isOpen = true
        birdlinux_handlers_begin()
    }

    /// At the end of a round.
    func end() {
        guard isOpen else { return }
        isOpen = false
        birdlinux_handlers_end()
    }

    /// In a forked child, inside a handler that has forked: the thread is the program's from now on.
    func forget() { isOpen = false }
}
