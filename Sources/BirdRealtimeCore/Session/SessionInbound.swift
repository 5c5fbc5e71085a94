import CBirdRealtimeABI

/// Sorts the edge's messages (Bird protocol 5.2 and 5.3).
extension Session {
    private static var clientEventLimitCode: Int32 { 4301 }
    private static var watchlistLimitCode: Int32 { 4302 }

    mutating func receive(_ message: InboundMessage, _ turn: inout Turn) {
        if message.isCut { tellCut(message, &turn) }
        if let channel = message.channel {
            receive(message, on: channel, &turn)
        } else {
            receiveOnConnection(message, &turn)
        }
    }

    /// Once for each connection.
    private mutating func tellCut(_ message: InboundMessage, _ turn: inout Turn) {
        guard !hasToldCut else { return }
        hasToldCut = true
        turn.emit(
            .error(
                Fault(
                    BIRD_ERR_SIZE, .connection, field: "data",
                    "The edge sent \(EdgeText.cut(message.event)) with more than "
                        + "\(InboundMessage.dataBytesMax(of: message.event, dialect)) bytes of data: only the beginning is read."
                )))
    }

    private mutating func receiveOnConnection(_ message: InboundMessage, _ turn: inout Turn) {
        switch message.event {
        case dialect.connectionEstablished:
            handshakeCame(Payload.handshake(message.data, dialect), &turn)
        case dialect.ping where state == .connected:
            send(OutboundMessage.pong(dialect: dialect), as: .pong, &turn)
        case dialect.pong where state == .connected:
            pongCame(&turn)
        case dialect.error:
            edgeReported(Payload.error(message.data), &turn)
        case dialect.signinSuccess where state == .connected:
            signinSucceeded(message.data, &turn)
        case dialect.watchlistEvents where state == .connected:
            watchlistCame(message.data, &turn)
        default:
            if let other = Dialect.greeting(message.event) { handshakeCame(of: other, &turn) }
        }
    }

    private mutating func pongCame(_ turn: inout Turn) {
        guard liveness.pongCame() != nil else { return }
        turn.note(.ponged(isLast: liveness.isEveryPingAnswered))
        settlePassed(&turn)
    }

    private mutating func receive(_ message: InboundMessage, on channel: String, _ turn: inout Turn) {
        guard state == .connected else { return }
        switch message.event {
        case dialect.internalSubscriptionSucceeded:
            confirmed(channel, message.data, &turn)
        case dialect.internalSubscriptionError, dialect.subscriptionError:
            refused(channel, message.data, &turn)
        case dialect.error:
            edgeReported(message.data, on: channel, &turn)
        default:
            guard let slot = channels.slot(named: channel), channels[slot].isSubscribed else { return }
            receive(message, onSubscribed: slot, &turn)
        }
    }

    private mutating func receive(_ message: InboundMessage, onSubscribed slot: Int, _ turn: inout Turn) {
        let kind = channels[slot].kind
        // The member channel carries nothing but what applications send (Bird protocol 11.2).
        if kind == .member, EventName.isReserved(message.event, dialect: dialect) { return }
        switch message.event {
        case dialect.internalMemberAdded where kind == .presence:
            memberAdded(slot, message.data, &turn)
        case dialect.internalMemberRemoved where kind == .presence:
            memberRemoved(slot, message.data, &turn)
        case dialect.internalConnectionCount:
            guard Payload.hasConnectionCount(message.data, dialect) else { return }
            turn.emit(.connectionCount(channels[slot].reference, message.data))
        case _ where message.event.utf8.starts(with: dialect.internalPrefix.utf8):
            break
        case _ where kind == .encrypted && !EventName.isReserved(message.event, dialect: dialect):
            receiveSealed(slot, message.event, message.data, &turn)
        default:
            let sender = EventName.isClientEvent(message.event) ? message.sender : nil
            turn.emit(
                .channelEvent(channels[slot].reference, event: message.event, data: message.data, sender: sender))
        }
    }

    /// Each entry stands for itself: what is wrong with one does not concern the others.
    private func watchlistCame(_ data: InboundMessage.Data, _ turn: inout Turn) {
        let watchlist = Payload.watchlist(data, dialect)
        for entry in watchlist.entries { turn.emit(.watchlist(entry.name, memberIDs: entry.ids)) }
        if watchlist.malformed > 0 { turn.effects.append(.watchlistEntriesMalformed(watchlist.malformed)) }
    }

    private mutating func edgeReported(_ error: Payload.EdgeError, _ turn: inout Turn) {
        let fault = Self.fault(error, .connection)
        if dialect.refusesByError, state == .connecting, let code = UInt16(exactly: error.code), 4000...4999 ~= code {
            attemptRefused(code, fault, &turn)
            return
        }
        edgeErrorCode = error.code
        turn.emit(.error(fault))
        if Self.mayAnswer(error) { blame(for: fault, &turn) }
    }

    /// Some servers name the channel (Bird protocol 23.5). What waits for its answer is refused by it; what is subscribed stays so.
    private mutating func edgeReported(_ data: InboundMessage.Data, on channel: String, _ turn: inout Turn) {
        let error = Payload.error(data)
        let slot = channels.slot(named: channel)
        var fault = Self.fault(error, .channel)
        // What no channel can be called is not passed on as one.
        fault.channel = channel.utf8.count <= EventName.charactersMax ? channel : ""
        let told = slot.map { channels[$0] }.flatMap { $0.kind == .member ? nil : $0.reference }
        turn.emit(.channelError(told ?? .none, data: data, fault))
        guard Self.mayAnswer(error), let slot, isUndecided(slot) else { return }
        refused(channel, data, isCertain: false, &turn)
    }

    /// A subscribe has been written, and neither its success nor its refusal has come. A pong may have passed the answer:
    /// one that nobody asked for, or that of an edge that does not answer in order.
    private func isUndecided(_ slot: Int) -> Bool {
        let admission = channels[slot].admission
        return admission.asked.order > 0 && admission.asked.firstOrder <= lastWritten
            && admission.phase != .admitted && admission.phase != .denied && !admission.asked.isHeld
    }

    private static func fault(_ error: Payload.EdgeError, _ area: Fault.Area) -> Fault {
        Fault(
            BIRD_ERR_SERVER, area, error.message ?? "The edge reported an error without a message.", code: error.code)
    }

    /// Limits of client events and of watchlists say nothing about a subscribe or a signin.
    private static func mayAnswer(_ error: Payload.EdgeError) -> Bool {
        error.code != clientEventLimitCode && error.code != watchlistLimitCode
    }
}
