@testable import BirdRealtimeCore

/// An edge as Bird protocol has it, one that forgets, dawdles and complains as long as the world is chaotic. It speaks strictly:
/// what a client must not send is an error, and what no correct session can send is a failure of the simulation.
///
/// In half of the worlds it works on the frames of a connection one after the other, pings among them, so that all answers come in the
/// order of the frames. In the others only the frames about one channel keep their order, and the pings.
final class ModelEdge {
    static let activityTimeoutSeconds = 20
    static let signinKey = "the signin"
    private static let pingsKey = "the pings"

    private(set) var links: [Link] = []
    private var connections = 0
    /// Of each channel: the number of its last event, and the event.
    private var published: [String: (number: Int, event: String, data: String)] = [:]
    let answersInOrder: Bool
    private unowned let world: World

    init(world: World) {
        self.world = world
        answersInOrder = Bool.random(using: &world.random)
    }

    // MARK: - Connections

    func accept(_ client: SimulatedClient, _ transport: TransportID) -> Link {
        Link(
            client: client, transport: transport,
            seat: EdgeConnection(
                connectionID: newConnectionID(client), manners: world.pick(Manners.allCases) ?? .strict,
                errorsOfRefusal: world.pick([0, 1, 1, 1, 1, 1, 2, 2]) ?? 1),
            world: world)
    }

    private func newConnectionID(_ client: SimulatedClient) -> String {
        connections += 1
        return "\(connections).\(client.number)"
    }

    private func upgradeCame(_ link: Link, _ key: String) {
        if world.strikes(.upgradeWithheld, link.client) { return }
        let isSlow = world.strikes(.upgradeSlow, link.client)
        world.schedule(.upgrade(link, key: key), in: isSlow ? 0...20_000 : 0...20)
    }

    func answerUpgrade(_ link: Link, _ key: String) {
        guard link.isAtEdge else { return }
        if world.strikes(.upgradeInterim, link.client) { link.toClient(UpgradeAnswer.interim) }
        let refusal: [UInt8]? =
            if world.strikes(.upgradeRefused, link.client) {
                UpgradeAnswer.refused(Int32.random(in: 200...599, using: &world.random))
            } else if world.strikes(.upgradeRetryAfter, link.client) {
                retryLater(link)
            } else if world.strikes(.upgradeGarbled, link.client) {
                world.pick(UpgradeAnswer.garbled(key))
            } else {
                nil
            }
        if let refusal {
            link.toClient(refusal)
            end(link)
            return
        }
        link.toClient(UpgradeAnswer.accepted(key))
        links.append(link)
        if world.strikes(.handshakeWithheld, link.client) { return }
        let isLate = world.strikes(.handshakeLate, link.client)
        world.schedule(.handshake(link), in: isLate ? 0...20_000 : 0...20)
    }

    /// An edge that wants to be left alone for a while, of which a minute counts.
    private func retryLater(_ link: Link) -> [UInt8] {
        let (text, ms) =
            world.pick(
                [("0", 0), ("2", 2_000), ("20", 20_000), ("3600", 60_000), ("99999999999999999999", 60_000)]
                    as [(String, Int64)]) ?? ("0", 0)
        link.restMs = ms
        return UpgradeAnswer.refused(world.pick([429, 503]) ?? 503, retryAfter: text)
    }

