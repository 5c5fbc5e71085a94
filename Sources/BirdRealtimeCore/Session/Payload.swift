/// What the session reads out of the data of frames. Whatever is not as the protocol has it comes back as nil.
enum Payload {
    struct Handshake {
        var connectionID: String?
        var activityTimeoutMs: Int64?
    }

    struct EdgeError {
        var code: Int32
        var message: String?
    }

    struct Identity {
        var member: Member
        var memberData: String
    }

    static func handshake(_ data: InboundMessage.Data, _ dialect: Dialect) -> Handshake {
        let node = json(data)
        let connectionID = node?[dialect.connectionIDKey]?.string
        return Handshake(
            connectionID: connectionID?.isEmpty == false ? connectionID : nil,
            activityTimeoutMs: node?["activity_timeout"]?.numberText.flatMap(milliseconds(seconds:)))
    }

    /// What servers say when they refuse: `code` and `message`, or `status` and `error` with the `type` of the error.
    static func error(_ data: InboundMessage.Data) -> EdgeError {
        let node = json(data)
        let code = [node?["code"], node?["status"]].lazy.compactMap { $0?.numberText.flatMap { Int32($0) } }
        let texts = [node?["type"], node?["error"], node?["message"]].compactMap { nonEmpty($0?.string) }
        // One of them may repeat another.
        let words = texts.enumerated().filter { !texts.prefix($0.offset).contains($0.element) }.map(\.element)
        return EdgeError(
            code: code.first ?? 0, message: words.isEmpty ? plainText(data, node) : words.joined(separator: ": "))
    }

    private static func nonEmpty(_ text: String?) -> String? { text?.isEmpty == false ? text : nil }

    /// Bird protocol 11.2: `member_data` is a string of JSON; an object is accepted too.
    static func identity(_ data: InboundMessage.Data, _ dialect: Dialect) -> Identity? {
        guard let node = json(data)?[dialect.identityKey] else { return nil }
        let memberData = node.string ?? String(decoding: node.raw, as: UTF8.self)
        guard let identity = JSONDocument.parse(Array(memberData.utf8)),
            let id = memberID(identity[dialect.identityIDKey])
        else { return nil }
        let member = Member(id: id, info: identity[dialect.memberInfoKey]?.raw)
        return Identity(member: member, memberData: dialect === Dialect.bird ? memberData : Self.memberData(of: member))
    }

    /// Programs read of members in one language, whatever the edge speaks.
    private static func memberData(of member: Member) -> String {
        var writer = ObjectWriter()
        writer.member(Dialect.bird.identityIDKey, member.id)
        if let info = member.info { writer.member(Dialect.bird.memberInfoKey, json: info) }
        return String(decoding: writer.finish(), as: UTF8.self)
    }

    /// The id in the `member_data` of a presence authorization.
    static func memberID(inMemberData memberData: String, _ dialect: Dialect) -> String? {
        memberID(JSONDocument.parse(Array(memberData.utf8))?[dialect.memberIDKey])
    }

    static func member(_ data: InboundMessage.Data, _ dialect: Dialect) -> Member? {
        guard let node = json(data), let id = memberID(node[dialect.memberIDKey]) else { return nil }
        return Member(id: id, info: node[dialect.memberInfoKey]?.raw)
    }

    /// The roster of a success frame in the order of `ids`, each id once (Bird protocol 10); `count` says nothing new. Servers may
    /// leave out `ids`, or say null, which says nothing new either.
    static func members(_ data: InboundMessage.Data) -> [Member] {
        guard let presence = json(data)?["presence"] else { return [] }
        let infos = presence["hash"]?.dictionary ?? [:]
        var members: [Member] = []
        var seen: Set<ExactText> = []
        let named = presence["ids"].flatMap { $0.isNull ? nil : $0.elements.map(memberID) }
        let ids: [String?] = named ?? infos.keys.map(\.text).sorted()
        for case let id? in ids {
            guard seen.insert(ExactText(id)).inserted else { continue }
            members.append(Member(id: id, info: infos[ExactText(id)]?.raw))
        }
        return members
    }

    static func hasConnectionCount(_ data: InboundMessage.Data, _ dialect: Dialect) -> Bool {
        json(data)?[dialect.connectionCountKey]?.stringOrNumberText.flatMap { UInt64($0) } != nil
    }

    /// The entries of a watchlist frame (Bird protocol 12), nil for one that is none. Ids that are neither strings nor numbers are left out.
    static func watchlist(_ data: InboundMessage.Data, _ dialect: Dialect) -> [(name: String, ids: [String])?] {
        guard let events = json(data)?["events"], events.kind == .array else { return [nil] }
        return events.elements.map { entry in
            guard let name = entry["name"]?.string, EventName.isValid(name), let ids = entry[dialect.watchlistIDsKey],
                ids.kind == .array
            else { return nil }
            return (name, ids.elements.compactMap(memberID))
        }
    }

    private static func memberID(_ node: JSONNode?) -> String? {
        guard let id = node?.stringOrNumberText, !id.isEmpty else { return nil }
        return id
    }

    private static func json(_ data: InboundMessage.Data) -> JSONNode? {
        switch data {
        case .none: nil
        case .string(let bytes), .value(let bytes): JSONDocument.parse(bytes)
        }
    }

    /// An error may come as a bare text.
    private static func plainText(_ data: InboundMessage.Data, _ node: JSONNode?) -> String? {
        if let text = node?.string { return text }
        guard node == nil, case .string(let bytes) = data, !bytes.isEmpty else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func milliseconds(seconds: String) -> Int64? {
        guard let seconds = Double(seconds), seconds.isFinite else { return nil }
        return Int64(min(max(seconds, 0), 1_000_000_000) * 1_000)
    }
}
