import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// An edge as Bird protocol has it, one that forgets, dawdles and complains as long as the world is chaotic. It speaks strictly:
/// what a client must not send is an error, and what no correct session can send is a failure of the simulation.
final class ModelEdge {
    /// A subscription of one connection; the member for presence channels.
    struct Seat {
        var memberID: String?
    }

    enum Work {
        /// `frame`: which subscribe frame of the connection for this channel it is; its confirmation says so.
        case subscribe(auth: String?, memberData: String?, frame: Int)
        case unsubscribe
        case signin(auth: String, memberData: String)
    }

    static let activityTimeoutSeconds = 20
    static let signinKey = "the signin"

    private(set) var links: [Link] = []
    private var sequence: [String: Int] = [:]
    private var connections = 0
    private unowned let world: World

    init(world: World) {
        self.world = world
    }

    // MARK: - Connections

    func accept(_ client: SimulatedClient, _ transport: TransportID) -> Link {
        connections += 1
        return Link(
            client: client, transport: transport, connectionID: "\(connections).\(client.number)",
            manners: world.pick(Manners.allCases) ?? .strict, world: world)
    }

    func opened(_ link: Link) {
        links.append(link)
        if world.happens(onceIn: 12) { return }
        world.schedule(.handshake(link), in: world.happens(onceIn: 8) ? 0...20_000 : 0...20)
    }

    func greet(_ link: Link) {
        guard link.isAtEdge else { return }
        link.isGreeted = true
        let id =
            link.connectionIDs.count == 1 && world.happens(onceIn: 60)
            ? "" : #""\#(link.dialect.connectionIDKey)":"\#(link.connectionID)","#
        send(
            link.dialect.connectionEstablished, data: "{\(id)\"activity_timeout\":\(Self.activityTimeoutSeconds)}",
            to: link)
    }

    func link(of client: SimulatedClient) -> Link? {
        links.last { $0.client === client && $0.isGreeted }
    }

    func lose(_ link: Link) {
        guard link.isAtEdge else { return }
        link.isAtEdge = false
        links.removeAll { $0 === link }
        for channel in link.subscriptions.keys.sorted() {
            leave(channel, link)
        }
    }

    func heal() {
        for link in links {
            link.speak()
        }
    }

    // MARK: - Frames

    func receive(_ bytes: [UInt8], from link: Link) throws {
        guard link.isAtEdge else { return }
        guard let frame = JSONDocument.parse(bytes), let event = frame["event"]?.string else {
            throw world.failure(of: link.client, "sent what is not JSON")
        }
        guard link.isGreeted else {
            throw world.failure(of: link.client, "sent \(event) before the handshake")
        }
        let data = frame["data"]
        let dialect = link.dialect
        switch event {
        case dialect.ping:
            send(dialect.pong, data: nil, to: link)
        case dialect.pong:
            break
        case dialect.subscribe, dialect.unsubscribe:
            guard let channel = data?["channel"]?.string else {
                throw world.failure(of: link.client, "sent \(event) without a channel")
            }
            let isSubscribe = event == dialect.subscribe
            if isSubscribe {
                link.subscribeFrames[channel, default: 0] += 1
            }
            // Only the first of a channel. When a client has subscribed, left and subscribed, hears an unrelated error and then one
            // confirmation, it cannot know whether the edge has refused the first and confirmed the second, or confirmed the first
            // and lost the second: the edge says the same in both cases. A client that believes it is subscribed is wrong in
            // the second, one that does not is wrong in the first.
            if isSubscribe, link.subscribeFrames[channel] == 1, world.happens(onceIn: 30) {
                world.note(link.client.number, "the edge ignores the subscribe of \(channel)")
                return
            }
            if !isSubscribe, link.manners == .hasty, link.isSubscribing(channel) {
                complain("No current subscription to channel \(channel), or subscription in progress", to: link)
                return
            }
            enqueue(
                isSubscribe
                    ? .subscribe(
                        auth: data?["auth"]?.string, memberData: data?[dialect.channelDataKey]?.string,
                        frame: link.subscribeFrames[channel] ?? 0) : .unsubscribe,
                link, channel)
        case dialect.signin:
            if world.happens(onceIn: 20) { return }
            enqueue(
                .signin(auth: data?["auth"]?.string ?? "", memberData: data?[dialect.identityKey]?.string ?? ""), link,
                Self.signinKey)
        default:
            guard let channel = frame["channel"]?.string, event.hasPrefix("client-") else {
                throw world.failure(of: link.client, "sent \(event)")
            }
            for other in links where other !== link && other.subscriptions[channel] != nil {
                send(event, channel, data: "{}", to: other)
            }
        }
    }

    private func enqueue(_ work: Work, _ link: Link, _ key: String) {
        link.work[key, default: []].append(work)
        if link.work[key]?.count == 1 {
            scheduleWork(link, key)
        }
    }

    private func scheduleWork(_ link: Link, _ key: String) {
        world.schedule(.edgeWork(link, key: key), in: world.happens(onceIn: 12) ? 0...45_000 : 0...20)
    }

