/// How the members whom the signed-in one watches stand, as far as records have been delivered (Bird protocol 12).
struct Watchlist {
    private static let membersMax = 10_000
    private static let statuses = ["online", "offline"]

    private var members: [String] = []
    private var status: [ExactText: String] = [:]

    /// A status that is none of the two says nothing about who is there.
    mutating func take(_ name: String, _ ids: [String]) {
        guard Self.statuses.contains(name) else { return }
        for id in ids {
            if status[ExactText(id)] == nil {
                guard members.count < Self.membersMax else { continue }
                members.append(id)
            }
            status[ExactText(id)] = name
        }
    }

    var isEmpty: Bool { members.isEmpty }

    /// What says it in as few records as possible, in order of arrival.
    var summary: [(name: String, ids: [String])] {
        Self.statuses.map { name in (name, members.filter { status[ExactText($0)] == name }) }.filter {
            !$0.ids.isEmpty
        }
    }
}
