import CBirdRealtimeABI

/// The way of every wish: authorizer, edge, and again after a while what failed for a while (Bird protocol 8.1, 9, 11 and 16).
extension Session {
    private static var silentRetriesMax: Int { 3 }
    private static var operationsMax: Int { 1024 }

    subscript(applicant: Applicant) -> Admission {
        get {
            switch applicant {
            case .signin: signin.admission
            case .channel(let slot): channels[slot].admission
            case .key(let slot): encryptions[slot]?.refresh ?? Admission()
            }
        }
        _modify {
            switch applicant {
            case .signin: yield &signin.admission
            case .channel(let slot): yield &channels[slot].admission
            case .key(let slot): yield &encryptions[slot, default: ChannelEncryption()].refresh
            }
        }
    }

    var applicants: [Applicant] {
        [.signin] + channels.allSlots.filter { channels.isUsed($0) }.map { .channel($0) }
            + encryptions.keys.sorted().map { .key($0) }
    }

    func isCurrent(_ applicant: Applicant, _ ticket: UInt64) -> Bool {
        Self.isCurrent(applicant, ticket, signin, channels, encryptions)
    }

    static func isCurrent(
        _ applicant: Applicant, _ ticket: UInt64, _ signin: Signin, _ channels: ChannelTable,
        _ encryptions: [Int: ChannelEncryption]
    ) -> Bool {
        switch applicant {
        case .signin: signin.admission.ticket == ticket
        case .channel(let slot): channels.isUsed(slot) && channels[slot].admission.ticket == ticket
        case .key(let slot): encryptions[slot]?.refresh.ticket == ticket
        }
    }

    /// Public channels first, since nobody has to be asked for them; then the identity.
    mutating func beginEverything(_ turn: inout Turn) {
        for slot in channels.allSlots where channels.isUsed(slot) && channels[slot].kind == .public {
            begin(.channel(slot), &turn)
        }
        if signin.isArmed {
            begin(.signin, &turn)
        }
        for slot in channels.allSlots where channels.isUsed(slot) && channels[slot].kind != .public {
            begin(.channel(slot), &turn)
        }
    }

    // MARK: - Steps

    /// Starts over on the present connection; there is one.
    mutating func begin(_ applicant: Applicant, _ turn: inout Turn) {
        self[applicant].cause = nil
        self[applicant].asked.next = nil
        switch requirement(of: applicant) {
        case .nothing:
            askEdge(applicant, Credentials(), &turn)
        case .authorization:
            enter(.queued, applicant, due: patienceEnd(of: applicant), &turn)
            if applicant != .signin {
                authorizations.enqueue(applicant, ticket: self[applicant].ticket)
                authorizations.compact(applicants: channels.count) { [signin, channels, encryptions] in
                    Self.isCurrent($0.applicant, $0.ticket, signin, channels, encryptions)
                }
            }
        case .impossible(let fault):
            deny(applicant, fault, &turn)
        }
    }

    /// Asks for as many as may be in flight, at the end of each turn: whatever has freed a place. The signin goes before the
    /// channels.
    mutating func askAuthorizer(_ turn: inout Turn) {
        while !isStalled, authorizations.hasRoom {
            let applicant: Applicant
            if signin.admission.phase == .queued {
                applicant = .signin
            } else {
                guard let waiter = authorizations.dequeue() else { return }
                guard isCurrent(waiter.applicant, waiter.ticket) else { continue }
                applicant = waiter.applicant
            }
            let id = nextQuestion()
            authorizations.begin(id, applicant)
            let due = min(turn.now + configuration.authTimeoutMs, patienceEnd(of: applicant) ?? .distantFuture)
            enter(.authorizing(id), applicant, due: due, &turn)
            turn.effects.append(
                .authorize(
                    AuthorizationQuestion(
                        id: id, connectionID: connectionID, channelName: channelName(of: applicant), deadline: due)))
        }
    }

    mutating func authorizerAnswered(_ id: QuestionID, _ answer: AuthorizationAnswer, _ turn: inout Turn) {
        guard let applicant = authorizations.end(id) else { return }
        if case .refused = answer { turn.note(.authorizationFailed) }
        switch answer {
        case .granted(let auth, let memberData, let sharedSecret):
            if let fault = unusable(auth: auth, memberData: memberData, sharedSecret, applicant) {
                deny(applicant, fault, &turn)
            } else if case .key(let slot) = applicant {
                keyCame(slot, sharedSecret, &turn)
            } else {
                askEdge(
                    applicant, Credentials(auth: auth, memberData: memberData, sharedSecret: sharedSecret), &turn)
            }
        case .refused(let fault, let retryAfterMs):
            if fault.isRetriable {
                retryLater(applicant, fault, retryAfterMs: retryAfterMs, reportsAfter: Self.silentRetriesMax, &turn)
            } else {
                deny(applicant, fault, &turn)
            }
        }
    }

