/// What the session reads out of the data of frames. Whatever is not as the protocol has it comes back as nil.
enum Payload {
    /// Of the id of a connection and of that of the member signed in; longer ones are none.
    static let idBytesMax = 1_024
    /// Of the `member_data` of a signin.
    static let memberDataBytesMax = 65_536
    /// What is read of one watchlist frame; the rest counts as malformed.
    static let watchlistEntriesMax = 1_024
    static let watchlistIDsMax = 10_000

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
            connectionID: connectionID.flatMap { (1...idBytesMax).contains($0.utf8.count) ? $0 : nil },
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
            code: code.first ?? 0,
            message: words.isEmpty ? plainText(data, node) : EdgeText.cut(words.joined(separator: ": ")))
    }

    private static func nonEmpty(_ text: String?) -> String? { text?.isEmpty == false ? text : nil }

    /// Bird protocol 11.2: `member_data` is a string of JSON; an object is accepted too.
    static func identity(_ data: InboundMessage.Data, _ dialect: Dialect) -> Identity? {
        guard let node = json(data)?[dialect.identityKey] else { return nil }
        let memberData = node.string ?? String(decoding: node.raw, as: UTF8.self)
        guard memberData.utf8.count <= memberDataBytesMax,
            let identity = JSONDocument.parse(Array(memberData.utf8)),
            let id = memberID(identity[dialect.identityIDKey]), id.utf8.count <= idBytesMax
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
    /// leave out `ids`, or say null, which says nothing new either. It is read where it lies: it may be large.
    static func members(_ data: InboundMessage.Data) -> Roster {
        data.bytes.withUnsafeBytes { bytes in
            var roster = Roster()
            guard let presence = JSONPlace.root(of: bytes)?.member("presence", in: bytes) else { return roster }
            let infos = presence.member("hash", in: bytes)
            if let ids = presence.member("ids", in: bytes), ids.kind != .null {
                ids.forEachElement(in: bytes) { id in
                    withID(id, in: bytes) { roster.take($0, info: nil) }
                    return true
                }
                infos?.forEachMember(in: bytes) { key, info in
                    withText(key, in: bytes) { if roster.contains($0) { roster.take($0, info: info.raw(in: bytes)) } }
                    return true
                }
            } else {
                for (key, info) in sorted(infos, in: bytes) {
                    withText(key, in: bytes) { roster.take($0, info: info.raw(in: bytes)) }
                }
            }
            return roster
        }
    }

    /// The members of an object by their keys; no more than a roster holds.
    private static func sorted(_ infos: JSONPlace?, in bytes: UnsafeRawBufferPointer) -> [(key: Span, info: JSONPlace)]
    {
        var members: [(key: Span, text: String, info: JSONPlace)] = []
        infos?.forEachMember(in: bytes) { key, info in
            members.append((key, JSONString.decode(key, in: bytes), info))
            return members.count <= Roster.membersMax
        }
        return members.sorted { $0.text < $1.text }.map { ($0.key, $0.info) }
    }

    /// Ids are strings, or numbers as they stand in the text. An empty one is none.
    private static func withID(
        _ id: JSONPlace, in bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        switch id.kind {
        case .string, .number: withText(id.span, in: bytes, body)
        case .object, .array, .bool, .null: break
        }
    }

    private static func withText(
        _ span: Span, in bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        guard span.length > 0 else { return }
        guard span.isEscaped else { return body(span.bytes(in: bytes)) }
        var text = JSONString.decode(span, in: bytes)
        text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }

    static func hasConnectionCount(_ data: InboundMessage.Data, _ dialect: Dialect) -> Bool {
        json(data)?[dialect.connectionCountKey]?.stringOrNumberText.flatMap { UInt64($0) } != nil
    }

    /// The entries of a watchlist frame (Bird protocol 12), and how many are malformed or more than one frame may have. Ids that are
    /// neither strings nor numbers are left out.
    static func watchlist(
        _ data: InboundMessage.Data, _ dialect: Dialect
    ) -> (entries: [(name: String, ids: [String])], malformed: Int) {
        data.bytes.withUnsafeBytes { bytes in
            guard let events = JSONPlace.root(of: bytes)?.member("events", in: bytes), events.kind == .array else {
                return ([], 1)
            }
            var entries: [(name: String, ids: [String])] = []
            var malformed = 0
            var idsLeft = watchlistIDsMax
            events.forEachElement(in: bytes) { entry in
                guard entries.count < watchlistEntriesMax, idsLeft > 0,
                    let name = entry.member("name", in: bytes)?.string(in: bytes), EventName.isValid(name),
                    let list = entry.member(dialect.watchlistIDsKey, in: bytes), list.kind == .array
                else {
                    malformed += 1
                    return true
                }
                var ids: [String] = []
                var isCut = false
                list.forEachElement(in: bytes) { id in
                    isCut = ids.count == idsLeft
                    if !isCut { withID(id, in: bytes) { ids.append(String(decoding: $0, as: UTF8.self)) } }
                    return !isCut
                }
                idsLeft -= ids.count
                malformed += isCut ? 1 : 0
                entries.append((name, ids))
                return true
            }
            return (entries, malformed)
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
        if let text = node?.string { return EdgeText.cut(text) }
        guard node == nil, case .string(let bytes) = data, !bytes.isEmpty else { return nil }
        return bytes.withUnsafeBytes { EdgeText.cut($0) }
    }

    private static func milliseconds(seconds: String) -> Int64? {
        guard let seconds = Double(seconds), seconds.isFinite else { return nil }
        return Int64(min(max(seconds, 0), 1_000_000_000) * 1_000)
    }
}