    func work(_ link: Link, _ key: String) throws {
        guard link.isAtEdge, let work = link.work[key]?.first else { return }
        switch work {
        case .subscribe(let auth, let memberData, let frame): try subscribe(link, key, auth, memberData, frame)
        case .unsubscribe: unsubscribe(link, key)
        case .signin(let auth, let memberData): try signIn(link, auth, memberData)
        }
        link.work[key]?.removeFirst()
        if link.work[key]?.isEmpty == false {
            scheduleWork(link, key)
        }
    }

    private func subscribe(
        _ link: Link, _ channel: String, _ auth: String?, _ memberData: String?, _ frame: Int
    ) throws {
        if auth == ModelAuthorizer.wrongSignature || channel.hasPrefix("refused-") {
            complain("Invalid signature", to: link)
            return
        }
        let kind = ChannelKind.of(channel)
        if kind.needsAuthorization {
            guard try checkSignature(auth, link, channel, memberData) else { return }
        }
        if kind == .member, channel != ChannelName.ofMember(link.identity ?? "nobody") {
            throw world.failure(of: link.client, "subscribed to \(channel) without being that member")
        }
        guard link.subscriptions[channel] == nil else {
            guard link.manners != .lenient else {
                confirm(channel, link, kind, frame)
                return
            }
            complain("Existing subscription to channel \(channel)", to: link)
            return
        }
        let memberID = kind == .presence ? Self.memberID(memberData, link.dialect.memberIDKey) : nil
        let isNewMember = memberID.map { !members(of: channel).contains($0) } ?? false
        link.subscriptions[channel] = Seat(memberID: memberID)
        confirm(channel, link, kind, frame)
        if let memberID, isNewMember {
            for other in links where other !== link && other.subscriptions[channel] != nil {
                sendMember(other.dialect.internalMemberAdded, channel, memberID, to: other)
            }
        }
    }

