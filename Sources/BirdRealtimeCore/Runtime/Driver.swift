import CBirdRealtimeABI
import Glibc

/// One client's side of the reactor: feeds its session, carries out what the session asks for. Reactor thread only.
final class Driver {
    /// Closing connections that may wait for the edge's answer at a time.
    private static let lingeringMax = 4

    let client: Client
    private let hot: UnsafeMutablePointer<ClientHot>
    private let reactor: Reactor
    private let dialect: Dialect
    /// The first four bytes of the protocol's own event names.
    private let reservedStart: UInt32
    private var session: Session
    private let sink: RecordSink
    private let observer: Observer
    private var timer: ReactorTimer?
    private var isWatchingNetwork = false

    private var attempt: (id: TransportID, attempt: ConnectAttempt?)?
    private var connection: Connection?
    private var lingering: [Connection] = []
    private var posts: [QuestionID: HTTPPost] = [:]
    /// The own address of the present connection, or of the last one.
    private var source: NetworkAddress?
    /// Open, or answered a moment ago.
    private var requests: [QuestionID: Request] = [:]
    /// Channels that the session knows, kept alive for as long.
    private var held = FewOrMany<ChannelReference, Channel>()

    /// What comes up while an input is being handled waits here.
    private var inputs: [SessionInput] = []
    private var isFeeding = false
    private var mirroredConnectionID = ""
    /// Of a connection that is about to be given up.
    private var isTakingRest = false
    /// `session.isHoldFull`: reading rests, whether the program keeps up or not.
    private var waitsForKeys = false
    /// What the client event being fed was counted with.
    private var clientEventCost = 0
    private var flushWaiters: [Waiter] = []
    private var closeWaiters: [Waiter] = []
    /// The connection that the waited-for close has closed, and why the edge did not answer that.
    private var closing: Connection?
    private var closeFault: Fault?
    private var messages: UInt64 = 0
    /// How the last event began, and whose it was, until the session changes.
    private var template = MessageTemplate()
    private var lastChannel: UnsafeMutablePointer<ChannelHot>?
    /// Each message goes to the log: looked up once for each read, and no event takes the shortest way.
    private var isTraced = false

    init(client: Client, reactor: Reactor) {
        self.client = client
        hot = client.hot
        self.reactor = reactor
        dialect = client.options.dialect
        reservedStart = dialect.prefix.utf8.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
        session = Session(
            configuration: client.options.session, dialect: dialect,
            memberChannel: .none,
            seed: Randomness.seed)
        sink = RecordSink(client: client, handlers: reactor.handlers)
        observer = Observer(client)
        timer = ReactorTimer { [weak self] now in self?.timerFired(now) }
    }

    // MARK: Entries

    /// A handler of this client is on the reactor's stack.
    var isInHandler: Bool { sink.handlerDepth > 0 }

    func runCommands(_ now: Instant) {
        for command in client.takeCommands() {
            if client.isEnding { break }
            run(command)
        }
        if session.isStalled, !hot.pointee.isOverHalf { goOn() }
        settle(now)
        watchNetwork()
    }

    private func run(_ command: DriverCommand) {
        switch command {
        case .input(let input):
            if case .signin = input { session.memberChannel = client.memberChannel.reference }
            feed(input)
            if input == .connect { client.didConnect() }
        case .answered(let id, let answer): answered(id, answer)
        case .network(let hint): feed(hint)
        case .subscribe(let channel, let operation):
            held[channel.reference] = channel
            feed(.subscribe(name: channel.name, channel: channel.reference, operation: operation))
        case .unsubscribe(let channel): feed(.unsubscribe(channel.reference))
        case .trigger(let channel, let event, let data, let bytes):
            clientEventCost = bytes
            feed(.trigger(channel.reference, event: event, data: data))
        case .flush(let waiter): flushWaiters.append(waiter)
        case .close(let waiter):
            closeWaiters.append(waiter)
            connection?.flush()
            (closing, closeFault) = (connection, nil)
            feed(.disconnect)
        case .runChores: sink.runChores()
        case .letGoOfNames: sink.letGoOfNames()
        case .report(let fault): sink.emit(.error(fault), dialect: dialect)
        }
    }

