import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// The runtime's part: streams, the upgrade, frames in and out.
extension SimulatedClient {
    // MARK: - Attempts

    func open(_ id: TransportID) throws {
        try require(transport == nil, "has two transports")
        try require(id.number > lastTransport, "uses a transport twice")
        try require(!told.isTerminal && program.wantsConnection, "dials though nobody asked")
        try attempts.begin(now, needsConsent: configuration.asksBeforeReconnect)
        lastTransport = id.number
        transport = id
        if world.strikes(.connectHangs, self) { return }
        if world.strikes(.connectRefused, self) {
            world.schedule(.dialFailed(self, id), in: 0...8_000)
            return
        }
        let isSlow = world.strikes(.connectSlow, self)
        world.schedule(.dialed(self, world.edge.accept(self, id)), in: isSlow ? 0...20_000 : 1...50)
    }

    func dialFailed(_ id: TransportID) throws {
        guard transport == id else { return }
        try ended(id, .failed(Fault(BIRD_ERR_CONNECT, .connection, "connection refused", isRetriable: true)))
    }

    func dialed(_ link: Link) throws {
        guard transport == link.transport else { return }
        let key = UpgradeRequest.key(random: (world.random.next(), world.random.next()))
        socket = Socket(link: link, key: key)
        silence.connectionBegan()
        newIDAt = nil
        link.toEdge(UpgradeRequest.bytes(host: "edge.example", path: "/", key: key, userAgent: "simulation"))
        try handle(.transportStep(link.transport, "upgrade"))
    }

    // MARK: - Ends

    /// From here on nobody hears of it.
    private func forgetTransport() {
        if let transport { pastTransports.append(transport) }
        transport = nil
        socket = nil
        asked = [:]
        confirmations.forgetConnection()
    }

    private func ended(_ id: TransportID, _ end: TransportEnd) throws {
        forgetTransport()
        try handle(.transportEnded(id, end))
        if case .closed(let code, _) = end, dialect.isRefusal(code) {
            try require(state == .failed, "is \(state) after a refusal")
        }
    }

    /// The session has had enough of it. With a code, the edge hears of it, unless a frame is on its way in part.
    func close(_ id: TransportID, code: UInt16?, reason: String) throws {
        try require(id == transport, "closes a transport that it does not have")
        if reason == "activity timeout" { try silence.checkGivenUp(now, configuration) }
        if let socket {
            if socket.isUpgraded, socket.outbox.isEmpty, let code { sendClose(code, reason, on: socket.link) }
            world.schedule(.endToEdge(socket.link), in: 0...3_000)
        }
        forgetTransport()
    }

    private func sendClose(_ code: UInt16?, _ reason: String, on link: Link) {
        var bytes: [UInt8] = []
        FrameEncoder.appendClose(code: code, reason: reason, maskKey: maskKey(), to: &bytes)
        link.toEdge(bytes)
    }

    private func maskKey() -> UInt32 { UInt32.random(in: 0...UInt32.max, using: &world.random) }

    // MARK: - In

    func readable(_ link: Link) throws {
        guard socket?.link === link else { return }
        guard socket?.isPaused == false else { return }
        let bytes = link.takeUnread()
        if !bytes.isEmpty {
            noteLife()
            lastHeard = now
            session.noteInbound(now: Instant(milliseconds: now))
            socket?.inbox += bytes
        }
        try takeInbox(link)
        guard link.hasEnded, socket?.link === link, socket?.isPaused == false else { return }
        let reason = "The edge ended the connection without a close frame."
        try ended(link.transport, .failed(Fault(BIRD_ERR_LOST, .connection, reason, isRetriable: true)))
    }

    func streamEnded(_ link: Link) throws {
        link.end()
        try readable(link)
    }

    func resumeReading() {
        guard let link = socket?.link else { return }
        socket?.isPaused = false
        world.schedule(.read(self, link), in: 0...0)
    }

