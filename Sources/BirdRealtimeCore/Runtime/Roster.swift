/// The members of a presence channel as far as records have been delivered, in order of arrival.
struct Roster {
    private(set) var members: [Member] = []
    private var positions: [String: Int] = [:]
    var myID = ""

    mutating func replace(_ members: [Member], myID: String) {
        self.members = members
        self.myID = myID
        positions = [:]
        for (position, member) in members.enumerated() { positions[member.id] = position }
    }

    mutating func add(_ member: Member) {
        if let position = positions[member.id] {
            members[position] = member
        } else {
            positions[member.id] = members.count
            members.append(member)
        }
    }

    mutating func remove(_ id: String) {
        guard let position = positions.removeValue(forKey: id) else { return }
        members.remove(at: position)
        for later in position..<members.count { positions[members[later].id] = later }
    }
}

/// What a record does to rosters at the moment of its delivery.
enum RosterChange {
    case replace(Channel, [Member], myID: String)
    case add(Channel, Member)
    case remove(Channel, String)
    /// The connection has gone: no roster is known any more.
    case clearAll(Client)

    func apply() {
        switch self {
        case .replace(let channel, let members, let myID):
            channel.updateRoster { $0.replace(members, myID: myID) }
        case .add(let channel, let member): channel.updateRoster { $0.add(member) }
        case .remove(let channel, let id): channel.updateRoster { $0.remove(id) }
        case .clearAll(let client):
            for channel in client.registeredChannels { channel.updateRoster { $0 = Roster() } }
        }
    }
}