    private func timerFired(_ now: Instant) {
        if let connection {
            if connection.isPaused { watchWhilePaused(connection, now) }
            if let since = connection.partialSince, now - since >= client.options.messageTimeoutMs {
                connection.abort(
                    Fault(
                        BIRD_ERR_TIMEOUT, .connection, field: "message_timeout_ms",
                        "A message was not complete after \(client.options.messageTimeoutMs) ms.", isRetriable: true))
            }
            connection.becameIdle()
            ChunkPool.giveBack(now)
            template = MessageTemplate()
        }
        if let deadline = session.nextDeadline, deadline <= now {
            if case (let id, let attempt?)? = attempt { feed(.transportStep(id, attempt.step)) }
            feed(.timer)
        }
        settle(now)
    }

    /// The end of a round: everything goes on its way, and the next deadline is set.
    private func settle(_ now: Instant) {
        guard !reactor.isInherited else { return }
        sink.publish()
        if !isInHandler { reactor.handlers.end() }
        connection?.flush()
        if client.log.hasRecords.load(ordering: .relaxed) { sink.log(client.log.takeRecords(), of: client.log) }
        sink.publish()
        if sink.isFull { _ = stall() }
        client.counters.messagesReceived.add(messages)
        messages = 0
        client.wishesUnwritten.store(connection?.wishesWaiting ?? 0, ordering: .relaxed)
        client.counters.eventsDelivered.store(sink.eventsDelivered, ordering: .relaxed)
        var deadline = session.nextDeadline
        if let since = connection?.partialSince {
            let limit = since + client.options.messageTimeoutMs
            deadline = deadline.map { min($0, limit) } ?? limit
        }
        // A session that ends is fed no more: its deadline would stay due, and the round that must end it would fire it for ever.
        if let timer { reactor.setTimer(timer, client.isEnding ? nil : deadline) }
        // In LOOP mode handlers hold up the reactor.
        if client.queue == nil { client.tellSlowness(since: now, "handlers, or other clients of the reactor, took") }
        serveWaiters()
        if client.isEnding, !isInHandler, !isFeeding { endAfterHandler() }
    }

    private func serveWaiters() {
        if !flushWaiters.isEmpty, connection?.hasEverythingWritten ?? (attempt == nil) {
            for waiter in flushWaiters { waiter.finish() }
            flushWaiters = []
        }
        if !closeWaiters.isEmpty, connection == nil, lingering.isEmpty {
            for waiter in closeWaiters { waiter.finish(closeFault) }
            closeWaiters = []
        }
    }

    /// The client was destroyed by a handler of its own in LOOP mode.
    private func endAfterHandler() {
        guard client.endsOnReactor else { return }
        reactor.remove(self)
        // Destructors are the program's code, too.
        reactor.handlers.begin()
        client.finish()
    }

    /// Sockets, timers and requests go at once; nothing is told any more.
    func tearDown() {
        if let timer {
            reactor.setTimer(timer, nil)
            if isWatchingNetwork { reactor.network.leave() }
        }
        timer = nil
        attempt?.attempt?.cancel()
        attempt = nil
        if let connection {
            self.connection = nil
            connection.close(code: 1000, reason: "client released", abandon: true, maskKey: reactor.random.maskKey())
        }
        for connection in lingering { connection.abandon() }
        lingering = []
        for post in posts.values { post.cancel() }
        posts = [:]
        for request in requests.values { request.end() }
        requests = [:]
        for waiter in flushWaiters + closeWaiters { waiter.finish() }
        flushWaiters = []
        closeWaiters = []
        held = FewOrMany()
    }

    // MARK: The network

    /// When the first attempt is on its way: the first look at the network takes longer than a connect on the own machine.
    private func watchNetwork() {
        guard client.options.watchesNetwork, !isWatchingNetwork, timer != nil, !reactor.isInherited else { return }
        isWatchingNetwork = true
        reactor.network.join()
        if let refusal = reactor.network.refusal {
            client.log.write(
                .warn, .network, "changes of the network go unnoticed: there is no netlink socket (\(refusal.message))")
        }
    }