    /// An edge lives if it has sent what is not read. If it seems dead, what it sent before is still told.
    func watchWhilePaused() throws {
        guard let socket, socket.isPaused else { return }
        if !socket.link.unread.isEmpty {
            session.noteUnread()
            noteLife()
        } else if session.isEdgeDead(Instant(milliseconds: now)) {
            try takeInbox(socket.link, evenIfPaused: true)
        }
    }

    func noteLife() {
        silence.heard(now)
    }

    private func takeInbox(_ link: Link, evenIfPaused: Bool = false) throws {
        while let socket, socket.link === link, !socket.inbox.isEmpty {
            guard socket.isUpgraded else {
                guard try takeUpgrade(link) else { return }
                continue
            }
            if !evenIfPaused, session.isHoldFull || session.isStalled && state == .connected {
                self.socket?.isPaused = true
                return
            }
            guard try takeFrame(link) else { return }
        }
    }

    /// False: there is no more to take.
    private func takeUpgrade(_ link: Link) throws -> Bool {
        switch socket?.inbox.withUnsafeBytes({ socket?.upgrade.parse($0) }) {
        case .accepted(let consumed):
            socket?.drop(consumed)
            socket?.isUpgraded = true
            attempts.waits.opened(now)
            try handle(.transportOpened(link.transport))
            return true
        case .refused(let fault):
            world.schedule(.endToEdge(link), in: 0...50)
            attempts.leaveAlone(until: now + link.restMs)
            let waitMs = socket?.upgrade.retryAfter?.waitMs(wallClockMs: 0)
            try ended(link.transport, waitMs.map { .refused(fault, retryAfterMs: $0) } ?? .failed(fault))
            return false
        case .incomplete, nil:
            return false
        }
    }

    private func takeFrame(_ link: Link) throws -> Bool {
        guard let start = socket?.taken, var inbox = socket?.inbox,
            let step = inbox.withUnsafeMutableBytes({ socket?.decoder.next($0) })
        else { return false }
        let bytes: [UInt8]
        switch step {
        case .message(let offset, let length, let consumed, let isValidUTF8, _):
            bytes = Array(inbox[offset..<offset + length])
            socket?.drop(consumed)
            try receive(bytes, isValidUTF8: isValidUTF8, link)
        case .assembled(let consumed, _):
            bytes = socket?.decoder.assembly ?? []
            socket?.drop(consumed)
            try receive(bytes, isValidUTF8: true, link)
        case .ping(let offset, let length, let consumed):
            var pong: [UInt8] = []
            FrameEncoder.append(
                opcode: .pong, payload: Array(inbox[offset..<offset + length]), maskKey: maskKey(), to: &pong)
            socket?.drop(consumed)
            socket?.put(Socket.Outgoing(bytes: pong, isAwaited: false, subscribes: nil))
            try write()
        case .pong(_, _, let consumed), .fragment(let consumed):
            socket?.drop(consumed)
        case .close(let code, let reason, _):
            if socket?.outbox.isEmpty == true { sendClose(code == 1005 ? nil : code, "", on: link) }
            world.schedule(.endToEdge(link), in: 0...2_000)
            try ended(link.transport, .closed(code: code, reason: reason))
            return false
        case .failure(let code, let reason):
            try fail(code, reason, link)
            return false
        case .needsMore:
            return false
        }
        try require(
            start < link.brokenAfter || socket?.link !== link, "takes what comes behind what breaks the rules")
        return true
    }

    private func fail(_ code: UInt16, _ reason: String, _ link: Link) throws {
        try require(link.brokenAfter < .max, "finds fault with a frame that breaks no rule: \(reason)")
        if socket?.outbox.isEmpty == true { sendClose(code, reason, on: link) }
        world.schedule(.endToEdge(link), in: 0...2_000)
        try ended(
            link.transport,
            .failed(
                Fault(
                    code == CloseCode.tooBig ? BIRD_ERR_SIZE : BIRD_ERR_PROTOCOL, .connection,
                    "Closed with \(code): \(reason).", code: Int32(code), isRetriable: true)))
    }

