import CBirdRealtimeABI

/// The program's wishes about channels and what the edge says about them (Bird protocol 8, 10, 13 and 14).
extension Session {
    // MARK: - The program's calls

    mutating func subscribe(_ name: String, _ reference: ChannelReference, _ operation: UInt64, _ turn: inout Turn) {
        let slot =
            channels.slot(named: name)
            ?? channels.insert(Subscription(name: name, kind: ChannelKind.of(name), reference: reference))
        let applicant = Applicant.channel(slot)
        switch channels[slot].admission.phase {
        case .admitted:
            allowKeyRefresh(slot, &turn)
            complete(operation, applicant, nil, &turn)
            return
        case .waiting where channels[slot].admission.isFailureReported, .denied, .idle:
            channels[slot].admission.renew()
            joinWhilePossible(applicant, operation, &turn)
            if state == .connected {
                begin(applicant, &turn)
            }
        case .waiting, .queued, .authorizing, .pending:
            channels[slot].admission.renew()
            join(applicant, operation, &turn)
        }
    }

    /// Where no connection is to be expected an operation would wait for ever.
    private mutating func joinWhilePossible(_ applicant: Applicant, _ operation: UInt64, _ turn: inout Turn) {
        switch state {
        case .initialized, .connecting, .connected, .unavailable:
            join(applicant, operation, &turn)
        case .disconnected:
            complete(
                operation, applicant,
                Fault(
                    BIRD_ERR_STATE, .connection,
                    "The client is disconnected: the channel is subscribed once connect is called."), &turn)
        case .failed:
            complete(
                operation, applicant,
                Fault(
                    BIRD_ERR_REFUSED, .connection,
                    "The edge refused the connection: the channel is subscribed once connect succeeds."), &turn)
        }
    }

    mutating func unsubscribe(_ reference: ChannelReference, _ turn: inout Turn) {
        guard let slot = channels.slot(of: reference), channels[slot].kind != .member else { return }
        remove(slot, .unsubscribed, &turn)
    }

    /// Ends a channel. `end`: what other threads are told.
    mutating func remove(_ slot: Int, _ end: ChannelState, _ turn: inout Turn) {
        let channel = channels[slot]
        if channel.isHeldByEdge {
            leave(channel, &turn)
        }
        // No state in between: what follows says the last.
        channels[slot].publicState = .idle
        enter(.idle, .channel(slot), &turn)
        completeOperations(
            of: .channel(slot),
            Fault(BIRD_ERR_UNSUBSCRIBED, .channel, "\(channel.name) was unsubscribed before the answer."), &turn)
        channels.remove(slot)
        turn.effects.append(.channelState(channel.reference, end))
    }

    /// Tells the edge that nobody wants the channel any more, or will tell it.
    private mutating func leave(_ channel: Subscription, _ turn: inout Turn) {
        let frames = channel.admission.unansweredFrames
        if dialect.defersUnsubscribe, frames > 0, departures.owe(channel.name, frames: frames) { return }
        send(OutboundMessage.unsubscribe(channel: channel.name, dialect: dialect), as: .leave, &turn)
        departures.add(channel.name, frames: frames)
    }

    mutating func trigger(_ reference: ChannelReference, _ event: String, _ data: [UInt8]?, _ turn: inout Turn) {
        guard let slot = channels.slot(of: reference), channels[slot].isSubscribed,
            channels[slot].kind.allowsClientEvents
        else {
            turn.effects.append(.clientEventLost)
            return
        }
        send(OutboundMessage.clientEvent(event, channel: channels[slot].name, data: data), as: .clientEvent, &turn)
    }

    // MARK: - The edge's answers

    /// A success for this name, which need not be one that anybody waits for.
    mutating func confirmed(_ name: String, _ data: InboundMessage.Data, _ turn: inout Turn) {
        let confirmation = departures.confirm(name)
        guard let slot = channels.slot(named: name), channels[slot].hasAskedEdge else {
            // The edge holds what nobody has asked for any more, and may not have been told, or not have listened.
            if confirmation != .late {
                send(OutboundMessage.unsubscribe(channel: name, dialect: dialect), &turn)
            }
            if confirmation == .doubtful {
                departures.expectError(name)
            }
            return
        }
        let isDenied = channels[slot].admission.phase == .denied
        switch confirmation {
        case .late where isDenied, .doubtful where isDenied:
            // The error that denied it may have been another's, and the edge keeps nothing that the program is not told of.
            send(OutboundMessage.unsubscribe(channel: name, dialect: dialect), &turn)
            departures.expectError(name)
        case .late:
            channels[slot].admission.hasDoubtfulSuccess = !channels[slot].isSubscribed
            // An edge answers the frames of a channel one after the other: the time for the next begins now.
            if channels[slot].admission.phase == .pending, unanswered[.channel(slot)] != nil {
                setDeadline(of: .channel(slot), turn.now + configuration.answerTimeoutMs)
            }
        case .doubtful where !channels[slot].isSubscribed && unanswered[.channel(slot)] == nil:
            // The holder's own question is not even written, and the edge is told to forget the others before it.
            break
        case .doubtful where !channels[slot].isSubscribed:
            // One of the frames is answered, and nobody knows which.
            channels[slot].admission.unansweredFrames += 1
            subscriptionSucceeded(slot, data, &turn)
        case .expected, .doubtful, .owed:
            subscriptionSucceeded(slot, data, &turn)
        }
    }