    private func confirm(_ channel: String, _ link: Link, _ kind: ChannelKind, _ frame: Int) {
        var data = #"{"frame":\#(frame)}"#
        if kind == .presence {
            let ids = members(of: channel)
            let hash = ids.map { #""\#($0)":{"of":"\#($0)"}"# }.joined(separator: ",")
            data =
                #"{"presence":{"ids":[\#(ids.map(written).joined(separator: ","))],"hash":{\#(hash)},"count":0},"frame":\#(frame)}"#
        }
        send(link.dialect.internalSubscriptionSucceeded, channel, data: data, to: link)
    }

    private func unsubscribe(_ link: Link, _ channel: String) {
        guard link.subscriptions[channel] != nil else {
            if link.manners != .lenient {
                complain("No current subscription to channel \(channel)", to: link)
            }
            return
        }
        leave(channel, link)
    }

    private func leave(_ channel: String, _ link: Link) {
        guard let seat = link.subscriptions.removeValue(forKey: channel), let memberID = seat.memberID,
            !members(of: channel).contains(memberID)
        else { return }
        for other in links where other.subscriptions[channel] != nil {
            sendMember(other.dialect.internalMemberRemoved, channel, memberID, to: other)
        }
    }

    private func signIn(_ link: Link, _ auth: String, _ memberData: String) throws {
        if auth == ModelAuthorizer.wrongSignature {
            complain("Invalid signature", to: link)
            return
        }
        guard try checkSignature(auth, link, nil, memberData),
            let memberID = Self.memberID(memberData, link.dialect.identityIDKey)
        else { return }
        link.identity = memberID
        var quoted: [UInt8] = []
        JSONString.appendQuoted(memberData, to: &quoted)
        send(
            link.dialect.signinSuccess,
            data: #"{"\#(link.dialect.identityKey)":\#(String(decoding: quoted, as: UTF8.self))}"#, to: link)
    }

    /// Only a new id that crossed the frame on its way excuses a signature for an old one.
    private func checkSignature(
        _ auth: String?, _ link: Link, _ channel: String?, _ memberData: String?
    ) throws -> Bool {
        let signatures = link.connectionIDs.map { ModelAuthorizer.signature($0, channel, memberData) }
        if auth == signatures.last { return true }
        guard let auth, signatures.contains(auth) else {
            throw world.failure(of: link.client, "sent \(auth ?? "nothing") instead of \(signatures.last ?? "")")
        }
        complain("Invalid signature", to: link)
        return false
    }

    func members(of channel: String) -> [String] {
        Set(links.compactMap { $0.subscriptions[channel]?.memberID }).sorted()
    }

    private static func memberID(_ memberData: String?, _ key: String) -> String? {
        memberData.flatMap { JSONDocument.parse(Array($0.utf8))?[key]?.stringOrNumberText }
    }

    private func sendMember(_ event: String, _ channel: String, _ memberID: String, to link: Link) {
        send(event, channel, data: #"{"\#(link.dialect.memberIDKey)":\#(written(memberID))}"#, to: link)
    }

    /// Some edges write numbers.
    private func written(_ memberID: String) -> String {
        Int(memberID) == nil || Bool.random(using: &world.random) ? "\"\(memberID)\"" : memberID
    }

    private func complain(_ message: String, to link: Link) {
        send(link.dialect.error, data: #"{"code":null,"message":"\#(message)"}"#, to: link)
    }

    private func send(_ event: String, _ channel: String? = nil, data: String?, to link: Link) {
        let data = data.map { InboundMessage.Data.string(Array($0.utf8)) } ?? .none
        link.toClient(InboundMessage(event: event, channel: channel, data: data))
    }

    // MARK: - Events

    /// Every event of a channel has a number of its own; clients must see them grow.
    func publish() {
        let names = Set(links.flatMap { $0.subscriptions.keys }).sorted()
        guard let channel = world.pick(names) else { return }
        sequence[channel, default: 0] += 1
        let number = sequence[channel] ?? 0
        guard ChannelKind.of(channel) == .encrypted else {
            for link in links where link.subscriptions[channel] != nil {
                send("tick", channel, data: "\(number)", to: link)
            }
            return
        }
        if world.happens(onceIn: 30) { world.rotateKeys() }
        let data = sealed(number, channel)
        for link in links where link.subscriptions[channel] != nil {
            send("\(SimulatedClient.sealedPrefix)\(number)", channel, data: data, to: link)
        }
    }

    /// With the key of now, but for what is late, or garbage, or no envelope at all.
    private func sealed(_ number: Int, _ channel: String) -> String {
        if world.happens(onceIn: 20) { return #"{"nonce":"x"}"# }
        let generation =
            world.happens(onceIn: 15) ? -1 : world.happens(onceIn: 10) ? world.keyGeneration - 1 : world.keyGeneration
        let nonce = (0..<24).map { _ in UInt8.random(in: 0...255, using: &world.random) }
        return Vault.seal(
            "\(number)", Vault.sharedSecret(of: channel, world.masterKey(generation)), nonce: nonce)
    }

    // MARK: - Faults

    func somethingGoesWrong() throws {
        guard let link = world.pick(links) else { return }
        let client = link.client
        switch Int.random(in: 0..<12, using: &world.random) {
        case 0:
            world.note(client.number, "the connection is reset")
            end(link, .failed(Fault(BIRD_ERR_LOST, .connection, "reset", isRetriable: true)))
        case 1, 2:
            let refusals: [UInt16] = [4001, 4004, 4009]
            let others: [UInt16] = [1000, 1001, 1006, 1011, 4100, 4199, 4200, 4200, 4201, 4299, 4300]
            guard let code = world.pick(world.happens(onceIn: 8) ? refusals : others) else { return }
            world.note(client.number, "the edge closes with \(code)")
            end(link, .closed(code: code, reason: "simulated"))
        case 3:
            let isForEver = world.happens(onceIn: 2)
            world.note(client.number, "silence\(isForEver ? " for ever" : "")")
            link.fallSilent(forEver: isForEver)
        case 4:
            world.note(client.number, "the link is heard again")
            link.speak()
        case 5 where link.isGreeted:
            complain("Something unrelated", to: link)
        case 6 where link.isGreeted:
            send(link.dialect.error, data: #"{"code":4301,"message":"slow down"}"#, to: link)
        case 7 where link.isGreeted:
            send(link.dialect.ping, data: "{}", to: link)
        case 8 where link.isGreeted && world.happens(onceIn: 2):
            connections += 1
            link.connectionIDs.append("\(connections).\(client.number)")
            greet(link)
        case 8, 9:
            if let message = world.pick(Self.garbage(link.dialect)) {
                link.toClient(message)
            }
        case 10:
            try client.jump(world.pick([1_000, 20_000, 60_000, 600_000]) ?? 0)
        default:
            try client.hearFromThePast()
        }
    }

    private func end(_ link: Link, _ end: TransportEnd) {
        lose(link)
        link.endToClient(end)
    }

    private static func garbage(_ dialect: Dialect) -> [InboundMessage] {
        [
            InboundMessage(event: "", channel: "", data: .string([])),
            InboundMessage(event: dialect.error, data: .string(Array("\u{0}".utf8))),
            InboundMessage(event: dialect.error, data: .value(Array("[1,2".utf8))),
            InboundMessage(event: dialect.signinSuccess, data: .value(Array("{\"\(dialect.identityKey)\":7}".utf8))),
            InboundMessage(event: dialect.internalMemberAdded, channel: "presence-a", data: .value(Array("{}".utf8))),
            InboundMessage(event: dialect.internalMemberRemoved, channel: "presence-a", data: .none),
            InboundMessage(event: dialect.internalConnectionCount, channel: "public-a", data: .string([0xFF, 0xFE])),
            InboundMessage(event: dialect.internalPrefix + "unheard_of", channel: "public-a", data: .none),
            InboundMessage(event: "tick", channel: "never-wanted", data: .string(Array("1".utf8))),
            InboundMessage(event: dialect.pong, data: .none),
        ]
    }
}
