import BirdRealtimeCore
import CBirdRealtimeABI

/// A session behind the frame decoder. The input decides what the socket, the clock, the authorizer and the application do.
enum SessionTarget {
    private static let stepsMax = 400

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var choices = Choices(input)
        var client = FuzzedClient(&choices)
        var steps = 0
        while !choices.isAtEnd, steps < stepsMax {
            try client.step(&choices)
            steps += 1
        }
        try client.finish()
    }
}

/// The session, and all that others know of it.
private struct FuzzedClient: ~Copyable {
    private static let names = [
        "public-a", "a;b", "private-a", "private-b", "presence-a", "presence-b", "private-encrypted-a", "K", "cache-a",
    ]
    private static let memberChannel = ChannelReference(bits: 1 << 40)
    private static let messageBytesMax = 4_096
    private static let turnsAtOneTimeMax = 1_000

    private var session: Session
    private let dialect: Dialect
    private var configuration: SessionConfiguration
    private var decoder = FrameDecoder(messageBytesMax: messageBytesMax)
    private var unread: [UInt8] = []
    private var now: Int64 = 1_000_000
    private var random: Sequence64

    // What the runtime knows.
    private var transport: TransportID?
    private var lastTransport: UInt64 = 0
    private var isOpen = false
    private var unwritten = 0
    private var questions: [QuestionID] = []
    private var reconnectQuestion: QuestionID?
    private var states: [ChannelReference: ChannelState] = [:]
    private var state = ConnectionState.initialized
    private var identity: String?
    // What the application knows.
    private var references: [String: ChannelReference] = [:]
    private var lastReference: UInt64 = 0
    private var lastOperation: UInt64 = 0
    private var operations: Set<UInt64> = []
    private var rosters: [ChannelReference: Set<[UInt8]>] = [:]
    /// The name in the message that is being handled.
    private var handled: String?
    private var isOwnCall = false

    init(_ choices: inout Choices) {
        let flags = choices.byte()
        dialect = flags & 1 == 0 ? .bird : .pusher
        var configuration = SessionConfiguration()
        configuration.hasChannelAuthorizer = flags & 2 == 0
        configuration.hasMemberAuthorizer = flags & 4 == 0
        configuration.asksBeforeReconnect = flags & 8 != 0
        configuration.authorizationsInFlightMax = flags & 16 == 0 ? 8 : 1
        configuration.reconnectAttemptsMax = flags & 32 == 0 ? 0 : 2
        configuration.reconnect = choices.pick(ReconnectPolicy.allCases)
        self.configuration = configuration
        let seed = UInt64(choices.byte())
        random = Sequence64(state: seed)
        session = Session(
            configuration: configuration, dialect: dialect, memberChannel: Self.memberChannel, seed: seed)
    }

    // MARK: - Steps

    mutating func step(_ choices: inout Choices) throws {
        switch choices.byte() % 32 {
        case 0: try call(.connect)
        case 1: try call(.disconnect)
        case 2: try call(.retryNow)
        case 3: try configure(&choices)
        case 4: try handle(.network(choices.pick([.up, .down, .resumed]), spreadMs: Int64(choices.byte()) * 10))
        case 5, 6: try subscribe(choices.pick(Self.names), hasOperation: choices.bool())
        case 7: try unsubscribe(choices.pick(Self.names))
        case 8:
            guard let reference = references[choices.pick(Self.names)] else { return }
            try handle(.trigger(reference, event: "client-x", data: choices.bool() ? Array("{}".utf8) : nil))
        case 9: try handle(.signin(refresh: choices.bool(), operation: newOperation(choices.bool())))
        case 10, 11, 12: try authorize(&choices)
        case 13:
            let id = reconnectQuestion ?? QuestionID(number: UInt64(choices.byte()))
            reconnectQuestion = nil
            let delayMs = Int64(choices.byte()) * 100
            try handle(.reconnect(id, choices.bool() ? .proceed(delayMs: delayMs) : .refuse("no")))
        case 14:
            guard let transport, !isOpen else { return }
            isOpen = true
            try handle(.transportOpened(transport))
        case 15: try end(choices.bool() ? .closed(code: 4_000 + UInt16(choices.byte()) * 2, reason: "end") : lost)
        case 16: try end(.closed(code: UInt16(choices.byte()) << 8 | UInt16(choices.byte()), reason: choices.text()))
        case 17: session.isStalled.toggle()
        case 18, 19: try passTime(to: session.nextDeadline?.milliseconds ?? now)
        case 20: try passTime(to: now + Int64(choices.byte()) * 400)
        case 21: now += Int64(choices.byte()) << 24
        case 22: try write()
        case 23: try receive(choices.bytes(isLong: true))
        case 24: try receive(EdgeFrames.text(choices.bytes()))
        case 25: try handleFromThePast(&choices)
        default: try receive(EdgeFrames.text(EdgeFrames.message(&choices, dialect, Self.names)))
        }
    }