    private func receive(_ bytes: [UInt8], isValidUTF8: Bool, _ link: Link) throws {
        let scanned = bytes.withUnsafeBytes { MessageScanner.scan($0, isValidUTF8: isValidUTF8) }
        switch scanned {
        case .malformed: break
        case .invalidUTF8: try fail(CloseCode.invalidPayload, "text that is not UTF-8", link)
        case .message(let message): try receive(Self.decoded(message, bytes), link)
        }
    }

    private static func decoded(_ message: ScannedMessage, _ bytes: [UInt8]) -> InboundMessage {
        bytes.withUnsafeBytes { bytes in
            let data: InboundMessage.Data =
                switch message.dataKind {
                case .none: .none
                case .value: .value(Array(message.data.bytes(in: bytes)))
                case .string: .string(Array(JSONString.decode(message.data, in: bytes).utf8))
                }
            return InboundMessage(
                event: JSONString.decode(message.event, in: bytes),
                channel: message.channel.map { JSONString.decode($0, in: bytes) }, data: data)
        }
    }

    // MARK: - Out

    func send(_ id: TransportID, _ text: [UInt8], _ kind: FrameKind) throws {
        try require(id == transport && socket?.isUpgraded == true, "sends on a transport that is not open")
        if kind == .pong { pongsSent += 1 }
        let frame = JSONDocument.parse(text)
        let name = frame?["data"]?["channel"]?.string
        let isSubscribe = frame?["event"]?.string == dialect.subscribe
        let isLeave = frame?["event"]?.string == dialect.unsubscribe
        if let name {
            let fates = socket?.link.seat.fates[name] ?? [:]
            if isSubscribe {
                let auth = frame?["data"]?["auth"]?.string
                try checkSubscribe(name, auth: auth)
                confirmations.subscribed(name, fates, auth: auth, pings: silence.pings)
            } else if isLeave {
                try require(confirmations.frames[name] != nil, "leaves \(name), which it has not asked for")
                try confirmations.unsubscribed(name, fates, isInOrder: isInOrder)
            }
        }
        if isLeave, isUnsubscribing { leaves += 1 }
        var bytes: [UInt8] = []
        FrameEncoder.append(opcode: .text, payload: text, maskKey: maskKey(), to: &bytes)
        socket?.put(
            Socket.Outgoing(bytes: bytes, isAwaited: kind == .awaited, subscribes: isSubscribe ? name : nil))
    }

    /// Each pong tells that everything before its ping was answered, and the session knows that pings are answered.
    var isInOrder: Bool { world.edge.answersInOrder && !isMisled && hasHeardPong }

    /// Nothing is asked of the edge that nobody wants.
    private func checkSubscribe(_ name: String, auth: String?) throws {
        let isOwn = session.memberID.map { ChannelName.ofMember($0) == name } ?? false
        try require(program.wanted[name] != nil || isOwn, "subscribes to \(name), which nobody wants")
        try require(
            auth == dialect.publicAuth || auth == ModelAuthorizer.wrongSignature
                || auth?.hasPrefix("signed \(session.connectionID) ") == true,
            "sends what was signed for another connection id: \(auth ?? "")")
    }

    /// What the socket takes, which is everything unless it is blocked.
    func write() throws {
        guard let socket, !socket.isBlocked, !socket.outbox.isEmpty else { return }
        let total = socket.outboxBytes
        var room = total
        if world.strikes(.writeBlocked, self) {
            room = 0
            block(socket.link, forMs: 50_000)
        } else if world.strikes(.writePartial, self) {
            room = Int.random(in: 0..<total, using: &world.random)
            block(socket.link, forMs: 3_000)
        }
        guard let (bytes, written) = self.socket?.take(room), !bytes.isEmpty else { return }
        socket.link.toEdge(bytes)
        for case let name? in written.map(\.subscribes) { asked[name] = now }
        let awaited = written.count { $0.isAwaited }
        if awaited > 0 { try handle(.written(socket.link.transport, awaited: awaited)) }
    }

    private func block(_ link: Link, forMs ms: Int64) {
        socket?.isBlocked = true
        world.schedule(.writable(self, link), in: 0...ms)
    }

    func writable(_ link: Link) throws {
        guard socket?.link === link else { return }
        socket?.isBlocked = false
        try write()
    }
}