    private mutating func askEdge(_ applicant: Applicant, _ credentials: Credentials, _ turn: inout Turn) {
        if case .channel(let slot) = applicant, self[applicant].asked.isInherited, self[applicant].asked.frames > 0 {
            inherit(slot, credentials, &turn)
        } else {
            ask(applicant, credentials, &turn)
        }
    }

    /// Sends the frame.
    mutating func ask(_ applicant: Applicant, _ credentials: Credentials, _ turn: inout Turn) {
        let order = fence.nextFrame(after: liveness.pinged)
        self[applicant].asked.add(order: order, after: liveness.pinged, credentials)
        enter(.pending, applicant, &turn)
        unwritten.append((applicant, order))
        switch applicant {
        case .signin:
            send(
                OutboundMessage.signin(
                    auth: credentials.auth ?? "", memberData: credentials.memberData ?? "", dialect: dialect),
                as: .awaited, &turn)
        case .channel(let slot):
            grant(slot, credentials)
            send(
                OutboundMessage.subscribe(
                    channel: channels[slot].name, auth: credentials.auth, memberData: credentials.memberData,
                    dialect: dialect), as: .awaited, &turn)
        case .key:
            break
        }
    }

    /// The edge's time begins when it can read the question, which is not before it is written.
    mutating func written(_ count: Int, _ now: Instant) {
        for (applicant, order) in unwritten.prefix(count) {
            lastWritten = order
            guard isUsed(applicant) else { continue }
            let asked = self[applicant].asked
            guard asked.frames > 0, order >= asked.firstOrder, order <= asked.order else { continue }
            // Edges that are late may be later still.
            unanswered[applicant] = now + 2 * configuration.answerTimeoutMs
            if order == asked.order, self[applicant].due == nil, self[applicant].phase == .pending {
                setDeadline(of: applicant, now + configuration.answerTimeoutMs)
            }
        }
        unwritten.removeFirst(min(count, unwritten.count))
        if unwritten.isEmpty { unwritten = [] }
    }

    private func isUsed(_ applicant: Applicant) -> Bool {
        if case .channel(let slot) = applicant { channels.isUsed(slot) } else { true }
    }

    /// The deadline of the present phase has come.
    mutating func expired(_ applicant: Applicant, _ turn: inout Turn) {
        // While the program takes nothing, nobody is asked, and whoever waits behind that does not count the time.
        if isStalled, case .key(let slot) = applicant {
            encryptions[slot]?.heldUntil = turn.now + configuration.authTimeoutMs
        }
        switch self[applicant].phase {
        case .queued where isStalled:
            begin(applicant, &turn)
        case .authorizing, .queued:
            turn.note(.authorizationFailed)
            let fault = Fault(
                BIRD_ERR_AUTH, area(of: applicant), field: "auth_timeout_ms",
                "The authorizer gave no answer for \(title(of: applicant)) within \(configuration.authTimeoutMs) ms.",
                isRetriable: true)
            retryLater(applicant, fault, retryAfterMs: nil, reportsAfter: Self.silentRetriesMax, &turn)
        case .pending where isStalled || isHoldFull:
            setDeadline(of: applicant, turn.now + configuration.answerTimeoutMs)
        case .pending where self[applicant].asked.isInherited:
            answerIsMissing(applicant, &turn)
        case .pending where self[applicant].cause != nil && fence.isTrusted:
            // The edge has answered its first ping since: a pong tells what the error was about.
            self[applicant].cause = nil
            setDeadline(of: applicant, turn.now + configuration.answerTimeoutMs)
        case .pending:
            if let cause = self[applicant].cause {
                guessAnswer(applicant)
                deny(applicant, cause, &turn)
            } else {
                let fault = Fault(
                    BIRD_ERR_TIMEOUT, area(of: applicant), field: "answer_timeout_ms",
                    "The edge gave no answer to \(title(of: applicant)) within \(configuration.answerTimeoutMs) ms.",
                    isRetriable: true)
                retryLater(applicant, fault, retryAfterMs: nil, reportsAfter: 0, &turn)
            }
        case .waiting:
            begin(applicant, &turn)
        case .idle, .denied:
            answerIsMissing(applicant, &turn)
        case .admitted:
            break
        }
    }

    // MARK: - Ends

    mutating func admitted(_ applicant: Applicant, _ turn: inout Turn) {
        enter(.admitted, applicant, &turn)
        self[applicant].cause = nil
        self[applicant].renew()
    }

    /// Final until somebody asks anew or the connection changes. `data`: of the edge's message that says so.
    mutating func deny(
        _ applicant: Applicant, _ fault: Fault, data: InboundMessage.Data = .none, _ turn: inout Turn
    ) {
        self[applicant].renew()
        turn.note(.setback(channel: channelName(of: applicant), fault, againInMs: nil))
        // A refresh that is refused leaves the identity as it was.
        enter(applicant == .signin && memberID != nil ? .admitted : .denied, applicant, &turn)
        failed(applicant, fault, data, willRetry: false, &turn)
    }

