import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// Drives one session through virtual time and writes what it does as lines that tests compare.
struct SessionDriver: ~Copyable {
    var session: Session
    var now = Instant(milliseconds: 1_000_000)
    var random = SplitMix64(seed: 1)
    private(set) var effects: [SessionEffect] = []
    private(set) var transport = TransportID(number: 0)
    private(set) var questions: [AuthorizationQuestion] = []
    private(set) var reconnectQuestions: [ReconnectQuestion] = []
    /// What it said beside its effects.
    private(set) var notes: [SessionNote] = []
    private var lines: [String] = []
    /// The socket takes nothing: what is sent waits.
    var isBlocked = false {
        didSet { write() }
    }
    private var unwritten = 0

    static let memberChannel = ChannelReference(bits: 99)

    init(_ configure: (inout SessionConfiguration) -> Void = { _ in }, dialect: Dialect = .bird, seed: UInt64 = 1) {
        var configuration = SessionConfiguration()
        configuration.hasChannelAuthorizer = true
        configuration.hasMemberAuthorizer = true
        configure(&configuration)
        session = Session(
            configuration: configuration, dialect: dialect, memberChannel: Self.memberChannel, seed: seed)
        random = SplitMix64(seed: seed)
    }

    // MARK: - Input

    mutating func input(_ input: SessionInput) {
        var new: [SessionEffect] = []
        session.handle(input, now: now, random: &random, into: &new)
        for effect in new {
            switch effect {
            case .open(let id): transport = id
            case .authorize(let question): questions.append(question)
            case .askReconnect(let question): reconnectQuestions.append(question)
            case .send(_, _, .awaited): unwritten += 1
            case .close: unwritten = 0
            case .note(let note): notes.append(note)
            default: break
            }
        }
        if case .transportEnded = input { unwritten = 0 }
        new.removeAll { if case .note = $0 { true } else { false } }
        effects += new
        lines += new.map(Self.line)
        write()
    }

    private mutating func write() {
        guard unwritten > 0, !isBlocked else { return }
        write(unwritten)
    }

    /// A blocked socket takes so many of the awaited frames.
    mutating func write(_ awaited: Int) {
        unwritten -= awaited
        input(.written(transport, awaited: awaited))
    }

    /// Lets time pass; deadlines on the way are served when they come.
    mutating func advance(_ ms: Int64) {
        let end = now + ms
        for _ in 0..<1_000_000 {
            guard let due = session.nextDeadline, due <= end else {
                now = end
                return
            }
            now = max(now, due)
            input(.timer)
        }
        preconditionFailure("deadlines come without end")
    }

    /// Until something is due, and serves it.
    mutating func advanceToDeadline() {
        guard let due = session.nextDeadline else { return }
        now = max(now, due)
        input(.timer)
    }

    /// Time passes unnoticed, as in a suspended machine.
    mutating func sleep(_ ms: Int64) {
        now = now + ms
    }

    /// Other settings from now on, as the program has them changed.
    mutating func configure(_ change: (inout SessionConfiguration) -> Void) {
        var configuration = session.configuration
        change(&configuration)
        input(.configure(configuration))
    }

    mutating func handshake(_ id: String = "1.1", activityTimeout: String? = nil) {
        input(.transportOpened(transport))
        let timeout = activityTimeout.map { ",\"activity_timeout\":\($0)" } ?? ""
        let dialect = session.dialect
        edge(dialect.connectionEstablished, data: "{\"\(dialect.connectionIDKey)\":\"\(id)\"\(timeout)}")
    }

    mutating func connect(_ id: String = "1.1", activityTimeout: String? = nil) {
        input(.connect)
        handshake(id, activityTimeout: activityTimeout)
    }

    /// A frame whose data is a string of JSON, as the edge writes it.
    mutating func edge(_ event: String, _ channel: String? = nil, data: String? = nil) {
        let data = data.map { InboundMessage.Data.string(Array($0.utf8)) } ?? .none
        session.noteInbound(now: now)
        input(.message(transport, InboundMessage(event: event, channel: channel, data: data)))
    }

    mutating func confirm(_ channel: String, data: String = "{}") {
        edge(session.dialect.internalSubscriptionSucceeded, channel, data: data)
    }

    mutating func edgeError(_ message: String = "no", code: Int? = nil) {
        edge(session.dialect.error, data: "{\"code\":\(code.map(String.init) ?? "null"),\"message\":\"\(message)\"}")
    }

    mutating func close(_ code: UInt16, _ reason: String = "") {
        input(.transportEnded(transport, .closed(code: code, reason: reason)))
    }