    func networkChanged(_ change: NetworkChange) {
        guard isWatchingNetwork else { return }
        if let source, change.cutsOff(source) { take(.down) }
        if change.opensWay(from: source) { take(.up) }
    }

    func take(_ hint: NetworkHint) {
        feed(hint)
        settle(reactor.now)
    }

    private func feed(_ hint: NetworkHint) {
        client.counters.networkChanges.add(1)
        client.log.write(.info, .network, hint.words)
        feed(.network(hint, spreadMs: reactor.spreadMs))
    }

    /// The reactor has lost its fds: what has some of its own ends without another system call, and no connection comes any more.
    func loseFDs() {
        attempt?.attempt?.cancel()
        attempt = nil
        for connection in lingering + (connection.map { [$0] } ?? []) {
            countLost(connection)
            connection.loseFDs()
        }
        connection = nil
        lingering = []
        if closing != nil { closeFault = Reactor.lostFDs }
        closing = nil
        feed(.end(Reactor.lostFDs))
        settle(reactor.now)
    }

    // MARK: In a forked child

    /// What is on the stack or still referred to does nothing any more.
    func disown() {
        attempt?.attempt?.disown()
        connection?.disown()
        for connection in lingering { connection.disown() }
    }

    /// Closes this process's copies of the sockets, without a word to the edge, which talks to the parent.
    func closeInherited() {
        attempt?.attempt?.closeInherited()
        connection?.closeInherited()
        for connection in lingering { connection.closeInherited() }
    }

    // MARK: The session

    private func feed(_ input: SessionInput) {
        guard !isFeeding else {
            inputs.append(input)
            return
        }
        isFeeding = true
        lastChannel = nil
        handle(input)
        var next = 0
        while next < inputs.count {
            handle(inputs[next])
            next += 1
        }
        inputs = []
        isFeeding = false
    }

    private func handle(_ input: SessionInput) {
        guard !client.isEnding else { return }
        var effects: [SessionEffect] = []
        session.handle(input, now: reactor.now, random: &reactor.random, into: &effects)
        if waitsForKeys != session.isHoldFull { holdChanged() }
        // What other threads may ask is true before anything is told.
        for case .channelState(let reference, let state) in effects where state != .unsubscribed {
            ChannelHot.at(reference)?.pointee.channel.takeUnretainedValue().setState(state)
        }
        if session.connectionID != mirroredConnectionID {
            // A repeated handshake brings a new id without a change of state.
            mirroredConnectionID = session.connectionID
            client.mirror(state: session.state, connectionID: session.connectionID)
        }
        observer.note(effects)
        for effect in effects where !client.isEnding { perform(effect) }
    }

    private func perform(_ effect: SessionEffect) {
        switch effect {
        case .open(let id): open(id)
        case .close(let id, let code, let reason, let abandon): close(id, code, reason, abandon)
        case .send(let id, let bytes, let kind):
            guard let connection, connection.id == id else { return }
            connection.send(bytes, kind, maskKey: reactor.random.maskKey(), clientEventCost: clientEventCost)
        case .authorize(let question): authorize(question)
        case .askReconnect(let question): ask(.reconnect(question))
        case .withdraw(let id):
            posts.removeValue(forKey: id)?.cancel()
            requests.removeValue(forKey: id)?.end()
        case .channelState(let reference, let state):
            // The records that still wait hold it on their own.
            if state == .unsubscribed { held[reference] = nil }
        case .identity(let memberID):
            client.mirror(memberID: memberID)
            if let memberID { client.memberChannel.follow(memberID: memberID) }
        case .clientEventLost:
            client.counters.clientEventsLost.add(1)
            client.outboundBytes.wrappingSubtract(clientEventCost, ordering: .relaxed)
        case .watchlistEntriesMalformed(let count): client.counters.watchlistEntriesMalformed.add(UInt64(count))
        case .attemptRefused: client.counters.attemptsRefused.add(1)
        case .note: break
        case .keyRefreshBegan: client.counters.keyRefreshes.add(1)
        case .emit(let event):
            if case .state(let change) = event {
                client.mirror(state: change.current, connectionID: change.connectionID, ending: change.ending)
                if change.current == .connected { client.counters.connects.add(1) }
            }
            if case .decryptionFailed = event { client.counters.decryptionFailures.add(1) }
            if case .completed = event { client.promised.wrappingSubtract(1, ordering: .relaxed) }
            sink.emit(event, dialect: dialect)
        }
    }

