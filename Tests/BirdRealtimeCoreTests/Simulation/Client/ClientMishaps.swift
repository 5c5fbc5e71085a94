import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// What befalls a client without an occasion.
extension SimulatedClient {
    func befalls(_ kind: FaultKind) throws {
        switch kind {
        case .clockJump: jump(world.pick([1_000, 20_000, 60_000, 600_000]) ?? 0)
        case .suspend:
            clock.suspend(Int64.random(in: 1_000...90_000, using: &world.random), from: world.now)
            excuseFreeze()
        case .frozen:
            clock.freeze(Int64.random(in: 1...40_000, using: &world.random), from: world.now)
            excuseFreeze()
        case .stalled: stall()
        case .hintUp: try hint(.up)
        case .hintDown: try hint(.down)
        case .hintResumed: try hint(.resumed)
        case .pastHeard: try hearFromThePast()
        default:
            if let link = world.edge.links.last(where: { $0.client === self }) { befalls(kind, link) }
        }
        updateTimer()
    }

    private func befalls(_ kind: FaultKind, _ link: Link) {
        let edge = world.edge
        switch kind {
        case .reset: edge.end(link)
        case .silence: link.fallSilent(forEver: false)
        case .silenceForEver: link.fallSilent(forEver: true)
        case .closeCode: edge.close(link, closeCode())
        case .handshakeRepeated where link.seat.isGreeted: edge.giveNewID(link)
        case .handshakesEndless where link.seat.isGreeted: for _ in 0..<5 { edge.giveNewID(link) }
        case .errorUnrelated where link.seat.isGreeted: edge.complain("Something unrelated", to: link)
        case .errorLimit where link.seat.isGreeted:
            edge.complain("slow down", code: Bool.random(using: &world.random) ? 4301 : 4302, to: link)
        case .errorOnChannel where link.seat.isGreeted:
            let channel = world.pick(link.seat.subscriptions.keys.sorted() + ["never-wanted"])
            edge.complain("slow down", code: world.pick([4301, 4301, 4302, 4009]), on: channel, to: link)
        case .pingMessage where link.seat.isGreeted: edge.send(dialect.ping, data: "{}", to: link)
        case .pongMessageUnasked where link.seat.isGreeted:
            isMisled = true
            edge.send(dialect.pong, data: nil, to: link)
        case .pongUnasked: link.toClient(ServerFrame.frame(.pong, [1]))
        case .messageOdd:
            let text = world.pick(Self.odd(dialect)) ?? ""
            if text.contains(dialect.pong) || text.contains(dialect.signinSuccess) { isMisled = true }
            link.toClient(ServerFrame.text(text))
        case .messageMalformed: link.toClient(ServerFrame.text(world.pick(Self.malformed) ?? ""))
        case .messageBinary: link.toClient(ServerFrame.frame(.binary, world.pick(Self.binary) ?? []))
        case .textNotUTF8: link.toClient(world.pick(ServerFrame.notUTF8) ?? [], breaksRules: true)
        case .frameBroken: link.toClient(world.pick(ServerFrame.broken) ?? [], breaksRules: true)
        case .messageTooLarge:
            link.toClient(ServerFrame.header(payloadBytes: UInt64(Socket.messageBytesMax) + 1), breaksRules: true)
        default: break
        }
    }

    private func closeCode() -> UInt16 {
        if world.strikes(.closeRefusal, self) {
            return UInt16.random(in: world.pick(Waits.refusals(dialect)) ?? 4000...4099, using: &world.random)
        }
        let usual: [UInt16] = [1000, 1001, 1006, 1011, 1012, 4100, 4199, 4200, 4201, 4299, 4300]
        return Bool.random(using: &world.random)
            ? UInt16.random(in: 1000...4999, using: &world.random) : world.pick(usual) ?? 1000
    }

