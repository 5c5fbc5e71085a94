/// What a record changes at the moment of its delivery.
enum DeliveryChange {
    case replace(Channel, RosterHandover, myID: String)
    case add(Channel, Member)
    case remove(Channel, String)
    case watchlist(String, [String])
    /// Another signin: what was known belongs to the list of the one before.
    case forgetWatchlist(Client)
    /// The connection has gone: no roster is known any more, and no subscription stands.
    case forgetConnection(Client)

    func apply() {
        switch self {
        case .replace(let channel, let handover, let myID): channel.replaceRoster(handover.take(), myID: myID)
        case .add(let channel, let member): channel.updateRoster { _ = $0.add(member) }
        case .remove(let channel, let id): channel.updateRoster { _ = $0.remove(id: id) }
        case .watchlist: break  // Taken up together with the observers that are told.
        case .forgetWatchlist(let client): client.forgetWatchlist()
        case .forgetConnection(let client): client.forgetConnection()
        }
    }
}

/// A roster on its way to its channel, which then is the only one that holds it: a change copies nothing.
/// `@unchecked Sendable`: it passes from the reactor to the delivery with its record.
final class RosterHandover: @unchecked Sendable {
    private var roster: Roster

    init(_ roster: Roster) {
        self.roster = roster
    }

    func take() -> Roster {
        defer { roster = Roster() }
        return roster
    }
}