    mutating func subscriptionSucceeded(_ slot: Int, _ data: InboundMessage.Data, _ turn: inout Turn) {
        let isPresence = channels[slot].kind == .presence
        if channels[slot].isSubscribed, !isPresence { return }
        admitted(.channel(slot), &turn)
        let members = isPresence ? Payload.members(data) : nil
        channels[slot].roster = members
        let channel = channels[slot]
        channels[slot].wasSubscribed = true
        channels[slot].interruptedSince = nil
        // Lifecycle events of the member channel are nobody's business (Bird protocol 11.2).
        if channel.kind != .member {
            turn.emit(
                .subscribed(
                    channel.reference, data: data, members: members?.separated(),
                    myID: isPresence ? channel.grantedMemberID ?? memberID : nil,
                    isResubscribe: channel.wasSubscribed,
                    interruptedMs: channel.interruptedSince.map { turn.now - $0 } ?? 0))
        }
        completeOperations(of: .channel(slot), nil, &turn)
        if let members, members.leftOut > 0 { tellCutRoster(slot, &turn) }
    }

    /// Once for each subscription.
    private mutating func tellCutRoster(_ slot: Int, _ turn: inout Turn) {
        guard !channels[slot].hasToldCutRoster else { return }
        channels[slot].hasToldCutRoster = true
        turn.emit(
            .error(
                Fault(
                    BIRD_ERR_SIZE, .channel, field: "members",
                    "Members of \(channels[slot].name) are missing in its roster: it holds \(Roster.membersMax) members and "
                        + "\(Roster.bytesMax) bytes of ids and infos.")))
    }

    /// `subscription_error`: the edge does not send it today.
    mutating func refused(_ name: String, _ data: InboundMessage.Data, _ turn: inout Turn) {
        let isLate = departures.confirm(name) == .late
        guard !isLate, let slot = channels.slot(named: name) else { return }
        channels[slot].admission.unansweredFrames = max(0, channels[slot].admission.unansweredFrames - 1)
        settleHeld(slot, &turn)
        let error = Payload.error(data)
        let detail = error.message.map { ": \($0)" } ?? "."
        deny(
            .channel(slot),
            Fault(
                BIRD_ERR_DENIED, .channel, "The edge refused \(title(of: .channel(slot)))\(detail)", code: error.code),
            data: data, &turn)
    }

    // MARK: - Presence

    mutating func memberAdded(_ slot: Int, _ data: InboundMessage.Data, _ turn: inout Turn) {
        guard let member = Payload.member(data, dialect) else { return }
        guard channels[slot].roster?.add(member) != false else {
            tellCutRoster(slot, &turn)
            return
        }
        turn.emit(.memberAdded(channels[slot].reference, member))
    }

    mutating func memberRemoved(_ slot: Int, _ data: InboundMessage.Data, _ turn: inout Turn) {
        guard let id = Payload.member(data, dialect)?.id,
            let member = channels[slot].roster?.remove(id: id)
        else { return }
        turn.emit(.memberRemoved(channels[slot].reference, member))
    }

    // MARK: - The end of a connection

    /// Channels stay wanted and are idle. `fault` ends their operations; nil keeps those waiting.
    mutating func forgetSubscriptions(_ fault: Fault?, _ turn: inout Turn) {
        for slot in channels.allSlots where channels.isUsed(slot) {
            enter(.idle, .channel(slot), &turn)
            channels[slot].admission.forgetConnection()
            channels[slot].grantedMemberID = nil
            channels[slot].roster = nil
            channels[slot].hasToldCutRoster = false
            if let fault {
                completeOperations(of: .channel(slot), fault, &turn)
            }
            if channels[slot].kind == .member {
                channels.remove(slot)
            }
        }
    }
}
