/// Who is on a presence channel, as far as the session must know: which ids, and what was last known of each.
struct KnownMembers: Sendable {
    /// Far above what an edge allows; an edge that goes on adding members must not fill the memory.
    static let membersMax = 100_000
    static let bytesMax = 64 * 1024 * 1024

    private var infos: [[UInt8]: [UInt8]?] = [:]
    /// Of ids and infos.
    private var bytes = 0

    /// Those of one message, whose size has a bound of its own.
    init(_ members: [Member]) {
        for member in members {
            let id = Array(member.id.utf8)
            infos.updateValue(member.info, forKey: id)
            bytes += Self.size(id, member.info)
        }
    }

    /// False: there is no room, and nothing has changed.
    mutating func add(_ member: Member) -> Bool {
        let id = Array(member.id.utf8)
        let before = infos[id].map { Self.size(id, $0) }
        let after = bytes - (before ?? 0) + Self.size(id, member.info)
        guard before != nil || infos.count < Self.membersMax, after <= Self.bytesMax else { return false }
        infos.updateValue(member.info, forKey: id)
        bytes = after
        return true
    }

    /// The member with its last known info, nil if it is not on the roster.
    mutating func remove(id: String) -> Member? {
        let key = Array(id.utf8)
        guard let info = infos.removeValue(forKey: key) else { return nil }
        bytes -= Self.size(key, info)
        return Member(id: id, info: info)
    }

    private static func size(_ id: [UInt8], _ info: [UInt8]?) -> Int { id.count + (info?.count ?? 0) }
}
