import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// Carries out what the session asks for, and hears what it tells.
extension SimulatedClient {
    func perform(_ effect: SessionEffect) throws {
        switch effect {
        case .open(let id): try open(id)
        case .close(let id, let code, let reason, _): try close(id, code: code, reason: reason)
        case .send(let id, let bytes, let kind): try send(id, bytes, kind)
        case .authorize(let question):
            try require(question.connectionID == session.connectionID, "authorizes for a connection that is not there")
            openQuestions.insert(question.id)
            if !isKey(of: question.channelName) { try setbacks.asked(question.channelName, now) }
            try require(
                openQuestions.count <= configuration.authorizationsInFlightMax, "asks too many questions at once")
            ModelAuthorizer.ask(question, by: self, world)
        case .askReconnect(let question):
            try require(configuration.asksBeforeReconnect && told.state == .unavailable, "asks without need")
            try attempts.asked(question)
            askApplication(question)
        case .attemptRefused: attempts.refused()
        case .withdraw(let id) where id == attempts.openQuestion: attempts.withdrawn()
        case .withdraw(let id):
            try require(openQuestions.remove(id) != nil, "withdraws a question that it has not asked")
        case .channelState(let reference, let state): try channelChanged(reference, state)
        case .identity(let memberID): told.identity = memberID
        case .keyRefreshBegan(let reference):
            try require(told.live.contains(reference), "asks for the key of a channel that is not subscribed")
            try sealed.refreshBegan(reference, now)
        case .watchlistEntriesMalformed(let count): for _ in 0..<count { try watchlistTold("malformed") }
        case .note(.pinged): silence.pinged(now)
        case .note(.ponged): hasHeardPong = true
        case .note(.setback(let channel, _, let againInMs)) where !isKey(of: channel):
            try setbacks.failed(channel, againInMs: againInMs, after: input, now)
        case .clientEventLost, .note: break
        case .emit(let event): try hear(event)
        }
    }

    private func channelChanged(_ reference: ChannelReference, _ state: ChannelState) throws {
        try require(
            told.channels[reference] != nil || reference == Self.memberChannel, "a channel is not there")
        told.channels[reference] = state == .unsubscribed ? nil : state
        if state != .subscribed {
            try sealed.ended(reference, byProgram: isUnsubscribing)
            told.ended(reference, lastHeard: lastHeard)
        } else if reference == Self.memberChannel {
            told.confirmed(reference)
        }
    }

    private func hear(_ event: SessionEvent) throws {
        switch event {
        case .state(let change):
            try told.change(change)
            try attempts.follow(change, attemptsMax: configuration.reconnectAttemptsMax)
            lastChange = change
            if change.current == .connected { noteLife() }
            if change.previous == .connected { setbacks.forgetConnection() }
        case .subscribed(let reference, let data, let members, let myID, let isResubscribe, let interruptedMs):
            try checkConfirmation(data, reference)
            try told.success(
                reference, members: members, isResubscribe: isResubscribe, interruptedMs: interruptedMs, now)
            try require(members == nil || myID == memberID, "my id is \(myID ?? "unknown")")
        case .memberAdded(let reference, let member): try told.added(member, to: reference)
        case .memberRemoved(let reference, let member): try told.removed(member, from: reference)
        case .channelEvent(let reference, let event, let data, _): try delivered(event, on: reference, data)
        case .connectionCount(let reference, _):
            try require(told.live.contains(reference), "a count comes before the success")
        case .subscriptionFailed(let reference, let fault, _, let willRetry):
            try failed(reference, fault, willRetry: willRetry)
        case .completed(let operation, _, _, _):
            world.figures.operations += 1
            try program.ended(operation)
        case .error(let fault):
            if fault.status == BIRD_ERR_SERVER, fault.code != 4301, fault.code != 4302 { confirmations.errorCame() }
        case .channelError(let reference, _, let fault):
            let wanted = program.wanted[fault.channel] ?? .none
            try require(reference == wanted, "reports an error on \(fault.channel) as on \(reference.bits)")
            if fault.code != 4301, fault.code != 4302 { confirmations.errorCame() }
        case .connectionLost:
            try require(lastChange?.previous == .connected, "loses a connection that was none")
            try require(!world.isSettled, "loses a connection on which nothing is wrong")
        case .connectingIn(let plan):
            try require(told.state == .unavailable && plan.delayMs >= 0, "announces an attempt that is not planned")
            try require(plan.policy == configuration.reconnect, "announces \(String(describing: plan.policy))")
            try attempts.planned(plan, after: input, configuration, dialect, now)
        case .watchlist(let name, _): try watchlistTold(name)
        case .decryptionFailed(let reference, let channel, let event, let fault):
            try require(
                program.wanted[channel] == reference && fault.status == BIRD_ERR_DECRYPTION, "reports \(channel)")
            // What a cache keeps may be older than the key.
            try require(!world.isSettled || channel.contains("cache"), "does not open \(event) of \(channel)")
            try sealed.told(event, on: reference)
        case .signedIn, .signinFailed: break
        }
    }

