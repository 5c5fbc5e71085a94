/// What a record changes at the moment of its delivery.
enum DeliveryChange {
    case replace(Channel, [Member], myID: String)
    case add(Channel, Member)
    case remove(Channel, String)
    case watchlist(String, [String])
    /// Another signin: what was known belongs to the list of the one before.
    case forgetWatchlist(Client)
    /// The connection has gone: no roster is known any more, and no subscription stands.
    case forgetConnection(Client)

    func apply() {
        switch self {
        case .replace(let channel, let members, let myID):
            channel.updateRoster { $0.replace(members, myID: myID) }
        case .add(let channel, let member): channel.updateRoster { $0.add(member) }
        case .remove(let channel, let id): channel.updateRoster { $0.remove(id) }
        case .watchlist: break  // Taken up together with the observers that are told.
        case .forgetWatchlist(let client): client.forgetWatchlist()
        case .forgetConnection(let client): client.forgetConnection()
        }
    }
}
