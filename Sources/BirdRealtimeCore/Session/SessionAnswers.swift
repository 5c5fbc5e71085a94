import CBirdRealtimeABI

/// Which frame an answer of the edge answers, and what becomes of answers that nobody waits for (`Asked`, `AnswerFence`).
extension Session {
    /// How long a success may still overtake an error that looks like the answer.
    private static var blameDelayMs: Int64 { 2_000 }

    // MARK: - Leaving

    /// Tells the edge that the program has left the channel, if it can be told now. False: the channel is owed.
    mutating func leave(_ slot: Int, _ turn: inout Turn) -> Bool {
        let asked = channels[slot].admission.asked
        if asked.frames == 0, channels[slot].isSubscribed {
            send(OutboundMessage.unsubscribe(channel: channels[slot].name, dialect: dialect), as: .leave, &turn)
            return true
        }
        // What was refused, as far as anybody knows, may have been confirmed.
        return asked.order == 0
    }

    /// The program has left the channel, and the edge has yet to answer.
    mutating func owe(_ slot: Int, wasSubscribed: Bool, _ turn: inout Turn) {
        var asked = channels[slot].admission.asked
        asked.isInherited = true
        asked.isHeld = asked.isHeld || wasSubscribed
        asked.next = nil
        if channels.owed.count >= ChannelTable.owedMax, let first = channels.owed.first { forget(first) }
        channels.owe(slot, asked)
        if asked.isHeld { awaitLastAnswer(slot, &turn) }
    }

    /// The edge holds the channel, and a frame is still without an answer.
    private mutating func awaitLastAnswer(_ slot: Int, _ turn: inout Turn) {
        // One that waits for the authorizer has no deadline, and keeps its place.
        if channels[slot].admission.due == nil, channels[slot].admission.phase != .queued {
            setDeadline(of: .channel(slot), turn.now + configuration.answerTimeoutMs)
        }
        pingIfNeeded(&turn)
    }

    private mutating func forget(_ slot: Int) {
        unanswered[.channel(slot)] = nil
        channels.remove(slot)
    }

    // MARK: - Subscribing again

    /// The channel is subscribed again before a frame of an earlier holder has its answer.
    mutating func inherit(_ slot: Int, _ credentials: Credentials, _ turn: inout Turn) {
        let asked = channels[slot].admission.asked
        if !asked.isHeld, credentials.areSame(as: asked.sent) {
            channels[slot].admission.asked.isInherited = false
            grant(slot, credentials)
        } else {
            channels[slot].admission.asked.next = credentials
        }
        let isWritten = asked.order <= lastWritten
        enter(.pending, .channel(slot), due: isWritten ? turn.now + configuration.answerTimeoutMs : nil, &turn)
    }

    /// What the program may read of its subscription, and the key of its events.
    mutating func grant(_ slot: Int, _ credentials: Credentials) {
        if channels[slot].kind == .presence {
            channels[slot].grantedMemberID = credentials.memberData.flatMap {
                Payload.memberID(inMemberData: $0, dialect)
            }
        }
        if channels[slot].kind == .encrypted {
            encryptions[slot] = ChannelEncryption(key: credentials.sharedSecret)
        }
    }

    /// The edge has answered a frame of a holder that has left, or will not.
    mutating func settleInherited(_ slot: Int, _ turn: inout Turn) {
        let asked = channels[slot].admission.asked
        guard asked.frames == 0 else {
            if asked.isHeld { awaitLastAnswer(slot, &turn) }
            return
        }
        if asked.isHeld {
            send(OutboundMessage.unsubscribe(channel: channels[slot].name, dialect: dialect), as: .leave, &turn)
            channels[slot].admission.asked.isHeld = false
            channels[slot].admission.asked.order = 0
        }
        guard channels[slot].isWanted else {
            // A success that comes all the same will find it.
            if channels[slot].admission.asked.order == 0 { forget(slot) }
            return
        }
        if let next = asked.next { ask(.channel(slot), next, &turn) }
    }

    /// The time for the answer to a frame of a holder that has left is over.
    mutating func answerIsMissing(_ applicant: Applicant, _ turn: inout Turn) {
        guard case .channel(let slot) = applicant else { return }
        let asked = channels[slot].admission.asked
        if asked.isHeld {
            if fence.isTrusted || asked.order > lastWritten {
                setDeadline(of: applicant, turn.now + configuration.answerTimeoutMs)
                sendPing(&turn)
            } else {
                settle(applicant, refusal: nil, &turn)
            }
        } else if let next = asked.next {
            ask(applicant, next, &turn)
        }
    }

