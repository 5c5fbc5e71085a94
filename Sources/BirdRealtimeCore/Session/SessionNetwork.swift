/// What somebody knows of the network who does not look at the connection; raw values are `BIRD_NETWORK_*`.
package enum NetworkHint: Int32, Sendable {
    case up = 1
    case down = 2
    /// The machine was suspended.
    case resumed = 3

    var words: String {
        switch self {
        case .up: "the network came up"
        case .down: "the network went down, or is another one"
        case .resumed: "the machine was suspended"
        }
    }
}

/// What the session has made of such hints.
struct NetworkNews: Sendable {
    /// When an attempt last began, or is to begin, for their sake.
    var lastTry: Instant?
    /// When the connection was last checked for their sake.
    var lastCheck: Instant?
    /// A check that had to wait.
    var checkDue: Instant?
    /// The network came up while an attempt was under way that may fail because it was not before.
    var laterTry: (hint: NetworkHint, spreadMs: Int64)?
}

/// Hints hurry what would be done anyway: the next attempt, the next ping. They end nothing and begin nothing by themselves.
extension Session {
    /// From one attempt, or check, that a hint brings about to the next.
    private static var hintsApartMs: Int64 { 1_000 }
    static var networkPongTimeoutMs: Int64 { 5_000 }

    /// `spreadMs`: over how long the attempts of all who get the same hint are to be spread.
    mutating func network(_ hint: NetworkHint, spreadMs: Int64, _ turn: inout Turn) {
        switch state {
        case .connected where hint != .up: checkConnection(&turn)
        case .unavailable where hint != .down: tryNow(hint, spreadMs: spreadMs, &turn)
        case .connecting: network.laterTry = hint == .down ? nil : (hint, spreadMs)
        case .initialized, .connected, .unavailable, .disconnected, .failed: break
        }
    }

    /// The planned attempt need not wait any longer. The program is asked about it as about any other, again if it had put it off: that
    /// was before it knew.
    private mutating func tryNow(_ hint: NetworkHint, spreadMs: Int64, _ turn: inout Turn) {
        guard var plan = planned else { return }
        if case .asked = plan.permission { return }
        // A server that asked to be left alone did not mean the network.
        var due = max(plan.earliest, turn.now) + Int64.random(in: 0...max(0, spreadMs), using: &turn.random)
        if let last = network.lastTry { due = max(due, last + Self.hintsApartMs) }
        guard due < plan.due else { return }
        network.lastTry = due
        plan.due = due
        plan.band = nil
        plan.permission = configuration.asksBeforeReconnect ? .needed : .given
        planned = plan
        backoff.beginWaitsAnew()
        tellPlan(hint.words, delayMs: due - turn.now, &turn)
        if due <= turn.now, !isStalled { attemptDue(plan, &turn) }
    }

    /// After an attempt has failed.
    mutating func tryLater(_ turn: inout Turn) {
        guard let later = network.laterTry else { return }
        network.laterTry = nil
        tryNow(later.hint, spreadMs: later.spreadMs, &turn)
    }

    private mutating func checkConnection(_ turn: inout Turn) {
        if let last = network.lastCheck, turn.now < last + Self.hintsApartMs {
            network.checkDue = last + Self.hintsApartMs
            return
        }
        network.lastCheck = turn.now
        network.checkDue = nil
        liveness.beginDoubt(sendPing(&turn), turn.now, withinMs: Self.networkPongTimeoutMs)
    }

    mutating func networkCheckDue(_ turn: inout Turn) {
        guard let due = network.checkDue, due <= turn.now else { return }
        network.checkDue = nil
        if state == .connected { checkConnection(&turn) }
    }
}
