import CBirdRealtimeABI

/// The life of connections: attempts, the handshake, ends and what is planned after them (Bird protocol 4 and 7).
extension Session {
    /// From one new id of a connection to the next.
    private static var connectionIDsApartMs: Int64 { 5_000 }

    // MARK: - The program's calls

    mutating func connect(_ turn: inout Turn) {
        switch state {
        case .connecting, .connected: return
        case .initialized, .unavailable, .disconnected, .failed: begin("connect was called", &turn)
        }
    }

    mutating func retryNow(_ turn: inout Turn) {
        guard state == .unavailable else { return }
        begin("retry now was called", &turn)
    }

    /// An attempt that the program wants is the first of a new schedule. The flap guard goes on counting.
    private mutating func begin(_ text: String, _ turn: inout Turn) {
        attempts = 0
        backoff.restart()
        open(text, &turn)
    }

    mutating func disconnect(_ turn: inout Turn) {
        guard state != .disconnected else { return }
        closeTransport(code: 1000, "client disconnect", &turn)
        forgetAttempts()
        leave(
            to: .disconnected, reason: BIRD_OK, "disconnect was called", closeCode: 0,
            operations: Fault(BIRD_ERR_STATE, .connection, "The connection was ended by disconnect before the answer."),
            &turn)
    }

    mutating func end(_ fault: Fault, _ turn: inout Turn) {
        switch state {
        case .initialized, .disconnected, .failed: return
        case .connecting, .connected, .unavailable:
            turn.emit(.error(fault))
            forgetAttempts()
            leave(to: .disconnected, reason: fault.status, fault.message, closeCode: 0, operations: fault, &turn)
        }
    }

    /// A later connect begins as the first did.
    mutating func forgetAttempts() {
        attempts = 0
        reportedFailure = nil
        backoff.reset()
    }

    // MARK: - Attempts

    mutating func open(_ text: String, _ turn: inout Turn) {
        transports += 1
        let id = TransportID(number: transports)
        transport = id
        transportOpenedAt = nil
        connectionIDChangedAt = nil
        transportStep = ""
        edgeErrorCode = 0
        hasToldCut = false
        attempts &+= 1
        dropPlan(&turn)
        network.laterTry = nil
        handshakeDue = turn.now + configuration.connectTimeoutMs
        change(to: .connecting, reason: BIRD_OK, text, closeCode: 0, delayMs: -1, &turn)
        turn.effects.append(.open(id))
    }

    mutating func handshakeCame(_ handshake: Payload.Handshake, _ turn: inout Turn) {
        guard let id = handshake.connectionID else {
            if state == .connecting {
                refuseHandshake(
                    field: "handshake",
                    "Handshake missing \(dialect.connectionIDKey): the server does not speak the dialect \(dialect.name). "
                        + "Check ws_host and dialect.", reason: "handshake missing \(dialect.connectionIDKey)", &turn)
            }
            return
        }
        guard state == .connecting else {
            liveness.handshakeRepeated(serverTimeoutMs: handshake.activityTimeoutMs, turn.now)
            identifierChanged(to: id, &turn)
            return
        }
        liveness.begin(serverTimeoutMs: handshake.activityTimeoutMs, turn.now)
        connectionID = id
        transportOpenedAt = transportOpenedAt ?? turn.now
        handshakeDue = nil
        attempts = 0
        reportedFailure = nil
        backoff.restart()
        change(to: .connected, reason: BIRD_OK, "the handshake came", closeCode: 0, delayMs: -1, &turn)
        beginEverything(&turn)
    }

    /// Answers of authorizers are good for one connection id only: who waits for one, or has yet to use it, asks again (Bird protocol 4).
    /// Of an edge that gives one id after the other, which no edge does, that would make a flood of requests to the authorizer.
    private mutating func identifierChanged(to id: String, _ turn: inout Turn) {
        guard connectionID != id else { return }
        if let last = connectionIDChangedAt, turn.now < last + Self.connectionIDsApartMs {
            tooManyIDs(&turn)
            return
        }
        connectionIDChangedAt = turn.now
        connectionID = id
        for applicant in applicants {
            switch self[applicant].phase {
            case .authorizing: begin(applicant, &turn)
            case .pending where self[applicant].asked.next != nil: begin(applicant, &turn)
            case .idle, .queued, .pending, .admitted, .waiting, .denied: break
            }
        }
    }