    // MARK: - Answers

    /// A success or a refusal of this applicant. False: nothing that was asked accounts for it.
    mutating func answerCame(_ applicant: Applicant, isSuccess: Bool) -> Bool {
        let asked = self[applicant].asked
        guard asked.order > 0, asked.firstOrder <= lastWritten else { return false }
        if self[applicant].phase != .admitted, hasPassed(asked) { fence.orderIsBroken() }
        if isSuccess, self[applicant].asked.takeBackGuess() {
            // The guess may have been right all the same: no error is taken for the answer to the frame of now.
            if unanswered[applicant] != nil { unanswered[applicant] = Instant(milliseconds: 0) }
            return true
        }
        // A frame that is still to be written gets an answer of its own.
        if asked.frames > 1 || asked.order <= lastWritten { self[applicant].asked.answered() }
        noteAnswered(applicant)
        return true
    }

    /// The time for the answer is over, and an error is taken for it.
    mutating func guessAnswer(_ applicant: Applicant) {
        self[applicant].asked.answeredByGuess()
        noteAnswered(applicant)
    }

    private mutating func noteAnswered(_ applicant: Applicant) {
        if self[applicant].asked.frames == 0 { unanswered[applicant] = nil }
    }

    // MARK: - Errors

    /// A `bird:error` names no channel. A pong tells what it answers; from an edge that does not answer pings, or not in the order of the
    /// frames, it is taken for an answer if exactly one is due, and a success may overtake it.
    mutating func blame(for error: Fault, _ turn: inout Turn) {
        guard !unanswered.isEmpty else { return }
        pingIfNeeded(&turn)
        fence.add(error, lastWritten: lastWritten, answersDue: unanswered.count, until: liveness.pinged)
        guard !fence.isTrusted, let applicant = unanswered.onlyKey(where: { $0 > turn.now }),
            self[applicant].phase == .pending, !self[applicant].asked.isInherited, self[applicant].cause == nil,
            // A frame that is still to be written gets an answer of its own.
            self[applicant].asked.order <= lastWritten
        else { return }
        let due = turn.now + Self.blameDelayMs
        self[applicant].cause = refusal(of: applicant, error)
        setDeadline(of: applicant, min(self[applicant].due ?? due, due))
    }

    private mutating func pingIfNeeded(_ turn: inout Turn) {
        if fence.needsPing(pinged: liveness.pinged, ponged: liveness.ponged) { sendPing(&turn) }
    }

    /// What was sent before the ping has its answer, if the edge answers in order.
    mutating func settlePassed(_ turn: inout Turn) {
        guard fence.answersInOrder else { return }
        let passed = unanswered.keys.filter { hasPassed(self[$0].asked) }
            .sorted { self[$0].asked.order < self[$1].asked.order }
        // A repetition that has no answer while the channel is subscribed was more likely ignored than refused.
        let repeated = passed.filter { self[$0].phase == .admitted }
        let open = passed.filter { self[$0].phase != .admitted }
        let refused = fence.errorCount > open.count ? passed : open
        let refusals = fence.refusals(of: refused.map { self[$0].asked }, ponged: liveness.ponged)
        for (applicant, refusal) in zip(refused, refusals) where unanswered[applicant] != nil {
            settle(applicant, refusal: refusal, &turn)
        }
        for applicant in repeated where unanswered[applicant] != nil {
            settle(applicant, refusal: nil, &turn)
        }
        if fence.hasErrors { sendPing(&turn) }
    }

    /// A ping that was sent behind it has its pong. One that comes before the frame is written came unasked.
    private func hasPassed(_ asked: Asked) -> Bool {
        asked.order > 0 && asked.order <= lastWritten && asked.ping < liveness.ponged
    }

    /// No answer will come but this one. nil: the edge has ignored the question.
    private mutating func settle(_ applicant: Applicant, refusal error: Fault?, _ turn: inout Turn) {
        self[applicant].asked.allAnswered()
        noteAnswered(applicant)
        if case .channel(let slot) = applicant, self[applicant].asked.isInherited {
            settleInherited(slot, &turn)
        } else if let error, self[applicant].phase == .pending || self[applicant].phase == .waiting {
            deny(applicant, refusal(of: applicant, error), &turn)
        }
    }

    private func refusal(of applicant: Applicant, _ error: Fault) -> Fault {
        Fault(
            BIRD_ERR_DENIED, area(of: applicant), "The edge refused \(title(of: applicant)): \(error.message)",
            code: error.code)
    }
}