    /// What is left is let go of: nothing stays open.
    mutating func finish() throws {
        session.isStalled = false
        try call(.disconnect)
        for name in Self.names { try unsubscribe(name) }
        try require(operations.isEmpty, "operations \(operations) have no end")
        try require(questions.isEmpty && reconnectQuestion == nil, "questions stay open")
        try require(transport == nil && session.nextDeadline == nil, "something goes on after the end")
    }

    private var lost: TransportEnd { .failed(Fault(BIRD_ERR_LOST, .connection, "reset", isRetriable: true)) }

    private mutating func call(_ input: SessionInput) throws {
        isOwnCall = true
        try handle(input)
        isOwnCall = false
    }

    private mutating func configure(_ choices: inout Choices) throws {
        configuration.reconnect = choices.pick(ReconnectPolicy.allCases)
        configuration.reconnectAttemptsMax = choices.pick([0, 1, 3])
        configuration.hasFlapGuard = choices.bool()
        configuration.activityTimeoutMs = choices.pick([nil, 1_000, 60_000])
        configuration.pongMissesMax = choices.pick([1, 2, 10])
        configuration.pongTimeoutMs = choices.pick([1, 2_000, 30_000])
        configuration.backoffBaseMs = choices.pick([1, 1_000, 86_400_000])
        try handle(.configure(configuration))
    }

    private mutating func subscribe(_ name: String, hasOperation: Bool) throws {
        if references[name] == nil {
            lastReference += 1
            let reference = ChannelReference(bits: lastReference)
            references[name] = reference
            states[reference] = .idle
        }
        guard let reference = references[name] else { return }
        try handle(.subscribe(name: name, channel: reference, operation: newOperation(hasOperation)))
    }

    private mutating func unsubscribe(_ name: String) throws {
        guard let reference = references.removeValue(forKey: name) else { return }
        try handle(.unsubscribe(reference))
        try require(states[reference] == nil, "\(name) does not end")
    }

    private mutating func newOperation(_ isWanted: Bool) -> UInt64 {
        guard isWanted else { return 0 }
        lastOperation += 1
        operations.insert(lastOperation)
        return lastOperation
    }

    private mutating func authorize(_ choices: inout Choices) throws {
        let id = questions.isEmpty ? QuestionID(number: UInt64(choices.byte())) : choices.pick(questions)
        questions.removeAll { $0 == id }
        let answer: AuthorizationAnswer
        switch choices.byte() % 8 {
        case 0:
            answer = .refused(
                Fault(BIRD_ERR_AUTH, .authorization, "busy", isRetriable: true),
                retryAfterMs: choices.bool() ? Int64(choices.byte()) * 300 : nil)
        case 1: answer = .refused(Fault(BIRD_ERR_DENIED, .authorization, "denied"), retryAfterMs: nil)
        case 2: answer = .granted(auth: choices.text(), memberData: choices.text(), sharedSecret: nil)
        default:
            let secret = ChannelKey(base64: String(repeating: "A", count: 43) + "=")
            answer = .granted(
                auth: "key:signature", memberData: #"{"\#(dialect.memberIDKey)":"1","\#(dialect.identityIDKey)":"1"}"#,
                sharedSecret: choices.bool() ? nil : secret)
        }
        try handle(.authorization(id, answer))
    }

    private mutating func end(_ end: TransportEnd) throws {
        guard let transport else { return }
        forgetTransport()
        try handle(.transportEnded(transport, end))
        if case .closed(let code, _) = end, dialect.isRefusal(code) {
            try require(session.state == .failed, "is \(session.state) after a refusal")
        }
    }

    private mutating func write() throws {
        guard let transport, unwritten > 0 else { return }
        let awaited = unwritten
        unwritten = 0
        try handle(.written(transport, awaited: awaited))
    }

    /// Every deadline on the way comes; none may come for ever.
    private mutating func passTime(to end: Int64) throws {
        var turns = 0
        while let due = session.nextDeadline, due.milliseconds <= end {
            turns = due.milliseconds > now ? 0 : turns + 1
            try require(turns < Self.turnsAtOneTimeMax, "has deadlines without end")
            now = max(now, due.milliseconds)
            try handle(.timer)
        }
        now = max(now, end)
    }