    private mutating func tooManyIDs(_ turn: inout Turn) {
        let fault = Fault(
            BIRD_ERR_PROTOCOL, .connection, field: "handshake",
            "The edge gave the connection two new ids within \(Self.connectionIDsApartMs) ms: the connection was closed.",
            code: 1002, isRetriable: true)
        closeTransport(code: 1002, "connection ids without end", &turn)
        report(fault, &turn)
        retry(after: fault, .policy, &turn)
    }

    /// The server is another than the options expect: no attempt would end otherwise.
    private mutating func refuseHandshake(field: String, _ message: String, reason: String, _ turn: inout Turn) {
        let fault = Fault(BIRD_ERR_PROTOCOL, .connection, field: field, message)
        turn.emit(.error(fault))
        closeTransport(code: 4001, reason, &turn)
        leave(to: .failed, reason: fault.status, fault.message, closeCode: 4001, operations: fault, &turn)
    }

    /// A server of another dialect is known by its first words.
    mutating func handshakeCame(of other: Dialect, _ turn: inout Turn) {
        guard state == .connecting else { return }
        refuseHandshake(
            field: "dialect",
            "The server speaks the dialect \(other.name), and this client is set to \(dialect.name). "
                + "Set dialect to \(other.name), or ws_host to another server.",
            reason: "handshake of the dialect \(other.name)", &turn)
    }

    // MARK: - Ends

    mutating func transportEnded(_ end: TransportEnd, _ turn: inout Turn) {
        switch end {
        case .closed(let code, let reason):
            ended(by: code, reason, "The edge closed the connection with code", &turn)
        case .failed(let fault):
            report(fault, &turn)
            retry(after: fault, fault.status == BIRD_ERR_SIZE ? .atOnce : .policy, &turn)
        case .refused(let fault, let retryAfterMs):
            report(fault, &turn)
            retry(after: fault, .policy, retryAfterMs: min(max(retryAfterMs, 0), RetryAfter.waitMsMax), &turn)
        }
    }

    /// What the edge says with a code at the end of a connection or an attempt. `way`: how it said so.
    private mutating func ended(by code: UInt16, _ reason: String, _ way: String, _ turn: inout Turn) {
        guard !dialect.isRefusal(code) else {
            let text = reason.isEmpty ? "The edge refused the connection." : reason
            let fault = Fault(BIRD_ERR_REFUSED, .connection, text, code: Int32(code))
            // An edge that first reports why it is going to refuse has told it.
            if fault.code != edgeErrorCode {
                turn.emit(.error(fault))
            }
            leave(to: .failed, reason: fault.status, fault.message, closeCode: fault.code, operations: fault, &turn)
            return
        }
        let detail = reason.isEmpty ? "" : ": \(reason)"
        let fault = Fault(BIRD_ERR_LOST, .connection, "\(way) \(code)\(detail)", code: Int32(code), isRetriable: true)
        retry(after: fault, Backoff.Band(closeCode: code), &turn)
    }

    /// An error before the handshake is the edge's last word on this attempt: its code means what that of a close would.
    mutating func attemptRefused(_ code: UInt16, _ error: Fault, _ turn: inout Turn) {
        closeTransport(code: 1000, "error \(code)", &turn)
        if !dialect.isRefusal(code) { report(error, &turn) }
        ended(by: code, error.message, "The edge refused the attempt with error", &turn)
    }

    mutating func livenessFailed(_ turn: inout Turn) {
        turn.note(.pongMissed)
        abandonTransport(code: 4200, "activity timeout", &turn)
        let misses = liveness.isInDoubt ? 1 : configuration.pongMissesMax
        let pings = misses == 1 ? "a ping for" : "\(misses) pings in a row, each for"
        let fault = Fault(
            BIRD_ERR_TIMEOUT, .connection, field: "pong_timeout_ms",
            "The edge has not answered \(pings) \(liveness.pongPatienceMs) ms.", isRetriable: true)
        retry(after: fault, .atOnce, &turn)
    }