    /// Messages that are in form, and make no sense.
    private static func odd(_ dialect: Dialect) -> [String] {
        [
            #"{"event":""}"#, #"{"event":"","channel":""}"#, #"{"event":"\u0000\ud83d\ude00"}"#,
            #"{"event":"\#(dialect.error)","data":"\u0000"}"#, #"{"event":"\#(dialect.error)","data":[1,2]}"#,
            #"{"event":"\#(dialect.signinSuccess)","data":{"\#(dialect.identityKey)":7}}"#,
            #"{"event":"\#(dialect.internalMemberAdded)","channel":"presence-a","data":{}}"#,
            #"{"event":"\#(dialect.internalMemberRemoved)","channel":"presence-a"}"#,
            #"{"event":"\#(dialect.internalConnectionCount)","channel":"public-counted","data":"many"}"#,
            #"{"event":"\#(dialect.internalPrefix)unheard_of","channel":"public-a"}"#,
            #"{"event":"tick","channel":"never-wanted","data":"1"}"#,
            #"{"event":"\#(dialect.pong)","data":{"a":[[[]]]}}"#,
            #"{"event":"\#(dialect.internalSubscriptionSucceeded)","channel":"never-wanted","data":"{}"}"#,
        ]
    }

    /// None of these is an object with an event.
    private static let malformed = [
        "", "{", "[]", "null", "\"tick\"", #"{"event":7}"#, #"{"event":"tick",}"#, #"{"channel":"public-a"}"#,
        #"{"event":"tick","channel":"public-a","data":"\ud800"}"#, String(repeating: "[", count: 2_000),
        #"{"event":"tick"}{"event":"tick"}"#,
    ]

    private static let binary: [[UInt8]] = [
        [], [0, 1, 2, 3], Array(#"{"event":"tick","channel":"never-wanted","data":"1"}"#.utf8),
    ]

    private func hint(_ hint: NetworkHint) throws {
        let spreadMs: Int64 = world.happens(onceIn: 3) ? 1_000 : 0
        let latest = max(max(now, attempts.leftAloneUntil) + spreadMs, attempts.waits.nextHint)
        let isWaiting = state == .unavailable && attempts.openQuestion == nil && hint != .down
        try handle(.network(hint, spreadMs: spreadMs))
        try require(
            !isWaiting || state == .connecting || attempts.plannedFor <= latest, "does not hurry for the network")
    }

    /// The clock jumps, and nobody notices.
    private func jump(_ ms: Int64) {
        clock.jump(ms)
        silence.excuse(until: now)
        attempts.jump(ms)
        sealed.excuse(now)
    }

    /// What comes due meanwhile has its turn afterwards, behind what else happened.
    private func excuseFreeze() {
        let thaw = frozenUntil + clock.offset
        silence.excuse(until: thaw)
        attempts.jump(thaw - now)
        sealed.excuse(thaw)
    }

    /// What an old transport or a made-up one says has no effect at all.
    private func hearFromThePast() throws {
        guard let past = world.pick(pastTransports) else { return }
        let inputs: [SessionInput] = [
            .transportOpened(past), .transportEnded(past, .closed(code: 4009, reason: "late")),
            .message(past, InboundMessage(event: dialect.ping)), .written(past, awaited: 3),
            .message(past, InboundMessage(event: "tick", channel: "public-a", data: .string(Array("0".utf8)))),
            .authorization(QuestionID(number: 1 << 60), .granted(auth: "a", memberData: "{}", sharedSecret: nil)),
            .reconnect(QuestionID(number: 1 << 60), .proceed(delayMs: 0)),
        ]
        guard let input = world.pick(inputs) else { return }
        try expectNothing(of: input)
    }

    // MARK: - A slow program

    /// The program takes nothing for a while.
    private func stall() {
        guard !session.isStalled else { return }
        session.isStalled = true
        world.schedule(.keepsUp(self), in: 1...60_000)
    }

    func keepsUpAgain() throws {
        guard session.isStalled else { return }
        session.isStalled = false
        if socket?.isPaused == true { silence.excuse(until: now) }
        sealed.excuse(now)
        world.note(number, "keeps up again")
        try handle(.timer)
    }
}