    mutating func drop() {
        input(
            .transportEnded(
                transport, .failed(Fault(BIRD_ERR_LOST, .connection, "connection reset", isRetriable: true))))
    }

    mutating func subscribe(_ name: String, _ reference: UInt64, operation: UInt64 = 0) {
        input(.subscribe(name: name, channel: ChannelReference(bits: reference), operation: operation))
    }

    mutating func unsubscribe(_ reference: UInt64) {
        input(.unsubscribe(ChannelReference(bits: reference)))
    }

    /// Answers the latest question, or an earlier one counted from the end.
    mutating func grant(
        _ auth: String = "k:s", memberData: String? = nil, sharedSecret: String? = nil, question fromEnd: Int = 1
    ) {
        input(
            .authorization(
                questions[questions.count - fromEnd].id,
                .granted(
                    auth: auth, memberData: memberData, sharedSecret: sharedSecret.flatMap(ChannelKey.init(base64:)))))
    }

    mutating func refuse(
        _ status: Int32 = BIRD_ERR_DENIED, http: Int32 = 403, isRetriable: Bool = false, retryAfterMs: Int64? = nil,
        question fromEnd: Int = 1
    ) {
        let fault = Fault(
            status, .authorization, "no", httpStatus: http, endpoint: "http://127.0.0.1/auth",
            isRetriable: isRetriable)
        input(.authorization(questions[questions.count - fromEnd].id, .refused(fault, retryAfterMs: retryAfterMs)))
    }

    mutating func signIn(as id: String = "m_7", operation: UInt64 = 0) {
        input(.signin(refresh: false, operation: operation))
        grant(memberData: "{\"member_id\":\"\(id)\"}")
        confirmSignin(as: id)
    }

