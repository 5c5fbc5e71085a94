import BirdRealtimeCore
import CBirdRealtimeABI

/// Who is there of the members that the one signed in watches: the edge tells of the whole list after each signin, and of changes from
/// then on. Needs an app with watchlist events, and an authorizer that puts the list into the member's data.
public struct Watchlist: Sendable {
    let client: Client?

    /// The members that are online. Inside a handler this is the list as of that event; empty while not signed in.
    public var online: [String] { members("online") }

    /// The members that are not.
    public var offline: [String] { members("offline") }

    /// Calls the handler, on the delivery queue, with the members that came ("online") or went ("offline"). One that is bound when that
    /// was told already is called with those who are online, or offline, now. It is unbound as every other.
    @discardableResult
    public func bind(
        _ event: String, _ handler: @escaping @Sendable (_ memberIds: [String]) -> Void
    ) -> BindingToken {
        guard let client else { return .none }
        return client.token { (client) throws(Fault) in
            try client.observe(BIRD_RECORD_WATCHLIST) { record in
                if record.eventName == event { handler(record.watchedMembers) }
            }
        }
    }

    private func members(_ status: String) -> [String] {
        client?.watchlist.first { $0.name == status }?.ids ?? []
    }
}