    // MARK: Transport

    private func open(_ id: TransportID) {
        guard !reactor.hasLostFDs else { return feed(.end(Reactor.lostFDs)) }
        client.counters.attempts.add(1)
        let edge = client.edge
        client.log.write(.info, .connection, "tries \(client.route.name)\(edge.usesTLS ? "" : " in plaintext")")
        let key = UpgradeRequest.key(random: (reactor.random.next(), reactor.random.next()))
        let upgrade = UpgradeRequest.bytes(
            host: edge.hostHeader, path: edge.path, key: key, userAgent: Library.userAgent)
        attempt = (id, nil)
        let started = reactor.connector.connect(
            edge, client.route, timeoutMs: client.options.session.connectTimeoutMs, upgrade: upgrade
        ) { [weak self] result in
            self?.attemptEnded(id, result, key: key, upgrade: upgrade)
        }
        if attempt?.id == id { attempt?.attempt = started }
    }

    private func attemptEnded(
        _ id: TransportID, _ result: Result<(stream: Stream, sent: Int), Fault>, key: String, upgrade: [UInt8]
    ) {
        guard attempt?.id == id else {
            if case .success(let connected) = result { connected.stream.close() }
            return
        }
        attempt = nil
        switch result {
        case .success(let (stream, sent)):
            client.counters.bytesSent.add(UInt64(sent))
            source = System.sourceAddress(stream.fd)
            if isWatchingNetwork, reactor.network.tryAgain() {
                client.log.write(.info, .network, "changes of the network are noticed")
            }
            let peer = stream.peer
            client.diary.connected(to: peer)
            client.log.write(.verbose, .connection, "reached \(peer), sends the upgrade")
            let connection = Connection(
                id: id, stream: stream, upgrade: UpgradeResponse(key: key), unsent: upgrade[sent...],
                messageBytesMax: client.options.messageBytesMax, reactor: reactor, owner: self)
            self.connection = connection
            feed(.transportStep(id, "upgrade"))
            connection.start()
        case .failure(let fault): feed(.transportEnded(id, .failed(fault)))
        }
        settle(reactor.now)
    }

    private func close(_ id: TransportID, _ code: UInt16?, _ reason: String, _ abandon: Bool) {
        if attempt?.id == id {
            attempt?.attempt?.cancel()
            attempt = nil
        }
        guard let connection, connection.id == id else { return }
        self.connection = nil
        connection.close(code: code, reason: reason, abandon: abandon, maskKey: reactor.random.maskKey())
        if connection.isClosing {
            linger(connection)
        } else {
            countLost(connection)
            if connection === closing { closed(connection) }
        }
    }

    private func closed(_ connection: Connection) {
        closing = nil
        switch connection.farewell {
        case .answered, nil: break
        case .unanswered: closeFault = Client.timeout("The edge did not answer the close frame in time.")
        case .lost: closeFault = Stream.broken("The connection broke before the edge had answered the close frame.")
        }
    }

    /// Waits, within bounds, for the edge to end a connection that is being closed.
    private func linger(_ connection: Connection) {
        lingering.append(connection)
        connection.whenGone { [weak self] in self?.lingeringEnded(connection) }
        while lingering.count > Self.lingeringMax { lingering.removeFirst().abandon() }
    }

    private func lingeringEnded(_ connection: Connection) {
        countLost(connection)
        if connection === closing { closed(connection) }
        lingering.removeAll { $0 === connection }
        serveWaiters()
    }

    private func countLost(_ connection: Connection) {
        let (lost, cost) = connection.dropOutbound()
        client.counters.clientEventsLost.add(UInt64(lost))
        client.outboundBytes.wrappingSubtract(cost, ordering: .relaxed)
    }

    // MARK: From the connection

    func connectionOpened(_ connection: Connection) {
        client.log.write(.verbose, .connection, "the upgrade is accepted")
        feed(.transportOpened(connection.id))
    }