    /// What belongs to another transport, or answers no question, does nothing.
    private mutating func handleFromThePast(_ choices: inout Choices) throws {
        let past = TransportID(number: lastTransport &+ 1 &+ UInt64(choices.byte()))
        let inputs: [SessionInput] = [
            .transportOpened(past), .transportEnded(past, lost), .written(past, awaited: 1),
            .transportStep(past, "tls"),
            .message(past, InboundMessage(event: dialect.ping)),
            .reconnect(QuestionID(number: 1 << 60), .proceed(delayMs: 0)),
            .authorization(QuestionID(number: 1 << 60), .granted(auth: "a", memberData: nil, sharedSecret: nil)),
        ]
        var effects: [SessionEffect] = []
        session.handle(
            choices.pick(inputs), now: Instant(milliseconds: now), random: &random, into: &effects)
        try require(effects.isEmpty, "heard from the past: \(effects)")
    }

    // MARK: - The socket

    /// As the runtime takes what a read of the socket has brought.
    private mutating func receive(_ bytes: [UInt8]) throws {
        guard isOpen, let transport else { return }
        unread += bytes
        session.noteInbound(now: Instant(milliseconds: now))
        while self.transport == transport {
            var text: [UInt8]?
            var isValidUTF8 = false
            let step = withCopy(unread) { decoder.next($0) }
            switch step {
            case .message(let offset, let length, let consumed, let isChecked, _):
                text = Array(unread[offset..<(offset + length)])
                isValidUTF8 = isChecked
                unread.removeFirst(consumed)
            case .assembled(let consumed, _):
                text = decoder.assembly
                isValidUTF8 = true
                unread.removeFirst(consumed)
            case .fragment(let consumed), .ping(_, _, let consumed), .pong(_, _, let consumed):
                unread.removeFirst(consumed)
            case .close(let code, let reason, _): return try end(.closed(code: code, reason: reason))
            case .failure: return try end(lost)
            case .needsMore: return
            }
            if let text { try receive(text: text, isValidUTF8: isValidUTF8, transport) }
        }
    }

    private mutating func receive(text: [UInt8], isValidUTF8: Bool, _ transport: TransportID) throws {
        let scanned: ScannedMessage
        switch withCopy(text, { MessageScanner.scan(UnsafeRawBufferPointer($0), isValidUTF8: isValidUTF8) }) {
        case .message(let message): scanned = message
        case .malformed: return
        case .invalidUTF8: return try end(lost)
        }
        let (event, channel) = text.withUnsafeBytes { bytes in
            (
                JSONString.decode(scanned.event, in: bytes),
                scanned.channel.map { JSONString.decode($0, in: bytes) }
            )
        }
        if var channel, !EventName.isReserved(event, dialect: dialect) {
            let reference = channel.withUTF8 { session.route(UnsafeRawBufferPointer($0)) }
            guard reference != .none else { return }
            try require(states[reference] == .subscribed, "an event is routed to what is not subscribed")
        }
        let raw = text[scanned.data.offset..<(scanned.data.offset + scanned.data.length)]
        let data: InboundMessage.Data =
            switch scanned.dataKind {
            case .none: .none
            case .value: .value(Array(raw))
            case .string: .string(Array(text.withUnsafeBytes { JSONString.decode(scanned.data, in: $0) }.utf8))
            }
        handled = channel
        try handle(.message(transport, InboundMessage(event: event, channel: channel, data: data)))
        handled = nil
    }

    private mutating func forgetTransport() {
        transport = nil
        isOpen = false
        unwritten = 0
        unread = []
        decoder = FrameDecoder(messageBytesMax: Self.messageBytesMax)
    }

    // MARK: - What the session does

    private mutating func handle(_ input: SessionInput) throws {
        var effects: [SessionEffect] = []
        session.handle(input, now: Instant(milliseconds: now), random: &random, into: &effects)
        for effect in effects { try perform(effect) }
        try checkAlways()
    }

