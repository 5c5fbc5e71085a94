import CBirdRealtimeABI

/// One client's life on the wire as a deterministic state machine: input, time and randomness come in, effects go out in the
/// order in which they must be performed. It does no I/O and is never on the stack while user code runs.
///
/// It is not copyable, so that the hot path cannot become a copy of everything.
package struct Session: ~Copyable, Sendable {
    package internal(set) var state = ConnectionState.initialized
    /// "" unless connected.
    package internal(set) var connectionID = ""
    /// The identity of this connection.
    package internal(set) var memberID: String?

    /// The program does not take what it is told. Until it does, no planned attempt begins, nobody is asked, and since reading rests, no
    /// answer is missed: what went on for months would fill the memory of a program that has stopped. `.timer` is due at its end.
    package var isStalled = false

    private(set) var configuration: SessionConfiguration
    let dialect: Dialect
    /// None until there is somebody to sign in.
    package var memberChannel: ChannelReference

    var transport: TransportID?
    var transports: UInt64 = 0
    var transportOpenedAt: Instant?
    /// When the edge last gave the present connection another id.
    var connectionIDChangedAt: Instant?
    /// What the transport was doing when last heard of, for the error of an attempt that takes too long.
    var transportStep = ""
    /// Attempts since the last handshake or the program's own call.
    var attempts: Int32 = 0
    var handshakeDue: Instant?
    /// While the state is unavailable.
    @Rare var planned: PlannedAttempt?
    var backoff: Backoff
    var liveness: Liveness
    var network = NetworkNews()
    /// Why attempts fail since the last handshake: each cause reaches the error surface once.
    @Rare var reportedFailure: Fault?
    /// The code of the last error that the edge has reported on this connection; 0: none, or one without a code.
    var edgeErrorCode: Int32 = 0
    /// A message of this connection had more data than is read.
    var hasToldCut = false

    var channels = ChannelTable()
    /// The subscribed channels: `route` reads nothing else.
    var routes: NameTable
    var signin = Signin()
    var authorizations: Authorizations
    var questions: UInt64 = 0
    var deadlines = DeadlineHeap()
    var lastTicket: UInt64 = 0
    /// Whose question is not written yet, in the order of the frames (`Asked.order`).
    var unwritten: [(applicant: Applicant, order: UInt64)] = []
    var lastWritten: UInt64 = 0
    /// Whose question was written and is not answered. Before the given time an error may be the answer.
    var unanswered = FewOrMany<Applicant, Instant>()
    var fence = AnswerFence()
    /// Of the channels whose key is known, by slot.
    var encryptions: [Int: ChannelEncryption] = [:]
    var heldTotal = HeldTotal()

    /// `memberChannel` stands for the channel of whatever member is signed in; `seed` keys the hash tables.
    package init(
        configuration: SessionConfiguration, dialect: Dialect = .bird, memberChannel: ChannelReference, seed: UInt64
    ) {
        self.configuration = configuration
        self.dialect = dialect
        self.memberChannel = memberChannel
        backoff = Backoff(configuration)
        liveness = Liveness(configuration, dialect)
        routes = NameTable(seed: seed)
        authorizations = Authorizations(inFlightMax: configuration.authorizationsInFlightMax)
    }

    // MARK: - The hot path

    /// The subscribed channel with exactly this name, the confirmed member channel included, or none.
    package func route(_ name: UnsafeRawBufferPointer) -> ChannelReference {
        ChannelReference(bits: routes.value(of: name))
    }

    /// Bytes have been read: any are proof of life. What they say may be taken later, and proves nothing then.
    package mutating func noteInbound(now: Instant) {
        liveness.note(now)
    }

    /// Inbound bytes wait unread because reading pauses: the edge is alive, but has to be pinged all the same.
    package mutating func noteUnread() {
        liveness.noteUnread()
    }

    /// The next check would find that the edge is dead.
    package func isEdgeDead(_ now: Instant) -> Bool { liveness.isDead(now) }

    // MARK: - Input

    /// When `.timer` is due; it may turn out that there was nothing to do yet.
    package var nextDeadline: Instant? {
        var next = deadlines.first?.due
        next = Self.earlier(next, handshakeDue)
        next = Self.earlier(next, isStalled ? nil : planned?.due)
        next = Self.earlier(next, network.checkDue)
        return Self.earlier(next, liveness.isWatching ? liveness.due : nil)
    }

    private static func earlier(_ left: Instant?, _ right: Instant?) -> Instant? {
        guard let left, let right else { return left ?? right }
        return min(left, right)
    }

    /// Appends what must be done, in order. Nothing that is done may call back before all of it is.
    package mutating func handle(
        _ input: SessionInput, now: Instant, random: inout some RandomNumberGenerator,
        into effects: inout [SessionEffect]
    ) {
        var turn = Turn(now: now, random: SplitMix64(seed: random.next()))
        swap(&turn.effects, &effects)
        dispatch(input, &turn)
        askAuthorizer(&turn)
        tidyDeadlines()
        swap(&turn.effects, &effects)
    }

    private mutating func dispatch(_ input: SessionInput, _ turn: inout Turn) {
        switch input {
        case .connect: connect(&turn)
        case .end(let fault): end(fault, &turn)
        case .disconnect: disconnect(&turn)
        case .retryNow: retryNow(&turn)
        case .configure(let changed): configure(changed, &turn)
        case .network(let hint, let spreadMs): network(hint, spreadMs: spreadMs, &turn)
        case .subscribe(let name, let channel, let operation): subscribe(name, channel, operation, &turn)
        case .unsubscribe(let channel): unsubscribe(channel, &turn)
        case .trigger(let channel, let event, let data): trigger(channel, event, data, &turn)
        case .signin(let refresh, let operation): signIn(refresh: refresh, operation, &turn)
        case .authorization(let id, let answer): authorizerAnswered(id, answer, &turn)
        case .reconnect(let id, let answer): reconnectAnswered(id, answer, &turn)
        case .transportStep(let id, let step):
            guard id == transport else { return }
            transportStep = step
        case .transportOpened(let id):
            guard id == transport else { return }
            transportOpenedAt = turn.now
        case .written(let id, let count):
            guard id == transport else { return }
            written(count, turn.now)
        case .transportEnded(let id, let end):
            guard id == transport else { return }
            transportEnded(end, &turn)
        case .message(let id, let message):
            guard id == transport else { return }
            receive(message, &turn)
        case .timer: timer(&turn)
        }
    }

    /// The rules of reconnects and of the keep-alive change at once, for what is planned and for the ping that waits for its answer.
    /// What else is different holds from its next use on.
    private mutating func configure(_ changed: SessionConfiguration, _ turn: inout Turn) {
        configuration = changed
        let followsOtherRules = backoff.configure(changed)
        if let planned, backoff.isExhausted {
            giveUp(after: planned.cause, &turn)
        } else if followsOtherRules {
            planAnew(&turn)
        }
        liveness.configure(changed, dialect, turn.now)
        checkLiveness(&turn)
    }

    private mutating func checkLiveness(_ turn: inout Turn) {
        switch liveness.check(turn.now) {
        case .nothing: break
        case .ping:
            if liveness.misses > 0 { turn.note(.pongMissed) }
            sendPing(&turn)
        case .dead: livenessFailed(&turn)
        }
    }

    /// Changes no deadline. When the pong comes, `liveness.isAnswered` says so.
    @discardableResult
    mutating func sendPing(_ turn: inout Turn) -> PingNumber {
        turn.note(.pinged)
        send(OutboundMessage.ping(dialect: dialect), &turn)
        return liveness.pingIsSent()
    }

    private mutating func timer(_ turn: inout Turn) {
        checkLiveness(&turn)
        networkCheckDue(&turn)
        if let due = handshakeDue, due <= turn.now {
            handshakeMissing(&turn)
        }
        if let planned, planned.due <= turn.now, !isStalled {
            attemptDue(planned, &turn)
        }
        // What expires may set deadlines that are due at once; those have their turn next time.
        for _ in 0..<deadlines.count {
            guard let entry = deadlines.first, entry.due <= turn.now else { break }
            deadlines.popFirst()
            if isCurrent(entry.applicant, entry.ticket) {
                expired(entry.applicant, &turn)
            }
        }
    }

    /// Leaves a deadline at the front that somebody still has, and no more void ones than good ones.
    private mutating func tidyDeadlines() {
        while let entry = deadlines.first, !isCurrent(entry.applicant, entry.ticket) {
            deadlines.popFirst()
        }
        if deadlines.count > 4 * channels.count + 64 {
            deadlines.compact { [signin, channels, encryptions] in
                Self.isCurrent($0.applicant, $0.ticket, signin, channels, encryptions)
            }
        }
    }

    mutating func nextQuestion() -> QuestionID {
        questions += 1
        return QuestionID(number: questions)
    }

    // MARK: - Sending

    mutating func send(_ message: [UInt8], as kind: FrameKind = .plain, _ turn: inout Turn) {
        guard let transport else { return }
        turn.effects.append(.send(transport, message, kind))
    }
}