    func connectionEnded(_ connection: Connection, _ end: TransportEnd) {
        guard self.connection === connection else { return }
        self.connection = nil
        if connection.isClosing { linger(connection) } else { countLost(connection) }
        feed(.transportEnded(connection.id, end))
        settle(reactor.now)
    }

    func connectionWrote(_ connection: Connection, _ progress: Outbound.Progress) {
        client.counters.bytesSent.add(UInt64(progress.bytes))
        client.counters.messagesSent.add(UInt64(progress.messages))
        if progress.cost > 0 { client.outboundBytes.wrappingSubtract(progress.cost, ordering: .relaxed) }
        if progress.awaited > 0 { feed(.written(connection.id, awaited: progress.awaited)) }
    }

    func connection(_ connection: Connection, received bytes: Int) {
        session.noteInbound(now: reactor.now)
        client.counters.bytesReceived.add(UInt64(bytes))
        sink.isBusy = bytes >= RecordChunk.bytesSmall
        isTraced = client.log.wants(.verbose, .wire)
        if isTraced { trace(bytes) }
    }

    func connection(_ connection: Connection, discarded bytes: Int) { client.counters.bytesReceived.add(UInt64(bytes)) }

    func connectionTurnEnded(_ connection: Connection) { settle(reactor.now) }

    func connection(
        _ connection: Connection, message: UnsafeMutableRawBufferPointer, isValidUTF8: Bool
    ) -> Bool {
        if hot.pointee.ending.load(ordering: .relaxed) { return true }
        if sink.isFull, isPausing(connection) { return false }
        if waitsForKeys, !isTakingRest {
            pause(connection)
            return false
        }
        messages &+= 1
        let bytes = UnsafeRawBufferPointer(message)
        if let channel = lastChannel, let scanned = template.match(bytes) {
            sink.event(message, scanned, channel)
            return true
        }
        switch MessageScanner.scan(bytes, isValidUTF8: isValidUTF8) {
        case .message(let scanned):
            if isTraced { trace(scanned, bytes) }
            if let name = scanned.channel, !name.isEscaped, !scanned.event.isEscaped,
                !isReserved(scanned.event.bytes(in: bytes)),
                let channel = ChannelHot.at(session.route(name.bytes(in: bytes)))
            {
                guard !channel.pointee.isEncrypted else {
                    sealed(connection, message, scanned, channel)
                    return true
                }
                template.learn(bytes, scanned)
                lastChannel = isTraced ? nil : channel
                sink.event(message, scanned, channel)
                return true
            }
            slow(connection, message, scanned)
        case .malformed:
            client.counters.framesMalformed.add(1)
            client.log.write(.warn, .wire, "a message of \(bytes.count) bytes is no JSON object with an event: ignored")
            malformed(bytes, on: connection)
        case .invalidUTF8: connection.failInvalidUTF8()
        }
        return true
    }

    /// Other clients deliver what has half of a surrogate pair, so a program that waits for it hears of its loss.
    private func malformed(_ bytes: UnsafeRawBufferPointer, on connection: Connection) {
        guard !connection.hasToldHalfPair, let replaced = HalfPairs.replaced(in: bytes) else { return }
        replaced.withUnsafeBytes { bytes in
            guard case .message(let scanned) = MessageScanner.scan(bytes, isValidUTF8: false) else { return }
            let event = JSONString.decode(scanned.event, in: bytes)
            var channel = scanned.channel.map { JSONString.decode($0, in: bytes) } ?? ""
            let isRouted = channel.withUTF8 { session.route(UnsafeRawBufferPointer($0)) } != .none
            guard isRouted || channel.isEmpty || EventName.isReserved(event, dialect: dialect) else { return }
            connection.hasToldHalfPair = true
            let place = channel.isEmpty ? "" : " on \(channel.prefix(ChannelName.charactersMax))"
            let fault = Fault(
                BIRD_ERR_MALFORMED, .channel, field: "data",
                "The message \(event.prefix(EventName.charactersMax))\(place) is lost: it has half of a surrogate pair, which is no "
                    + "character. Later ones on this connection are only counted (frames_malformed).", isRetriable: true
            )
            sink.emit(.error(fault), dialect: dialect)
        }
    }

