import CBirdRealtimeABI

/// The life of connections: attempts, the handshake, ends and what is planned after them (Bird protocol 4 and 7).
extension Session {
    // MARK: - The program's calls

    mutating func connect(_ turn: inout Turn) {
        switch state {
        case .connecting, .connected: return
        case .unavailable: reconnect(&turn)
        case .initialized, .disconnected, .failed: open("connect was called", &turn)
        }
    }

    mutating func retryNow(_ turn: inout Turn) {
        guard state == .unavailable else { return }
        reconnect(&turn)
    }

    mutating func disconnect(_ turn: inout Turn) {
        guard state != .disconnected else { return }
        if let transport {
            turn.effects.append(.close(transport, code: 1000, reason: "client disconnect", abandon: false))
        }
        backoff.reset()
        attempts = 0
        reportedFailure = nil
        leave(
            to: .disconnected, reason: BIRD_OK, "disconnect was called", closeCode: 0,
            operations: Fault(BIRD_ERR_STATE, .connection, "The connection was ended by disconnect before the answer."),
            &turn)
    }

    // MARK: - Attempts

    mutating func open(_ text: String, _ turn: inout Turn) {
        transports += 1
        let id = TransportID(number: transports)
        transport = id
        transportOpenedAt = nil
        transportStep = ""
        attempts &+= 1
        dropPlan(&turn)
        handshakeDue = turn.now + configuration.connectTimeoutMs
        change(to: .connecting, reason: BIRD_OK, text, closeCode: 0, delayMs: -1, &turn)
        turn.effects.append(.open(id))
    }

    mutating func handshakeCame(_ handshake: Payload.Handshake, _ turn: inout Turn) {
        guard let id = handshake.connectionID else {
            if state == .connecting {
                handshakeLacksID(&turn)
            }
            return
        }
        liveness.handshakeCame(serverTimeoutMs: handshake.activityTimeoutMs, turn.now)
        guard state == .connecting else {
            identifierChanged(to: id, &turn)
            return
        }
        connectionID = id
        transportOpenedAt = transportOpenedAt ?? turn.now
        handshakeDue = nil
        attempts = 0
        reportedFailure = nil
        backoff.handshakeCame()
        change(to: .connected, reason: BIRD_OK, "the handshake came", closeCode: 0, delayMs: -1, &turn)
        beginEverything(&turn)
    }

    /// Answers of authorizers are good for one connection id only: who waits for one asks again.
    private mutating func identifierChanged(to id: String, _ turn: inout Turn) {
        guard connectionID != id else { return }
        connectionID = id
        for applicant in applicants {
            if case .authorizing = self[applicant].phase {
                begin(applicant, &turn)
            }
        }
    }

    private mutating func handshakeLacksID(_ turn: inout Turn) {
        let fault = Fault(
            BIRD_ERR_PROTOCOL, .connection, field: "handshake",
            "Handshake missing connection_id: the server does not speak the Bird protocol. Check ws_host.")
        turn.emit(.error(fault))
        if let transport {
            turn.effects.append(
                .close(transport, code: 4001, reason: "handshake missing connection_id", abandon: false))
        }
        leave(to: .failed, reason: fault.status, fault.message, closeCode: 4001, operations: fault, &turn)
    }

    // MARK: - Ends

    mutating func transportEnded(_ end: TransportEnd, _ turn: inout Turn) {
        switch end {
        case .closed(let code, let reason) where (4000...4099).contains(code):
            let text = reason.isEmpty ? "The edge refused the connection." : reason
            let fault = Fault(BIRD_ERR_REFUSED, .connection, text, code: Int32(code))
            turn.emit(.error(fault))
            leave(to: .failed, reason: fault.status, text, closeCode: fault.code, operations: fault, &turn)
        case .closed(let code, let reason):
            let detail = reason.isEmpty ? "" : ": \(reason)"
            let fault = Fault(
                BIRD_ERR_LOST, .connection, "The edge closed the connection with code \(code)\(detail)",
                code: Int32(code), isRetriable: true)
            retry(after: fault, band: code, &turn)
        case .failed(let fault):
            report(fault, &turn)
            retry(after: fault, atOnce: fault.status == BIRD_ERR_SIZE, &turn)
        }
    }

    mutating func livenessFailed(_ turn: inout Turn) {
        abandonTransport(code: 4200, "activity timeout", &turn)
        let fault = Fault(
            BIRD_ERR_TIMEOUT, .connection, field: "pong_timeout_ms",
            "The edge has not answered a ping for \(configuration.pongTimeoutMs) ms.", isRetriable: true)
        retry(after: fault, atOnce: true, &turn)
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
        retry(after: fault, &turn)
    }

    private mutating func abandonTransport(code: UInt16?, _ reason: String, _ turn: inout Turn) {
        guard let transport else { return }
        turn.effects.append(.close(transport, code: code, reason: reason, abandon: true))
    }

    /// A loss is told by the state. Why attempts fail, or what was wrong with what came, is an error; once in a row of equals.
    private mutating func report(_ fault: Fault, _ turn: inout Turn) {
        if state == .connected, fault.status == BIRD_ERR_LOST { return }
        if let last = reportedFailure, last.status == fault.status, last.field == fault.field,
            last.httpStatus == fault.httpStatus, last.curlCode == fault.curlCode
        {
            return
        }
        reportedFailure = fault
        turn.emit(.error(fault))
    }

    /// `band`: the close code of the edge, 0 if it sent none.
    private mutating func retry(
        after fault: Fault, band: UInt16 = 0, atOnce: Bool = false, _ turn: inout Turn
    ) {
        if let transportOpenedAt {
            backoff.connectionEnded(afterMs: turn.now - transportOpenedAt)
        }
        let delayMs = backoff.delayMs(closeCode: band, atOnce: atOnce, &turn.random)
        planAttempt(after: fault, delayMs: delayMs, &turn)
        leave(
            to: .unavailable, reason: fault.status, fault.message, closeCode: fault.code, delayMs: delayMs,
            operations: nil, &turn)
    }

    // MARK: - Leaving a connection

    /// `operations`: how subscribe operations end; nil keeps them waiting for the next connection.
    private mutating func leave(
        to next: ConnectionState, reason: Int32, _ text: String, closeCode: Int32, delayMs: Int64 = -1,
        operations: Fault?, _ turn: inout Turn
    ) {
        let wasConnected = state == .connected
        transport = nil
        handshakeDue = nil
        liveness.stop()
        connectionID = ""
        if next != .unavailable {
            dropPlan(&turn)
        }
        let change = change(to: next, reason: reason, text, closeCode: closeCode, delayMs: delayMs, &turn)
        if next == .unavailable {
            if wasConnected {
                turn.emit(.connectionLost)
            }
            turn.emit(.connectingIn(change))
        }
        departures.removeAll()
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
            delayMs: delayMs, connectionID: connectionID)
        state = next
        turn.emit(.state(change))
        return change
    }
}