    mutating func handshakeMissing(_ turn: inout Turn) {
        let isOpen = transportOpenedAt != nil
        abandonTransport(code: isOpen ? 4200 : nil, isOpen ? "handshake timeout" : "", &turn)
        let step = isOpen ? "handshake" : transportStep
        let detail = step.isEmpty ? "" : " It was at this step: \(step)."
        let fault = Fault(
            BIRD_ERR_TIMEOUT, .connection, field: step.isEmpty ? "connect_timeout_ms" : step,
            "No handshake from the edge within \(configuration.connectTimeoutMs) ms.\(detail)", isRetriable: true)
        report(fault, &turn)
        retry(after: fault, .policy, &turn)
    }

    private mutating func closeTransport(code: UInt16, _ reason: String, _ turn: inout Turn) {
        guard let transport else { return }
        turn.effects.append(.close(transport, code: code, reason: reason, abandon: false))
    }

    private mutating func abandonTransport(code: UInt16?, _ reason: String, _ turn: inout Turn) {
        guard let transport else { return }
        turn.effects.append(.close(transport, code: code, reason: reason, abandon: true))
    }

    /// A loss is told by the state. Why attempts fail, or what was wrong with what came, is an error; once in a row of equals.
    private mutating func report(_ fault: Fault, _ turn: inout Turn) {
        if state == .connected, fault.status == BIRD_ERR_LOST { return }
        if let last = reportedFailure, last.status == fault.status, last.field == fault.field,
            last.code == fault.code, last.httpStatus == fault.httpStatus, last.curlCode == fault.curlCode
        {
            return
        }
        reportedFailure = fault
        turn.emit(.error(fault))
    }

    private mutating func retry(
        after fault: Fault, _ band: Backoff.Band, retryAfterMs: Int64 = 0, _ turn: inout Turn
    ) {
        let wasConnecting = state == .connecting
        if let transportOpenedAt {
            backoff.connectionEnded(afterMs: turn.now - transportOpenedAt)
        }
        guard !backoff.isExhausted else {
            giveUp(after: fault, &turn)
            return
        }
        let delayMs = planAttempt(after: fault, band, retryAfterMs: retryAfterMs, &turn)
        leave(
            to: .unavailable, reason: fault.status, fault.message, closeCode: fault.code, delayMs: delayMs,
            operations: nil, &turn)
        if wasConnecting { tryLater(&turn) }
    }

    // MARK: - Leaving a connection

    /// `operations`: how subscribe operations end; nil keeps them waiting for the next connection.
    mutating func leave(
        to next: ConnectionState, reason: Int32, _ text: String, closeCode: Int32, delayMs: Int64 = -1,
        operations: Fault?, _ turn: inout Turn
    ) {
        let wasConnected = state == .connected
        settleEverythingHeld(&turn)
        transport = nil
        handshakeDue = nil
        liveness.stop()
        network.checkDue = nil
        connectionID = ""
        if next != .unavailable {
            dropPlan(&turn)
        }
        var change = change(to: next, reason: reason, text, closeCode: closeCode, delayMs: delayMs, &turn)
        if next == .unavailable {
            if wasConnected {
                turn.emit(.connectionLost)
            }
            change.attempt &+= 1
            turn.emit(.connectingIn(change))
        }
        unwritten = []
        lastWritten = 0
        unanswered = FewOrMany()
        fence.connectionEnded()
        forgetSubscriptions(operations, &turn)
        forgetIdentity(
            operations
                ?? Fault(
                    BIRD_ERR_LOST, .signin, "The connection was lost before the signin completed.", isRetriable: true),
            &turn)
    }

    @discardableResult
    private mutating func change(
        to next: ConnectionState, reason: Int32, _ text: String, closeCode: Int32, delayMs: Int64, _ turn: inout Turn
    ) -> StateChange {
        let change = StateChange(
            previous: state, current: next, reason: reason, reasonText: text, closeCode: closeCode, attempt: attempts,
            delayMs: delayMs, policy: delayMs < 0 ? nil : configuration.reconnect, connectionID: connectionID)
        state = next
        turn.emit(.state(change))
        return change
    }
}