    private func failed(_ reference: ChannelReference, _ fault: Fault, willRetry: Bool) throws {
        try require(!told.live.contains(reference), "a subscribed channel fails")
        try require(willRetry == fault.isRetriable, "says that it will\(willRetry ? "" : " not") retry after \(fault)")
        guard let name = program.name(of: reference) else { return }
        if willRetry { try setbacks.told(name, fault) }
        if fault.status == BIRD_ERR_DENIED, fault.area == .channel {
            try checkDenial(of: name)
            try confirmations.checkDenial(of: name)
        }
        guard fault.field == "answer_timeout_ms" else { return }
        try checkSilence(of: name)
        let waitedMs = asked[name].map { now - $0 } ?? 0
        try require(waitedMs >= configuration.answerTimeoutMs, "gives up on \(name) after \(waitedMs) ms")
    }

    /// A channel that is subscribed asks for its key.
    private func isKey(of channel: String?) -> Bool {
        channel.flatMap { program.wanted[$0] }.map(told.live.contains) ?? false
    }

    /// The edge has refused it by name. Or the error was its answer: an edge that answers in order leaves no doubt. Of another, nobody can
    /// know what it is before an answer has come behind a pong, and afterwards, an error is an answer when no other was due.
    private func checkDenial(of name: String) throws {
        if case .message(_, let message) = input, message.channel == name { return }
        let fate = confirmations.frames[name].flatMap { socket?.link.seat.fates[name]?[$0] }
        if fate != .refused { confirmations.mistaken(name) }
        if isInOrder {
            try require(
                fate == .refused || fate == .refusedInSilence || fate == .ignored,
                "takes an error for the answer to \(name), which is \(String(describing: fate))")
        } else {
            let since = session.fence.isTrusted && !hasSeenDisorder ? lastError : lastBlamableError
            try require(since >= asked[name] ?? .max, "takes an error for the answer to \(name) that was none")
        }
    }

    /// The time for an answer is over. One that has come, and a pong behind it, was understood.
    private func checkSilence(of name: String) throws {
        guard isInOrder, session.liveness.isEveryPingAnswered, let seat = socket?.link.seat, !seat.isBlurred,
            let frame = confirmations.frames[name]
        else { return }
        try require(!confirmations.hasAnswer(frame, of: name), "does not hear the answer to \(name)")
    }

    /// A success of what the channel waits for.
    private func isPlainConfirmation(_ message: InboundMessage) -> Bool {
        guard message.event == dialect.internalSubscriptionSucceeded, let name = message.channel, state == .connected,
            let frame = Self.number("frame", in: message.data), confirmations.isPresent(frame, of: name),
            let slot = session.channels.slot(named: name)
        else { return false }
        return !session.channels[slot].admission.asked.isInherited
    }