    /// The program hears of it once, after `reportsAfter` silent retries.
    private mutating func retryLater(
        _ applicant: Applicant, _ fault: Fault, retryAfterMs: Int64?, reportsAfter silentRetries: Int,
        _ turn: inout Turn
    ) {
        let failures = self[applicant].failures
        let delayMs =
            Backoff.jitterMs(configuration.backoffBaseMs, failures, configuration.backoffMaxMs, &turn.random)
            + min(max(retryAfterMs ?? 0, 0), RetryAfter.waitMsMax)
        let due = turn.now + delayMs
        let isLate = patienceEnd(of: applicant).map { due >= $0 } ?? false
        let reportsNow = (isLate || failures >= silentRetries) && !self[applicant].isFailureReported
        self[applicant].failures += 1
        self[applicant].isFailureReported = self[applicant].isFailureReported || reportsNow
        turn.note(.setback(channel: channelName(of: applicant), fault, againInMs: delayMs))
        enter(.waiting, applicant, due: due, &turn)
        if reportsNow {
            failed(applicant, fault, willRetry: true, &turn)
        }
    }

    private mutating func failed(
        _ applicant: Applicant, _ cause: Fault, _ data: InboundMessage.Data = .none, willRetry: Bool,
        _ turn: inout Turn
    ) {
        var fault = cause
        fault.channel = channelName(of: applicant) ?? ""
        switch applicant {
        case .channel(let slot):
            turn.emit(.subscriptionFailed(channels[slot].reference, fault, data: data, willRetry: willRetry))
            completeOperations(of: applicant, fault, &turn)
        case .signin:
            if signin.admission.operations.isEmpty {
                turn.emit(.signinFailed(fault))
            }
            completeOperations(of: applicant, fault, &turn)
            signinRoundEnded(&turn)
        case .key(let slot):
            keyRefused(slot, fault, &turn)
        }
    }

    // MARK: - Operations

    mutating func join(_ applicant: Applicant, _ operation: UInt64, _ turn: inout Turn) {
        var operations = self[applicant].operations
        self[applicant].operations = []
        join(applicant, &operations, operation, &turn)
        self[applicant].operations = operations
    }

    mutating func join(
        _ applicant: Applicant, _ operations: inout [UInt64], _ operation: UInt64, _ turn: inout Turn
    ) {
        guard operation != 0 else { return }
        if operations.count < Self.operationsMax {
            operations.append(operation)
        } else {
            let fault = Fault(
                BIRD_ERR_FULL, .argument, "\(Self.operationsMax) operations wait for the same answer already.",
                isRetriable: true)
            complete(operation, applicant, fault, &turn)
        }
    }

    mutating func completeOperations(
        of applicant: Applicant, _ fault: Fault?, memberData: String? = nil, _ turn: inout Turn
    ) {
        let operations = self[applicant].operations
        self[applicant].operations = []
        for operation in operations {
            complete(operation, applicant, fault, memberData: memberData, &turn)
        }
    }

    mutating func complete(
        _ operation: UInt64, _ applicant: Applicant, _ fault: Fault?, memberData: String? = nil, _ turn: inout Turn
    ) {
        guard operation != 0 else { return }
        turn.emit(.completed(operation: operation, isSignin: applicant == .signin, fault, memberData: memberData))
    }

    // MARK: - Phases

    /// Every change of phase goes through here: it takes the admission out of what it waited for, and tells other threads.
    mutating func enter(_ phase: Admission.Phase, _ applicant: Applicant, due: Instant? = nil, _ turn: inout Turn) {
        let previous = self[applicant].phase
        if case .authorizing(let id) = previous, authorizations.end(id) != nil {
            turn.effects.append(.withdraw(id))
        }
        self[applicant].phase = phase
        setDeadline(of: applicant, due)
        guard case .channel(let slot) = applicant else { return }
        if phase == .idle {
            forgetKey(slot, &turn)
        }
        if previous == .admitted, phase != .admitted {
            channels[slot].interruptedSince = liveness.lastInbound
            endKeyRefresh(slot, &turn)
            routes.remove(channels[slot].name)
        } else if previous != .admitted, phase == .admitted {
            routes.insert(channels[slot].name, channels[slot].reference.bits)
        }
        publishState(slot, &turn)
    }

    mutating func setDeadline(of applicant: Applicant, _ due: Instant?) {
        lastTicket += 1
        self[applicant].ticket = lastTicket
        self[applicant].due = due
        if let due {
            deadlines.push(DeadlineHeap.Entry(due: due, applicant: applicant, ticket: lastTicket))
        }
    }

    private mutating func publishState(_ slot: Int, _ turn: inout Turn) {
        let state = channels[slot].state
        guard channels[slot].isWanted, channels[slot].publicState != state else { return }
        channels[slot].publicState = state
        turn.effects.append(.channelState(channels[slot].reference, state))
    }
}
