import BirdRealtimeCore

/// What may be changed, and asked for, while the client lives.
extension BirdRealtime {
    /// `unavailable`: the planned attempt begins now, without asking, and the schedule of those after it begins again. No effect in every
    /// other state. An error is told by `onError`.
    public func retryNow() {
        attempt { (client) throws(Fault) in try client.retryNow() }
    }

    /// Says what the host knows of its network, better or sooner than the option `networkWatch`. No effect where it changes nothing.
    public func networkHint(_ hint: NetworkHint) {
        attempt { (client) throws(Fault) in try client.networkHint(hint.core) }
    }

    /// From the attempt on that is planned, which is planned anew.
    ///
    /// - Parameter attemptsMax: failed attempts in a row after which the client gives up; 0: never, nil: as it was.
    /// - Throws: `RealtimeError`: a value is out of range, or the client was closed.
    public func setReconnect(_ policy: ReconnectPolicy, attemptsMax: Int? = nil) throws {
        var settings = Settings()
        policy.add(to: &settings)
        settings.add("reconnect_attempts_max", attemptsMax)
        try change(settings)
    }

    /// From the ping on that is due, or waits for its answer.
    ///
    /// - Throws: `RealtimeError`: a value is out of range, or the client was closed.
    public func setKeepAlive(_ keepAlive: KeepAlive) throws {
        var settings = Settings()
        keepAlive.add(to: &settings)
        try change(settings)
    }

    /// Sets an option that docs/options.md marks as live, by its key: `try bird.set("log_level", "verbose")`.
    ///
    /// - Throws: `RealtimeError`: no such option, a bad value, one that is fixed when the client is created, or a closed client.
    public func set(_ key: String, _ value: String) throws {
        var settings = Settings()
        settings.add(key, value)
        try change(settings)
    }

    private func change(_ settings: Settings) throws {
        try perform { (client) throws(Fault) in try settings.apply(to: client) }
    }
}

/// What a host knows of its network.
public enum NetworkHint: Sendable, CaseIterable {
    /// There is one (again): the planned attempt begins now.
    case up
    /// It has gone, or is another one now: a connection is looked after.
    case down
    /// The machine was suspended and goes on: both.
    case resumed

    var core: BirdRealtimeCore.NetworkHint {
        switch self {
        case .up: .up
        case .down: .down
        case .resumed: .resumed
        }
    }
}
