import BirdRealtimeCore

/// A person of the application: on a presence channel, or the one that this connection signed in as.
public struct Member: Sendable, Hashable {
    public let memberId: String
    /// What the application's backend said about the member, nil if nothing.
    public let memberInfo: JSONValue?

    public init(memberId: String, memberInfo: JSONValue? = nil) {
        self.memberId = memberId
        self.memberInfo = memberInfo
    }

    init(_ member: BirdRealtimeCore.Member) {
        self.init(memberId: member.id, memberInfo: member.info.map { JSONValue(json: $0) })
    }

    /// The member that the `member_data` of a signin names.
    init(memberData: JSONValue?) {
        let id = memberData?["member_id"]
        self.init(memberId: id?.string ?? id?.number ?? "", memberInfo: memberData?["member_info"])
    }
}