    /// What the edge says beside what the session looks at.
    static func number(_ key: String, in data: InboundMessage.Data) -> Int? {
        JSONDocument.parse(bytes(data))?[key]?.numberText.flatMap { Int($0) }
    }

    private func checkConfirmation(_ data: InboundMessage.Data, _ reference: ChannelReference) throws {
        guard let frame = Self.number("frame", in: data),
            let name = program.name(of: reference)
        else { throw Wrong(message: "is told of a success that the edge did not send") }
        guard try confirmations.isMistaken(frame, of: name, isInOrder: isInOrder) else { return }
        world.figures.mistakenConfirmations += 1
        told.mistaken(reference)
    }

    private func watchlistTold(_ name: String) throws {
        try require(watchlist.first == name, "tells of \(name) what is \(watchlist) on the watchlist")
        watchlist.removeFirst()
    }

    // MARK: - Messages

    func receive(_ message: InboundMessage, _ link: Link) throws {
        world.figures.events += 1
        guard let channel = message.channel, !EventName.isReserved(message.event, dialect: dialect) else {
            try receiveControl(message, link)
            return
        }
        let reference = route(channel)
        guard reference != .none else { return }
        guard ChannelKind.of(channel) == .encrypted else {
            world.note(number, "  > \(message.event) \(Self.text(message.data)) on \(channel), the short way")
            try delivered(message.event, on: reference, message.data)
            return
        }
        sealed.came(message.event, on: reference, now)
        // The short way, or for some reason the other.
        if Bool.random(using: &world.random), let text = opened(message.data, reference) {
            try delivered(message.event, on: reference, .string(text))
        } else {
            try handle(.message(link.transport, message))
        }
    }

    private func receiveControl(_ message: InboundMessage, _ link: Link) throws {
        if message.event == dialect.watchlistEvents, message.channel == nil, state == .connected {
            let entries = JSONDocument.parse(Self.bytes(message.data))?["events"]?.elements ?? []
            let names = entries.map { $0["name"]?.string }
            // Whoever is malformed is counted, behind those who are told.
            watchlist = names.compactMap { $0 } + names.filter { $0 == nil }.map { _ in "malformed" }
        }
        let isPing = message.event == dialect.ping && message.channel == nil && state == .connected
        if message.event == dialect.pong, message.channel == nil, state == .connected {
            silence.ponged(Self.number("ping", in: message.data))
        }
        let waiting = session.unanswered.values.count { $0.milliseconds > now }
        let (pongs, errors) = (pongsSent, confirmations.errorsHeard)
        let isPlain = isPlainConfirmation(message)
        noteAnswer(message)
        noteOrder(message)
        let refusal = channelOfRefusal(message)
        let (before, id) = (state, session.connectionID)
        try handle(.message(link.transport, message))
        try require(
            refusal == nil || told.channels[refusal ?? .none] == .failed,
            "does not take the error that names \(message.channel ?? "") for the answer")
        if before == .connecting { try checkGreeting(message, link) }
        if !id.isEmpty, !session.connectionID.isEmpty, session.connectionID != id { try takesNewID() }
        try require(!isPing || pongsSent > pongs, "does not answer a ping")
        try require(
            !isPlain || told.channels[program.wanted[message.channel ?? ""] ?? .none] != .pending,
            "does not take the success of \(message.channel ?? "")")
        if confirmations.errorsHeard > errors {
            lastError = now
            if waiting <= 1 { lastBlamableError = now }
        }
        try require(
            !world.edge.answersInOrder || isMisled || session.fence.answersInOrder,
            "takes the edge for one without order")
        try require(watchlist.isEmpty, "does not tell of \(watchlist)")
    }

    private func noteOrder(_ message: InboundMessage) {
        guard message.event == dialect.internalSubscriptionSucceeded, let name = message.channel, state == .connected,
            confirmations.isPassed(name, pongs: silence.pongs), let slot = session.channels.slot(named: name)
        else { return }
        let admission = session.channels[slot].admission
        let isWritten = admission.asked.order > 0 && admission.asked.order <= session.lastWritten
        if admission.phase != .admitted, isWritten { hasSeenDisorder = true }
    }

