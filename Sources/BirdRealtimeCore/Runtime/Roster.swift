/// The members of a presence channel as far as records have been delivered, in order of arrival.
struct Roster {
    private(set) var members: [Member] = []
    private var positions: [ExactText: Int] = [:]
    var myID = ""

    mutating func replace(_ members: [Member], myID: String) {
        self.members = members
        self.myID = myID
        positions = [:]
        for (position, member) in members.enumerated() { positions[ExactText(member.id)] = position }
    }

    mutating func add(_ member: Member) {
        if let position = positions[ExactText(member.id)] {
            members[position] = member
        } else {
            positions[ExactText(member.id)] = members.count
            members.append(member)
        }
    }

    mutating func remove(_ id: String) {
        guard let position = positions.removeValue(forKey: ExactText(id)) else { return }
        members.remove(at: position)
        for later in position..<members.count { positions[ExactText(members[later].id)] = later }
    }
}