    private mutating func perform(_ effect: SessionEffect) throws {
        switch effect {
        case .open(let id):
            try require(transport == nil && id.number > lastTransport, "has two transports")
            try require(isOwnCall || state != .failed && state != .disconnected, "leaves a terminal state")
            lastTransport = id.number
            transport = id
        case .close(let id, let code, _, _):
            try require(id == transport, "closes a transport that it does not have")
            try require(code.map(CloseCode.isValid) ?? true, "closes with \(code ?? 0)")
            forgetTransport()
        case .send(let id, let bytes, let kind):
            try require(id == transport && isOpen, "sends on a transport that is not open")
            try require(JSONDocument.parse(bytes)?["event"]?.string != nil, "sends what is no message")
            if kind == .awaited { unwritten += 1 }
        case .authorize(let question):
            try require(
                question.connectionID == session.connectionID && state == .connected, "authorizes for no connection")
            questions.append(question.id)
            try require(questions.count <= configuration.authorizationsInFlightMax, "asks too much at once")
        case .askReconnect(let question):
            try require(configuration.asksBeforeReconnect && reconnectQuestion == nil, "asks without need")
            reconnectQuestion = question.id
        case .withdraw(let id):
            try require(questions.contains(id) || reconnectQuestion == id, "withdraws what it has not asked")
            questions.removeAll { $0 == id }
            if reconnectQuestion == id { reconnectQuestion = nil }
        case .channelState(let reference, let channelState):
            try require(
                states[reference] != nil || reference == Self.memberChannel, "the channel \(reference) is not there")
            states[reference] = channelState == .unsubscribed ? nil : channelState
            if channelState != .subscribed { rosters[reference] = nil }
        case .identity(let memberID): identity = memberID
        case .keyRefreshBegan(let reference):
            try require(states[reference] == .subscribed, "refreshes a key for nobody")
        case .clientEventLost, .attemptRefused, .watchlistEntriesMalformed, .note: break
        case .emit(let event): try told(event)
        }
    }

    private mutating func told(_ event: SessionEvent) throws {
        switch event {
        case .state(let change):
            try require(change.previous == state && change.current != state, "a state change is lost")
            try require(
                isOwnCall || state != .failed && state != .disconnected && state != .initialized,
                "\(state) is left for \(change.current)")
            state = change.current
        case .subscribed(let reference, _, let members, _, _, let interruptedMs):
            try require(states[reference] == .subscribed, "a success comes before its state")
            try require(interruptedMs >= 0, "an interruption of \(interruptedMs) ms")
            try checkName(reference)
            rosters[reference] = members.map { Set($0.members.map { Array($0.id.utf8) }) }
            try require(members?.count == rosters[reference]?.count, "a member is there twice")
        case .memberAdded(let reference, let member):
            try checkName(reference)
            rosters[reference]?.insert(Array(member.id.utf8))
        case .memberRemoved(let reference, let member):
            try checkName(reference)
            try require(rosters[reference]?.remove(Array(member.id.utf8)) != nil, "an unknown member goes")
        case .channelEvent(let reference, _, _, _), .connectionCount(let reference, _):
            try require(states[reference] == .subscribed, "an event comes before the success")
            try checkName(reference)
        case .completed(let operation, _, _, _):
            try require(operations.remove(operation) != nil, "operation \(operation) ends twice")
        case .signedIn(let member, _): try require(!member.id.isEmpty, "signs nobody in")
        case .connectingIn(let change): try require(change.delayMs >= 0, "an attempt in \(change.delayMs) ms")
        case .subscriptionFailed, .decryptionFailed, .watchlist, .error, .channelError, .connectionLost, .signinFailed:
            break
        }
    }

    /// Names are the same when their bytes are.
    private func checkName(_ reference: ChannelReference) throws {
        guard let handled, reference != Self.memberChannel else { return }
        let name = references.first { $0.value == reference }?.key
        try require(name.map { Array($0.utf8) } == Array(handled.utf8), "takes \(handled) for \(name ?? "nothing")")
    }

    private func checkAlways() throws {
        try require(session.state == state, "told \(state), is \(session.state)")
        try require(session.memberID == identity, "has another identity than it told")
        try require((state == .connecting || state == .connected) == (transport != nil), "\(state) without transport")
        try require((state == .connected) == !session.connectionID.isEmpty, "has a wrong connection id")
        try require(state != .unavailable || session.isStalled || session.nextDeadline != nil, "plans nothing")
        try require(state == .unavailable || reconnectQuestion == nil, "waits for leave that it does not need")
        for (name, reference) in references {
            var name = name
            let route = name.withUTF8 { session.route(UnsafeRawBufferPointer($0)) }
            try require((route == reference) == (states[reference] == .subscribed), "\(name) is routed wrongly")
        }
    }
}

/// The numbers that the session draws.
private struct Sequence64: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return (state ^ (state >> 31)) &* 0x94D0_49BB_1331_11EB
    }
}