    private func trace(_ bytes: Int) {
        lastChannel = nil
        client.log.write(.verbose, .wire, "read \(bytes) bytes")
    }

    private func trace(_ scanned: ScannedMessage, _ bytes: UnsafeRawBufferPointer) {
        let channel = scanned.channel.map { JSONString.decode($0, in: bytes) } ?? ""
        client.log.write(
            .verbose, .wire, channel: channel,
            "received \(JSONString.decode(scanned.event, in: bytes))\(channel.isEmpty ? "" : " on \(channel)"), \(bytes.count) bytes"
        )
    }

    /// An application event of an encrypted channel. With its key at hand it takes a short way too.
    private func sealed(
        _ connection: Connection, _ message: UnsafeMutableRawBufferPointer, _ scanned: ScannedMessage,
        _ channel: UnsafeMutablePointer<ChannelHot>
    ) {
        if let key = session.key(of: ChannelReference(channel)),
            sink.sealedEvent(UnsafeRawBufferPointer(message), scanned, channel, key)
        {
            return
        }
        slow(connection, message, scanned)
    }

    /// Names of the protocol's own events begin with these.
    @inline(__always)
    private func isReserved(_ event: UnsafeRawBufferPointer) -> Bool {
        guard event.count >= 5, let base = event.baseAddress,
            UInt32(littleEndian: base.loadUnaligned(as: UInt32.self)) == reservedStart
        else { return false }
        return EventName.isReserved(event, dialect: dialect)
    }

    /// Everything but an application event on a subscribed channel.
    private func slow(_ connection: Connection, _ message: UnsafeMutableRawBufferPointer, _ scanned: ScannedMessage) {
        let bytes = UnsafeRawBufferPointer(message)
        let event = JSONString.decode(scanned.event, in: bytes)
        let channel = scanned.channel.map { JSONString.decode($0, in: bytes) }
        if let channel, !EventName.isReserved(event, dialect: dialect) {
            var name = channel
            let routed = name.withUTF8 { session.route(UnsafeRawBufferPointer($0)) }
            guard routed != .none else {
                client.counters.framesUnroutable.add(1)
                return
            }
            // Only its names were unusual: its data, which may be large, are copied once as ever.
            if let hot = ChannelHot.at(routed), !hot.pointee.isEncrypted, let base = message.baseAddress {
                var plain = scanned
                if plain.event.isEscaped { plain.event = JSONString.unescapeInPlace(plain.event, in: base) }
                sink.event(message, plain, hot)
                return
            }
        } else if scanned.data.length > InboundMessage.dataBytesMax(of: event, dialect) {
            let start = EdgeText.cut(scanned.data.bytes(in: bytes))
            feed(
                .message(
                    connection.id,
                    InboundMessage(event: event, channel: channel, data: .string(Array(start.utf8)), isCut: true)))
            return
        }
        let data: InboundMessage.Data
        switch scanned.dataKind {
        case .none: data = .none
        case .value: data = .value(Array(scanned.data.bytes(in: bytes)))
        case .string:
            let source = scanned.data.bytes(in: bytes)
            data = .string(
                Array(unsafeUninitializedCapacity: source.count) { buffer, count in
                    count = buffer.baseAddress.map { JSONString.unescape(source, into: $0) } ?? 0
                })
        }
        let sender = scanned.sender.isNone ? nil : JSONString.decode(scanned.sender.span, in: bytes)
        feed(.message(connection.id, InboundMessage(event: event, channel: channel, data: data, sender: sender)))
    }

    // MARK: Slow consumers

    /// A message has come although the queue is full. False: it is taken all the same.
    private func isPausing(_ connection: Connection) -> Bool {
        // What led to a connection, or ends it, has room; so has what was here before its end.
        guard !isTakingRest, session.state == .connected || hot.pointee.isReserveFull(promised: 0) else { return false }
        sink.publish()
        guard sink.isFull, stall() else { return false }
        client.counters.readPauses.add(1)
        client.log.write(.warn, .delivery, "reading pauses: the program's queue is full")
        pause(connection)
        return true
    }

