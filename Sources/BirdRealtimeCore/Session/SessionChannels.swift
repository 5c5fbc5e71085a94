import CBirdRealtimeABI

/// The program's wishes about channels and what the edge says about them (Bird protocol 8, 10, 13 and 14).
extension Session {
    // MARK: - The program's calls

    mutating func subscribe(_ name: String, _ reference: ChannelReference, _ operation: UInt64, _ turn: inout Turn) {
        let slot = channels.hold(name, ChannelKind.of(name), reference)
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
        let isSettled = leave(slot, &turn)
        // No state in between: what follows says the last.
        channels[slot].publicState = .idle
        enter(.idle, .channel(slot), &turn)
        completeOperations(
            of: .channel(slot),
            Fault(BIRD_ERR_UNSUBSCRIBED, .channel, "\(channel.name) was unsubscribed before the answer."), &turn)
        if isSettled {
            unanswered[.channel(slot)] = nil
            channels.remove(slot)
        } else {
            owe(slot, wasSubscribed: channel.isSubscribed, &turn)
        }
        turn.effects.append(.channelState(channel.reference, end))
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

    /// A success for this name, which need not be one that anybody has asked for.
    mutating func confirmed(_ name: String, _ data: InboundMessage.Data, _ turn: inout Turn) {
        guard let slot = channels.slot(named: name), answerCame(.channel(slot), isSuccess: true) else { return }
        if channels[slot].admission.asked.isInherited {
            channels[slot].admission.asked.isHeld = true
            settleInherited(slot, &turn)
        } else {
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
                    channel.reference, data: data, members: members,
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
    /// `isCertain` false: it may have been about an earlier subscription of this name, and a success may follow.
    mutating func refused(
        _ name: String, _ data: InboundMessage.Data, isCertain: Bool = true, _ turn: inout Turn
    ) {
        guard let slot = channels.slot(named: name) else { return }
        let isSurplus = channels[slot].isSubscribed && channels[slot].admission.asked.frames > 0
        let isAnswer = answerCame(.channel(slot), isSuccess: false)
        // The edge refuses a frame for what it holds already, or the last one is still to be written.
        if isSurplus || channels[slot].admission.asked.order > lastWritten { return }
        if isCertain { channels[slot].admission.asked.refusedByName() }
        guard !channels[slot].admission.asked.isInherited else {
            if isAnswer { settleInherited(slot, &turn) }
            return
        }
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
            guard channels[slot].isWanted else {
                channels.remove(slot)
                continue
            }
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
