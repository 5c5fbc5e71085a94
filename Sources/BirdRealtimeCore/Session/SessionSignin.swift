import CBirdRealtimeABI

/// The wish to be somebody, and the answer of this connection.
struct Signin: Sendable {
    /// Set by the first call: every later connection signs in by itself.
    var isArmed = false
    var admission = Admission()
    /// As the edge sent it.
    var memberData: String?
    /// A refresh was asked for after the present round had asked the authorizer: another round with these operations follows.
    var nextRound: [UInt64]?
}

/// Signin and the member channel (Bird protocol 11).
extension Session {
    mutating func signIn(refresh: Bool, _ operation: UInt64, _ turn: inout Turn) {
        guard state != .failed, state != .disconnected else {
            complete(
                operation, .signin,
                Fault(
                    BIRD_ERR_STATE, .signin, "A signin needs a live connection: call connect first."), &turn)
            return
        }
        signin.isArmed = true
        guard state == .connected else {
            join(.signin, operation, &turn)
            return
        }
        switch signin.admission.phase {
        case .admitted where !refresh:
            joinMemberChannel(&turn)
            complete(operation, .signin, nil, memberData: signin.memberData, &turn)
        case .authorizing where refresh, .pending where refresh:
            signin.admission.renew()
            var nextRound = signin.nextRound ?? []
            join(.signin, &nextRound, operation, &turn)
            signin.nextRound = nextRound
        case .waiting where signin.admission.isFailureReported, .idle, .denied, .admitted:
            signin.admission.renew()
            join(.signin, operation, &turn)
            begin(.signin, &turn)
        case .waiting, .queued, .authorizing, .pending:
            signin.admission.renew()
            join(.signin, operation, &turn)
        }
    }

    mutating func signinSucceeded(_ data: InboundMessage.Data, _ turn: inout Turn) {
        let isSurplus = signin.admission.phase == .admitted && signin.admission.asked.frames > 0
        guard answerCame(.signin, isSuccess: true), !isSurplus else { return }
        if signin.admission.asked.frames == 0 { signin.admission.asked.order = 0 }
        guard let identity = Payload.identity(data, dialect) else {
            deny(
                .signin,
                Fault(
                    BIRD_ERR_IDENTITY, .signin, field: dialect.identityIDKey,
                    "Signin succeeded without a \(dialect.identityIDKey)."), &turn)
            return
        }
        admitted(.signin, &turn)
        signin.memberData = identity.memberData
        if memberID != identity.member.id {
            memberID = identity.member.id
            turn.effects.append(.identity(memberID: memberID))
        }
        joinMemberChannel(&turn)
        turn.emit(.signedIn(identity.member, memberData: identity.memberData))
        completeOperations(of: .signin, nil, memberData: identity.memberData, &turn)
        signinRoundEnded(&turn)
    }

    /// Makes sure that the member channel is there or on its way.
    private mutating func joinMemberChannel(_ turn: inout Turn) {
        guard let memberID else { return }
        let name = ChannelName.ofMember(memberID)
        if let slot = channels.slot(of: memberChannel) {
            switch channels[slot].admission.phase {
            case _ where channels[slot].name != name: remove(slot, .idle, &turn)
            case .denied, .waiting, .idle:
                begin(.channel(slot), &turn)
                return
            case .queued, .authorizing, .pending, .admitted: return
            }
        }
        let slot = channels.hold(name, .member, memberChannel)
        begin(.channel(slot), &turn)
    }

    mutating func signinRoundEnded(_ turn: inout Turn) {
        guard let operations = signin.nextRound else { return }
        signin.nextRound = nil
        signin.admission.operations += operations
        signin.admission.renew()
        begin(.signin, &turn)
    }

    /// The connection has gone; the wish stays.
    mutating func forgetIdentity(_ fault: Fault, _ turn: inout Turn) {
        enter(.idle, .signin, &turn)
        signin.admission.forgetConnection()
        signin.admission.operations += signin.nextRound ?? []
        signin.nextRound = nil
        signin.memberData = nil
        if memberID != nil {
            memberID = nil
            turn.effects.append(.identity(memberID: nil))
        }
        completeOperations(of: .signin, fault, &turn)
    }
}
