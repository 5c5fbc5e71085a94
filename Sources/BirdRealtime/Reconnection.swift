public import Foundation

/// An attempt to reconnect that the client has planned.
public struct ReconnectAttempt: Sendable, Hashable {
    /// Counted since the last connection that was established, this attempt and those that were skipped included.
    public let number: Int
    /// How the attempt or the connection before it ended.
    public let cause: RealtimeError
}

/// What becomes of an attempt.
public enum ReconnectDecision: Sendable, Hashable {
    case now
    /// In so many seconds, at most a day; `onConnectingIn` tells it.
    case after(TimeInterval)
    /// Not at all: the next one is planned as after a failure, and asked about again.
    case skip
}

/// Decides about each attempt that the client has planned. Runs on the global executor; an attempt that waits for its decision for a
/// second begins. `connect()` needs no decision.
public typealias ReconnectDecider = @Sendable (ReconnectAttempt) async -> ReconnectDecision