    private func pause(_ connection: Connection) {
        connection.setPaused(true)
        // A pong may lie in the buffer of the TLS layer, where nothing can be seen. Later ones wait in the socket.
        if connection.mayHoldUnseenBytes { session.noteUnread() }
    }

    /// From now on the session begins nothing whose outcome the program could not be told. False: the consumer has caught up meanwhile.
    private func stall() -> Bool {
        guard !session.isStalled else { return true }
        client.awaitsRoom.store(true, ordering: .sequentiallyConsistent)
        guard hot.pointee.isOverHalf else {
            client.awaitsRoom.store(false, ordering: .relaxed)
            return false
        }
        session.isStalled = true
        return true
    }

    /// Events began to wait for keys in such numbers that reading rests, or do so no more.
    private func holdChanged() {
        waitsForKeys.toggle()
        if !waitsForKeys, !session.isStalled { connection?.setPaused(false) }
    }

    private func goOn() {
        client.awaitsRoom.store(false, ordering: .relaxed)
        session.isStalled = false
        if connection?.isPaused == true { client.log.write(.info, .delivery, "reading goes on") }
        connection?.setPaused(false)
        feed(.timer)
    }

    /// The edge lives if it has sent what this side does not read. If it seems dead, what it sent before is still told.
    private func watchWhilePaused(_ connection: Connection, _ now: Instant) {
        if connection.hasUnreadBytes {
            session.noteUnread()
        } else if session.isEdgeDead(now) {
            isTakingRest = true
            connection.takeRest(now)
            isTakingRest = false
        }
    }

    // MARK: Authorization

    private func authorize(_ question: AuthorizationQuestion) {
        client.counters.authorizations.add(1)
        let options = client.options
        let isSignin = question.channelName == nil
        if isSignin ? options.asksMemberAuthorizer : options.asksAuthorizer {
            ask(.authorization(question))
        } else if let endpoint = isSignin ? client.memberAuthEndpoint : client.authEndpoint {
            if options.asksForHeaders {
                ask(.headers(question, endpoint))
            } else {
                post(question, to: endpoint, options.authHeaders)
            }
        }
    }

    private func post(_ question: AuthorizationQuestion, to endpoint: HTTPEndpoint, _ headers: HTTPHeaders) {
        let dialect = dialect
        let began = System.now()
        let what = question.channelName ?? "the signin"
        let log = client.log
        log.write(
            .verbose, .authorization, channel: question.channelName ?? "", "asks \(endpoint.name) to authorize \(what)")
        let timeoutMs = client.options.session.authTimeoutMs
        let post = reactor.posts.post(
            endpoint, Authorizer.body(question, dialect: dialect), headers: headers, timeoutMs: timeoutMs,
            // Just before the session gives up by itself, which knows nothing of URLs and steps.
            deadline: question.deadline + -1
        ) { [weak self] result in
            guard let self else { return }
            posts[question.id] = nil
            log.write(
                .info, .authorization, channel: question.channelName ?? "",
                "\(endpoint.name) gave \(HTTPPosts.words(result)) for \(what) after \(System.now() - began) ms")
            feed(
                .authorization(
                    question.id,
                    Authorizer.answer(result, question: question, endpoint: endpoint.name, dialect: dialect)))
            settle(reactor.now)
        }
        if !post.isOver { posts[question.id] = post }
    }

    // MARK: Requests

    private func ask(_ subject: Request.Subject) {
        client.log.write(.verbose, .authorization, "asks the program \(subject.words)")
        let request = Request(client: client, subject)
        requests[request.id] = request
        sink.ask(request, now: reactor.now)
    }

    private func answered(_ id: QuestionID, _ answer: Request.Answer) {
        // One that was withdrawn in the meantime is nobody's any more.
        guard let request = requests.removeValue(forKey: id) else { return }
        client.log.write(.verbose, .authorization, "the program answers \(request.subject.words)")
        switch (answer, request.subject) {
        case (.input(let input), _): feed(input)
        case (.headers(let headers), .headers(let question, let endpoint)):
            post(question, to: endpoint, client.options.authHeaders.overlaid(by: headers))
        case (.headers, _): break
        }
    }
}