    /// Which frame it answers, which the session does not know.
    private func noteAnswer(_ message: InboundMessage) {
        guard state == .connected else { return }
        if let name = message.channel, let frame = Self.number("frame", in: message.data) {
            confirmations.answerCame(frame, of: name)
        } else if message.event == dialect.error,
            let answers = JSONDocument.parse(Self.bytes(message.data))?["answers"],
            let name = answers["channel"]?.string, let frame = answers["frame"]?.numberText.flatMap({ Int($0) })
        {
            confirmations.answerCame(frame, of: name)
        }
    }

    /// The channel of which the edge reports an error that can only be the answer to its subscribe.
    private func channelOfRefusal(_ message: InboundMessage) -> ChannelReference? {
        guard message.event == dialect.error, state == .connected, let name = message.channel,
            Self.number("code", in: message.data) == 4009, let reference = program.wanted[name],
            told.channels[reference] == .pending, asked[name] != nil, confirmations.isOnlyFrame(of: name),
            // Whoever has come back with another authorization has yet to ask.
            let slot = session.channels.slot(named: name), !session.channels[slot].admission.asked.isInherited
        else { return nil }
        return reference
    }

    /// What a server says before the handshake may be its last word.
    private func checkGreeting(_ message: InboundMessage, _ link: Link) throws {
        guard message.channel == nil else { return }
        if message.event == dialect.error, dialect === Dialect.pusher {
            let code = Self.number("code", in: message.data).flatMap { UInt16(exactly: $0) } ?? 0
            let isFinal = dialect.isRefusal(code)
            try require(!isFinal || state == .failed, "is \(state) after error \(code) before the handshake")
            let isOver = isFinal || 4100...4299 ~= code
            // The next attempt may have begun at once, for the sake of the network.
            try require(
                isOver == (transport != link.transport), "is \(state) after error \(code) before the handshake")
        }
        let other = dialect === Dialect.bird ? Dialect.pusher : .bird
        try require(
            message.event != other.connectionEstablished || state == .failed,
            "is \(state) at a server of another dialect")
    }

    private func takesNewID() throws {
        try require(now >= newIDAt.map { $0 + 5_000 } ?? .min, "takes one connection id after the other")
        newIDAt = now
    }

    private func opened(_ data: InboundMessage.Data, _ reference: ChannelReference) -> [UInt8]? {
        guard let key = session.key(of: reference), case .string(var memory) = data,
            case .opened(let count) = memory.withUnsafeMutableBytes({ key.open($0, length: $0.count) })
        else { return nil }
        return Array(memory.suffix(count))
    }

    func route(_ channel: String) -> ChannelReference {
        var channel = channel
        return channel.withUTF8 { session.route(UnsafeRawBufferPointer($0)) }
    }

    private func delivered(_ event: String, on reference: ChannelReference, _ data: InboundMessage.Data) throws {
        try require(told.live.contains(reference), "\(event) comes before the success or after the end")
        let isSealed = event.hasPrefix(Sealed.prefix)
        if isSealed {
            try require(Sealed.prefix + Self.text(data) == event, "opens \(event) wrongly")
            try sealed.told(event, on: reference)
        }
        guard event == "tick" || isSealed, let number = Int(Self.text(data)) else { return }
        let isCache = program.name(of: reference)?.contains("cache") ?? false
        try told.tick(number, on: reference, isCache: isCache, mayMiss: isSealed)
    }

    private static func text(_ data: InboundMessage.Data) -> String { String(decoding: bytes(data), as: UTF8.self) }

    private static func bytes(_ data: InboundMessage.Data) -> [UInt8] {
        switch data {
        case .none: []
        case .string(let bytes), .value(let bytes): bytes
        }
    }
}
