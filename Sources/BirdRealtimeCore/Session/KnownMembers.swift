/// Who is on a presence channel, as far as the session must know: which ids, and what was last known of each.
struct KnownMembers: Sendable {
    private var infos: [[UInt8]: [UInt8]?] = [:]

    init(_ members: [Member]) {
        for member in members {
            add(member)
        }
    }

    mutating func add(_ member: Member) {
        infos.updateValue(member.info, forKey: Array(member.id.utf8))
    }

    /// The member with its last known info, nil if it is not on the roster.
    mutating func remove(id: String) -> Member? {
        guard let info = infos.removeValue(forKey: Array(id.utf8)) else { return nil }
        return Member(id: id, info: info)
    }
}