    mutating func confirmSignin(as id: String = "m_7") {
        edge("bird:signin_success", data: #"{"member_data":"{\"member_id\":\"\#(id)\"}"}"#)
    }

    // MARK: - Output

    /// The lines since the last call.
    mutating func take() -> [String] {
        defer { lines = [] }
        return lines
    }

    /// The same, only those of one kind.
    mutating func take(_ prefix: String) -> [String] {
        take().filter { $0.hasPrefix(prefix) }
    }

    var events: [SessionEvent] {
        effects.compactMap {
            if case .emit(let event) = $0 { event } else { nil }
        }
    }

    /// The last plan told.
    var plan: StateChange? {
        for case .emit(.connectingIn(let plan)) in effects.reversed() { return plan }
        return nil
    }

    func route(_ name: String) -> UInt64 {
        var name = name
        return name.withUTF8 { session.route(UnsafeRawBufferPointer($0)).bits }
    }

    func state(of name: String) -> ChannelState? {
        session.channels.slot(named: name).map { session.channels[$0].state }
    }

    static func line(_ input: SessionInput) -> String {
        switch input {
        case .connect: "connect"
        case .disconnect: "disconnect"
        case .end(let fault): "end \(fault.status)"
        case .retryNow: "retry now"
        case .configure: "configure"
        case .network(let hint, let spreadMs): "network \(hint) spread over \(spreadMs)"
        case .timer: "timer"
        case .subscribe(let name, let channel, let operation):
            "subscribe \(name) as \(channel.bits) operation \(operation)"
        case .unsubscribe(let channel): "unsubscribe \(channel.bits)"
        case .trigger(let channel, let event, _): "trigger \(channel.bits) \(event)"
        case .signin(let refresh, let operation): "signin\(refresh ? " refresh" : "") operation \(operation)"
        case .authorization(let id, .granted(let auth, _, _)): "answer \(id.number) granted \(auth)"
        case .authorization(let id, .refused(let fault, let retryAfterMs)):
            "answer \(id.number) refused \(fault.status) retry after \(retryAfterMs ?? 0)"
        case .reconnect(let id, .proceed(let delayMs)): "answer \(id.number) proceed in \(delayMs)"
        case .reconnect(let id, .refuse(let message)): "answer \(id.number) refuse: \(message)"
        case .transportStep(let id, let step): "transport \(id.number) \(step)"
        case .transportOpened(let id): "transport \(id.number) opened"
        case .written(let id, let awaited): "transport \(id.number) wrote \(awaited)"
        case .transportEnded(let id, .closed(let code, let reason)): "transport \(id.number) closed \(code) \(reason)"
        case .transportEnded(let id, .failed(let fault)): "transport \(id.number) failed \(fault.message)"
        case .transportEnded(let id, .refused(let fault, let retryAfterMs)):
            "transport \(id.number) refused \(fault.message) retry after \(retryAfterMs)"
        case .message(let id, let message):
            "message on \(id.number): \(message.event) \(message.channel ?? "") \(text(message.data).debugDescription)"
        }
    }

    static func line(_ effect: SessionEffect) -> String {
        switch effect {
        case .open(let id): "open \(id.number)"
        case .close(let id, let code, let reason, let abandon):
            "close \(id.number) \(code.map { "\($0) " } ?? "")\(reason)\(abandon ? " abandoned" : "")"
        case .send(_, let bytes, _): "send " + frame(bytes)
        case .authorize(let question):
            "authorize \(question.id.number) \(question.channelName ?? "signin") for \(question.connectionID)"
        case .askReconnect(let question): "ask \(question.id.number) for attempt \(question.attempt)"
        case .attemptRefused: "attempt refused"
        case .watchlistEntriesMalformed(let count): "watchlist entries malformed \(count)"
        case .withdraw(let id): "withdraw \(id.number)"
        case .channelState(let channel, let state): "channel \(channel.bits) \(state)"
        case .identity(let memberID): "identity \(memberID ?? "none")"
        case .clientEventLost: "client event lost"
        case .note(let note): "note \(note)"
        case .keyRefreshBegan(let channel): "key refresh \(channel.bits)"
        case .emit(let event): line(event)
        }
    }

    private static func line(_ event: SessionEvent) -> String {
        switch event {
        case .state(let change): "state \(change.previous) \(change.current)"
        case .connectionLost: "lost"
        case .connectingIn: "connecting in"
        case .error(let fault): "error \(fault.status) \(fault.code) \(printable(fault.message))"
        case .channelError(let channel, _, let fault):
            "error on \(channel.bits) \(printable(fault.channel)) \(fault.status) \(fault.code) \(printable(fault.message))"
        case .subscribed(let channel, _, let members, let myID, let isResubscribe, let interruptedMs):
            "subscribed \(channel.bits)"
                + (members.map { " [" + $0.members.map(line).joined(separator: " ") + "] me \(myID ?? "none")" } ?? "")
                + (isResubscribe ? " again after \(interruptedMs)" : "")
        case .subscriptionFailed(let channel, let fault, _, let willRetry):
            "subscription failed \(channel.bits) \(fault.status)\(willRetry ? " will retry" : "")"
        case .memberAdded(let channel, let member): "added \(channel.bits) \(line(member))"
        case .memberRemoved(let channel, let member): "removed \(channel.bits) \(line(member))"
        case .connectionCount(let channel, let data): "count \(channel.bits) \(text(data))"
        case .channelEvent(let channel, let event, let data, let sender):
            "event \(channel.bits) \(event) \(text(data))\(sender.map { " from \($0)" } ?? "")"
        case .decryptionFailed(let channel, _, let event, let fault):
            "decryption failed \(channel.bits) \(event) \(fault.status)"
        case .signedIn(let member, _): "signed in \(line(member))"
        case .signinFailed(let fault): "signin failed \(fault.status)"
        case .watchlist(let name, let ids): "\(name) [\(ids.joined(separator: " "))]"
        case .completed(let operation, _, let fault, _): "completed \(operation) \(fault?.status ?? BIRD_OK)"
        }
    }

    private static func line(_ member: Member) -> String {
        member.id + (member.info.map { "=" + String(decoding: $0, as: UTF8.self) } ?? "")
    }

    private static func printable(_ text: String) -> String {
        String(text.unicodeScalars.map { $0.value < 0x20 ? "?" : Character($0) })
    }

    private static func text(_ data: InboundMessage.Data) -> String {
        switch data {
        case .none: "-"
        case .string(let bytes), .value(let bytes): String(decoding: bytes, as: UTF8.self)
        }
    }

    /// Event without its prefix, channel, auth and member data.
    private static func frame(_ bytes: [UInt8]) -> String {
        guard let node = JSONDocument.parse(bytes), let event = node["event"]?.string else { return "not JSON" }
        let data = node["data"]
        let isPusher = event.hasPrefix(Dialect.pusher.prefix)
        let prefix = isPusher ? Dialect.pusher.prefix : Dialect.bird.prefix
        let name = event.hasPrefix(prefix) ? String(event.dropFirst(prefix.count)) : event
        let keys = isPusher ? ["channel", "auth", "channel_data", "user_data"] : ["channel", "auth", "member_data"]
        let parts = [name, node["channel"]?.string] + keys.map { data?[$0]?.string }
        return parts.compactMap { $0 }.filter { !$0.isEmpty }.joined(separator: " ")
    }
}
