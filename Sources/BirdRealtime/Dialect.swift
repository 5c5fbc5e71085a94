/// The names that a server speaks.
public enum Dialect: String, Sendable, CaseIterable {
    case bird
    /// Those of servers of the Pusher protocol, version 7. `wsHost` or, for Pusher's own, the cluster as `region` says where one is.
    /// Handlers are bound to the same events.
    case pusher
}
