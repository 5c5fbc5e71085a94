public import Foundation

/// How long to wait before an attempt that follows a failed one. What is nil is as it was: at first as the parameter says.
public enum ReconnectPolicy: Sendable, Hashable {
    /// Drawn between 0 and a window that doubles with each failure, so that many clients do not come back at once. Seconds.
    ///
    /// - Parameters:
    ///   - base: the first window, 1 s.
    ///   - max: the largest window, 30 s.
    case jitter(base: TimeInterval? = nil, max: TimeInterval? = nil)
    /// Always the same.
    ///
    /// - Parameter delay: seconds, 3.
    case fixed(delay: TimeInterval? = nil)
    /// So many attempts at one distance, so many at another, and from the first stage again.
    ///
    /// - Parameter stages: 5 × 3 s, 5 × 9 s, 5 × 15 s.
    case staged([ReconnectStage]? = nil)

    func add(to settings: inout Settings) {
        switch self {
        case .jitter(let base, let max):
            settings.add("backoff_base_ms", seconds: base)
            settings.add("backoff_max_ms", seconds: max)
            settings.add("reconnect", "jitter")
        case .fixed(let delay):
            settings.add("reconnect_delay_ms", seconds: delay)
            settings.add("reconnect", "fixed")
        case .staged(let stages):
            settings.add("reconnect_stages", stages.map { $0.map(\.text).joined(separator: ",") })
            settings.add("reconnect", "staged")
        }
    }
}

/// One part of a staged schedule.
public struct ReconnectStage: Sendable, Hashable {
    public var attempts: Int
    /// Seconds before each of them.
    public var delay: TimeInterval

    public init(attempts: Int, delay: TimeInterval) {
        self.attempts = attempts
        self.delay = delay
    }

    var text: String { "\(attempts)x\(milliseconds(delay))" }
}

/// How a connection is kept alive, and found to be dead. What is nil is as it was: at first as its comment says.
public struct KeepAlive: Sendable, Hashable {
    /// Seconds of silence before a ping. Without one the edge decides, whose value also wins if it is smaller.
    public var activityTimeout: TimeInterval?
    /// Seconds of silence after a ping until it counts as missed: 30.
    public var pongTimeout: TimeInterval?
    /// So many misses in a row make a connection dead: 1.
    public var pongMissesMax: Int?

    public init(activityTimeout: TimeInterval? = nil, pongTimeout: TimeInterval? = nil, pongMissesMax: Int? = nil) {
        self.activityTimeout = activityTimeout
        self.pongTimeout = pongTimeout
        self.pongMissesMax = pongMissesMax
    }

    func add(to settings: inout Settings) {
        settings.add("activity_timeout_ms", seconds: activityTimeout)
        settings.add("pong_timeout_ms", seconds: pongTimeout)
        settings.add("pong_misses_max", pongMissesMax)
    }
}

/// Settings of reconnecting and keeping alive that go together.
public enum Preset: String, Sendable, CaseIterable {
    case `default`
    /// Attempts in stages, a ping after 20 s of silence, a dead connection after 2 pings that were not answered within 10 s.
    case staged
}

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
/// second begins. `connect()` and `retryNow()` need no decision.
public typealias ReconnectDecider = @Sendable (ReconnectAttempt) async -> ReconnectDecision
