/// What happened to a client lately, for its dump. Written on the reactor thread, read by any.
/// `@unchecked Sendable`: guarded by `lock`.
final class Diary: @unchecked Sendable {
    struct Change {
        var timeMs: Int64
        var change: StateChange
    }

    struct Mistake {
        var timeMs: Int64
        var fault: Fault
    }

    /// How the socket was reached.
    struct Way {
        var peer = ""
        var connectedAtMs: Int64 = 0
    }

    private static let changesMax = 32
    private static let mistakesMax = 16

    struct Contents {
        /// Both oldest first.
        var changes: [Change] = []
        var mistakes: [Mistake] = []
        var way: Way?
        /// When the next attempt is due, in milliseconds since 1970.
        var attemptAtMs: Int64?
    }

    private let lock: Monitor
    private var current = Contents()

    /// `lock`: that of the client.
    init(_ lock: Monitor) {
        self.lock = lock
    }

    var contents: Contents { lock.withLock { current } }

    func note(_ change: StateChange) {
        let now = System.wallClockMs()
        lock.withLock {
            if change.current != .connected { current.way = nil }
            current.attemptAtMs = change.delayMs < 0 ? nil : now + change.delayMs
            // A plan that is put off is no change.
            guard change.previous != change.current else { return }
            current.changes.append(Change(timeMs: now, change: change))
            if current.changes.count > Self.changesMax { current.changes.removeFirst() }
        }
    }

    func note(_ fault: Fault) {
        let now = System.wallClockMs()
        lock.withLock {
            current.mistakes.append(Mistake(timeMs: now, fault: fault))
            if current.mistakes.count > Self.mistakesMax { current.mistakes.removeFirst() }
        }
    }

    func connected(to peer: String) {
        let way = Way(peer: peer, connectedAtMs: System.wallClockMs())
        lock.withLock { current.way = way }
    }
}