    func greet(_ link: Link) {
        guard link.isAtEdge, !link.seat.isClosed else { return }
        if !link.seat.isGreeted {
            if world.strikes(.errorBeforeHandshake, link.client) {
                refuseByError(link)
                return
            }
            if world.strikes(.greetingOfOther, link.client) {
                let other = link.dialect === Dialect.bird ? Dialect.pusher : .bird
                send(other.connectionEstablished, data: #"{"\#(other.connectionIDKey)":"1.1"}"#, to: link)
                return
            }
        }
        link.seat.isGreeted = true
        world.figures.connections += 1
        let lacksID = link.seat.connectionIDs.count == 1 && world.strikes(.handshakeLacksID, link.client)
        let id = lacksID ? "" : #""\#(link.dialect.connectionIDKey)":"\#(link.seat.connectionID)","#
        send(
            link.dialect.connectionEstablished, data: "{\(id)\"activity_timeout\":\(Self.activityTimeoutSeconds)}",
            to: link)
    }

    /// What servers say that close without a code, or not at all, afterwards.
    private func refuseByError(_ link: Link) {
        let code = world.pick([4000, 4001, 4003, 4009, 4100, 4200, 4299, 4300, 4999, 1000, nil] as [Int?])
        complain("No such app", code: code ?? nil, to: link)
        switch world.pick([0, 1, 2]) {
        case 0: end(link)
        case 1: close(link, 1000)
        default: break
        }
    }

    func link(of client: SimulatedClient) -> Link? {
        links.last { $0.client === client && $0.seat.isGreeted }
    }

    /// The edge's side of the connection is over.
    func lose(_ link: Link) {
        guard link.isAtEdge else { return }
        link.edgeForgets()
        links.removeAll { $0 === link }
        for channel in link.seat.subscriptions.keys.sorted() { leave(channel, link) }
        if let identity = link.seat.identity, !isOnline(identity) { announce(identity, "offline") }
    }

    func end(_ link: Link) {
        lose(link)
        link.endToClient()
    }

    func close(_ link: Link, _ code: UInt16) {
        world.figures.closeCodes.insert(code)
        world.note(link.client.number, "the edge closes with \(code)")
        link.toClient(ServerFrame.close(code, "simulated"), breaksRules: !CloseCode.isValid(code))
        link.seat.isClosed = true
        end(link)
    }

    func giveNewID(_ link: Link) {
        link.seat.connectionIDs.append(newConnectionID(link.client))
        greet(link)
    }

    func heal() {
        links.forEach { $0.speak() }
    }

    // MARK: - Frames

    func receive(_ bytes: [UInt8], from link: Link) throws {
        guard link.isAtEdge else { return }
        link.seat.frames.append(bytes)
        while link.isAtEdge, let message = try link.seat.frames.next() {
            switch message {
            case .upgrade(let key): upgradeCame(link, key)
            case .pong: break
            case .close:
                link.seat.isClosed = true
                end(link)
            case .text(let text):
                world.figures.framesToEdge += 1
                // What crosses the edge's close frame on its way is nobody's fault.
                if !link.seat.isClosed { try receive(text: text, from: link) }
            }
        }
    }

    private func receive(text: [UInt8], from link: Link) throws {
        guard let frame = JSONDocument.parse(text), let event = frame["event"]?.string else {
            throw Wrong(message: "sends what is not JSON")
        }
        try require(link.seat.isGreeted, "sends \(event) before the handshake")
        let data = frame["data"]
        let dialect = link.dialect
        switch event {
        case dialect.ping:
            link.seat.pings += 1
            enqueue(.ping(link.seat.pings), link, Self.pingsKey)
        case dialect.pong:
            break
        case dialect.subscribe:
            guard let channel = data?["channel"]?.string else { throw Wrong(message: "subscribes to nothing") }
            subscribeCame(link, channel, auth: data?["auth"]?.string, data?[dialect.channelDataKey]?.string)
        case dialect.unsubscribe:
            guard let channel = data?["channel"]?.string else { throw Wrong(message: "leaves nothing") }
            let isInProgress = link.seat.isSubscribing(channel) && link.seat.subscriptions[channel] == nil
            if link.seat.manners == .hasty, isInProgress {
                complain("No current subscription to channel \(channel), or subscription in progress", to: link)
            } else {
                enqueue(.unsubscribe(channel: channel), link, channel)
            }
        case dialect.signin:
            if world.strikes(.signinIgnored, link.client) {
                link.seat.isBlurred = true
                return
            }
            enqueue(
                .signin(auth: data?["auth"]?.string ?? "", memberData: data?[dialect.identityKey]?.string ?? ""), link,
                Self.signinKey)
        default:
            guard let channel = frame["channel"]?.string, event.hasPrefix("client-") else {
                throw Wrong(message: "sends \(event)")
            }
            for other in links where other !== link && other.seat.subscriptions[channel] != nil {
                send(event, channel, data: "{}", to: other)
            }
        }
    }

    private func subscribeCame(_ link: Link, _ channel: String, auth: String?, _ memberData: String?) {
        let frame = (link.seat.subscribeFrames[channel] ?? 0) + 1
        link.seat.subscribeFrames[channel] = frame
        if world.strikes(.subscribeIgnored, link.client) {
            link.seat.isBlurred = true
            link.seat.fates[channel, default: [:]][frame] = .ignored
            return
        }
        enqueue(.subscribe(channel: channel, auth: auth, memberData: memberData, frame: frame), link, channel)
    }

    private func enqueue(_ work: EdgeConnection.Work, _ link: Link, _ name: String) {
        let key = answersInOrder ? "everything" : name
        link.seat.work[key, default: []].append(work)
        if link.seat.work[key]?.count == 1 { scheduleWork(link, key) }
    }

    private func scheduleWork(_ link: Link, _ key: String) {
        let fault: FaultKind =
            switch link.seat.work[key]?.first {
            case .signin: .signinLate
            case .ping: .pongLate
            case .subscribe, .unsubscribe, nil: .subscribeLate
            }
        // Where everything waits for it, the connection would mostly be given up.
        let latestMs: Int64 = answersInOrder && !world.happens(onceIn: 5) ? 5_000 : 45_000
        world.schedule(.edgeWork(link, key: key), in: world.strikes(fault, link.client) ? 0...latestMs : 0...20)
    }

    func work(_ link: Link, _ key: String) throws {
        guard link.isAtEdge, !link.seat.isClosed, let work = link.seat.work[key]?.first else { return }
        switch work {
        case .subscribe(let channel, let auth, let memberData, let frame):
            try subscribe(link, channel, auth, memberData, frame)
        case .unsubscribe(let channel): unsubscribe(link, channel)
        case .signin(let auth, let memberData): try signIn(link, auth, memberData)
        case .ping(let number): pong(link, number)
        }
        link.seat.work[key]?.removeFirst()
        if link.seat.work[key]?.isEmpty == false { scheduleWork(link, key) }
    }

    private func pong(_ link: Link, _ number: Int) {
        if world.strikes(.pongWithheld, link.client) {
            link.seat.isBlurred = true
        } else {
            send(link.dialect.pong, data: #"{"ping":\#(number)}"#, to: link)
        }
    }

    // MARK: - Subscriptions

    private func subscribe(
        _ link: Link, _ channel: String, _ auth: String?, _ memberData: String?, _ frame: Int
    ) throws {
        if auth == ModelAuthorizer.wrongSignature || channel.hasPrefix("refused-") {
            refuse(channel, frame, "Invalid signature", link)
            return
        }
        if link.seat.subscriptions[channel] == nil, world.strikes(.subscriptionRefused, link.client) {
            link.seat.fates[channel, default: [:]][frame] = .refusedByName
            let event = world.pick([link.dialect.internalSubscriptionError, link.dialect.error]) ?? ""
            send(event, channel, data: #"{"code":4009,"message":"no","frame":\#(frame)}"#, to: link)
            return
        }
        let kind = ChannelKind.of(channel)
        if kind.needsAuthorization {
            guard try isSigned(auth, link, channel, memberData) else {
                refuse(channel, frame, "Invalid signature", link)
                return
            }
        }
        try require(
            kind != .member || channel == ChannelName.ofMember(link.seat.identity ?? "nobody"),
            "subscribes to \(channel) without being that member")
        guard link.seat.subscriptions[channel] == nil else {
            guard link.seat.manners != .lenient else {
                confirm(channel, link, kind, frame)
                return
            }
            refuse(channel, frame, "Existing subscription to channel \(channel)", link)
            return
        }
        let memberID = kind == .presence ? Self.memberID(memberData, link.dialect.memberIDKey) : nil
        let isNewMember = memberID.map { !members(of: channel).contains($0) } ?? false
        link.seat.subscriptions[channel] = EdgeConnection.Seat(memberID: memberID)
        confirm(channel, link, kind, frame)
        if Self.isCache(channel) { sendCached(channel, link) }
        if let memberID, isNewMember {
            for other in links where other !== link && other.seat.subscriptions[channel] != nil {
                sendMember(other.dialect.internalMemberAdded, channel, memberID, to: other)
            }
        }
        if channel == "public-counted" { tellCount(channel) }
    }

    private func refuse(_ channel: String, _ frame: Int, _ message: String, _ link: Link) {
        let errors = world.isChaotic ? link.seat.errorsOfRefusal : max(1, link.seat.errorsOfRefusal)
        link.seat.fates[channel, default: [:]][frame] = errors == 0 ? .refusedInSilence : .refused
        if errors == 0 { link.seat.isBlurred = true }
        for _ in 0..<errors { complain(message, to: link, about: (channel, frame)) }
    }

    private func confirm(_ channel: String, _ link: Link, _ kind: ChannelKind, _ frame: Int) {
        link.seat.fates[channel, default: [:]][frame] = .confirmed
        var data = #"{"frame":\#(frame)}"#
        if kind == .presence {
            let ids = members(of: channel)
            let hash = ids.map { #""\#($0)":{"of":"\#($0)"}"# }.joined(separator: ",")
            let list = ids.map { written($0, link) }.joined(separator: ",")
            data = #"{"presence":{"ids":[\#(list)],"hash":{\#(hash)},"count":0},"frame":\#(frame)}"#
        }
        send(link.dialect.internalSubscriptionSucceeded, channel, data: data, to: link)
    }

    private static func isCache(_ channel: String) -> Bool {
        ["cache-", "private-cache-", "private-encrypted-cache-"].contains { channel.hasPrefix($0) }
    }

    private func sendCached(_ channel: String, _ link: Link) {
        if let last = published[channel] {
            send(last.event, channel, data: last.data, to: link)
        } else {
            send(link.dialect.cacheMiss, channel, data: nil, to: link)
        }
    }

    private func tellCount(_ channel: String) {
        let subscribers = links.filter { $0.seat.subscriptions[channel] != nil }
        for link in subscribers {
            send(
                link.dialect.internalConnectionCount, channel,
                data: #"{"\#(link.dialect.connectionCountKey)":\#(subscribers.count)}"#, to: link)
        }
    }

    private func unsubscribe(_ link: Link, _ channel: String) {
        guard link.seat.subscriptions[channel] != nil else {
            if link.seat.manners != .lenient { complain("No current subscription to channel \(channel)", to: link) }
            return
        }
        leave(channel, link)
    }

    private func leave(_ channel: String, _ link: Link) {
        guard let seat = link.seat.subscriptions.removeValue(forKey: channel) else { return }
        if channel == "public-counted" { tellCount(channel) }
        guard let memberID = seat.memberID, !members(of: channel).contains(memberID) else { return }
        for other in links where other.seat.subscriptions[channel] != nil {
            sendMember(other.dialect.internalMemberRemoved, channel, memberID, to: other)
        }
    }

    func members(of channel: String) -> [String] {
        Set(links.compactMap { $0.seat.subscriptions[channel]?.memberID }).sorted()
    }

    // MARK: - Signin

    private func signIn(_ link: Link, _ auth: String, _ memberData: String) throws {
        if auth == ModelAuthorizer.wrongSignature {
            complain("Invalid signature", to: link)
            return
        }
        guard try isSigned(auth, link, nil, memberData) else {
            complain("Invalid signature", to: link)
            return
        }
        guard let memberID = Self.memberID(memberData, link.dialect.identityIDKey) else { return }
        let isNew = !isOnline(memberID)
        link.seat.identity = memberID
        send(
            link.dialect.signinSuccess, data: #"{"\#(link.dialect.identityKey)":\#(Self.quoted(memberData))}"#,
            to: link)
        let others = Set(links.compactMap { $0.seat.identity }).subtracting([memberID]).sorted()
        sendWatchlist("online", others, to: link)
        if isNew { announce(memberID, "online") }
    }

    private func isOnline(_ memberID: String) -> Bool { links.contains { $0.seat.identity == memberID } }

    /// Everybody watches everybody.
    private func announce(_ memberID: String, _ name: String) {
        for link in links where link.seat.identity != nil && link.seat.identity != memberID {
            sendWatchlist(name, [memberID], to: link)
        }
    }

    private func sendWatchlist(_ name: String, _ memberIDs: [String], to link: Link) {
        let ids = memberIDs.map { written($0, link) }.joined(separator: ",")
        let odd = world.happens(onceIn: 10) ? #",{"name":7}"# : ""
        send(
            link.dialect.watchlistEvents,
            data: #"{"events":[{"name":"\#(name)","\#(link.dialect.watchlistIDsKey)":[\#(ids)]}\#(odd)]}"#, to: link)
    }

    /// Only a new id that crossed the frame on its way excuses a signature for an old one.
    private func isSigned(
        _ auth: String?, _ link: Link, _ channel: String?, _ memberData: String?
    ) throws -> Bool {
        let signatures = link.seat.connectionIDs.map { ModelAuthorizer.signature($0, channel, memberData) }
        if auth == signatures.last { return true }
        guard let auth, signatures.contains(auth) else {
            throw Wrong(message: "sends \(auth ?? "nothing") instead of \(signatures.last ?? "")")
        }
        return false
    }

    private static func memberID(_ memberData: String?, _ key: String) -> String? {
        memberData.flatMap { JSONDocument.parse(Array($0.utf8))?[key]?.stringOrNumberText }
    }

    private func sendMember(_ event: String, _ channel: String, _ memberID: String, to link: Link) {
        send(event, channel, data: #"{"\#(link.dialect.memberIDKey)":\#(written(memberID, link))}"#, to: link)
    }

    /// Some edges write numbers.
    private func written(_ memberID: String, _ link: Link) -> String {
        Int(memberID) != nil && world.strikes(.numericID, link.client) ? memberID : "\"\(memberID)\""
    }

    // MARK: - Sending

    /// `about`: what only the simulation reads.
    func complain(
        _ message: String, code: Int? = nil, on channel: String? = nil, to link: Link,
        about: (channel: String, frame: Int)? = nil
    ) {
        let code = code.map(String.init) ?? "null"
        let answer = about.map { #","answers":{"channel":"\#($0.channel)","frame":\#($0.frame)}"# } ?? ""
        send(link.dialect.error, channel, data: #"{"code":\#(code),"message":"\#(message)"\#(answer)}"#, to: link)
    }

    /// `data` comes as a string, or as the value that it stands for.
    func send(_ event: String, _ channel: String? = nil, data: String?, to link: Link) {
        guard !link.seat.isClosed else { return }
        world.figures.framesToClients += 1
        var text = #"{"event":"\#(event)""#
        if let channel { text += #","channel":"\#(channel)""# }
        if let data { text += #","data":\#(Bool.random(using: &world.random) ? Self.quoted(data) : data)"# }
        text += "}"
        world.note(link.client.number, "edge: \(text)")
        if world.strikes(.messageFragmented, link.client) {
            link.toClient(ServerFrame.fragments(text, &world.random))
        } else {
            link.toClient(ServerFrame.text(text))
        }
        if world.strikes(.pingFrame, link.client) { link.toClient(ServerFrame.frame(.ping, [1, 2, 3])) }
    }

    private static func quoted(_ text: String) -> String {
        var quoted: [UInt8] = []
        JSONString.appendQuoted(text, to: &quoted)
        return String(decoding: quoted, as: UTF8.self)
    }

    // MARK: - Events

    /// Every event of a channel has a number of its own; clients must see them grow.
    func publish() {
        let names = Set(links.flatMap { $0.seat.subscriptions.keys }).sorted()
        guard let channel = world.pick(names) else { return }
        let subscribers = links.filter { $0.seat.subscriptions[channel] != nil }
        let number = (published[channel]?.number ?? 0) + 1
        let isSealed = ChannelKind.of(channel) == .encrypted
        let event = isSealed ? "\(Sealed.prefix)\(number)" : "tick"
        let data = isSealed ? sealed(number, channel, subscribers) : "\(number)"
        published[channel] = (number, event, data)
        for link in subscribers { send(event, channel, data: data, to: link) }
    }

    /// With the key of now, but for what is late, or garbage, or no envelope at all.
    private func sealed(_ number: Int, _ channel: String, _ subscribers: [Link]) -> String {
        guard let client = subscribers.first?.client else { return "" }
        if world.strikes(.keyRotated, client) { world.rotateKeys() }
        if world.strikes(.eventNotSealed, client) { return #"{"nonce":"x"}"# }
        let generation =
            if world.strikes(.keyUnknown, client) {
                -1
            } else if world.strikes(.keyOutdated, client) {
                world.keyGeneration - 1
            } else {
                world.keyGeneration
            }
        let nonce = (0..<24).map { _ in UInt8.random(in: 0...255, using: &world.random) }
        return Vault.seal("\(number)", Vault.sharedSecret(of: channel, world.masterKey(generation)), nonce: nonce)
    }
}

extension Link {
    var dialect: Dialect { client.dialect }
}
