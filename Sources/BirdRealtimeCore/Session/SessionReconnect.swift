import CBirdRealtimeABI

/// The attempt that follows a failed one or a lost connection.
struct PlannedAttempt: Sendable {
    enum Permission: Equatable, Sendable {
        case needed
        case asked(QuestionID)
        case given
    }

    /// When it begins, or the program is asked, or its silence counts as consent.
    var due: Instant
    var permission: Permission
    /// Why it is needed.
    var cause: Fault
    /// When what came before it ended: the delay counts from there.
    var since: Instant
    /// What the delay came from; nil: the program's own word, or a hint about the network.
    var band: Backoff.Band?
    /// Of the delay, what the server asked for. Only the program's own call does not wait for it.
    var retryAfterMs: Int64

    var earliest: Instant { since + retryAfterMs }
}

/// From the plan to the next attempt, which the program may put off or refuse (option may_reconnect), and the end of trying.
extension Session {
    private static var consentDelayMs: Int64 { 1_000 }

    /// What came before it ends now. Gives the delay.
    mutating func planAttempt(
        after cause: Fault, _ band: Backoff.Band, retryAfterMs: Int64 = 0, _ turn: inout Turn
    ) -> Int64 {
        // On top of each other: many clients are refused at once, and must not come back at once.
        let delayMs = retryAfterMs + backoff.delayMs(band, &turn.random)
        planned = PlannedAttempt(
            due: turn.now + delayMs, permission: configuration.asksBeforeReconnect ? .needed : .given, cause: cause,
            since: turn.now, band: band, retryAfterMs: retryAfterMs)
        return delayMs
    }

    /// Nothing is planned any more; an open question is withdrawn.
    mutating func dropPlan(_ turn: inout Turn) {
        if case .asked(let id) = planned?.permission {
            turn.effects.append(.withdraw(id))
        }
        planned = nil
    }

    /// The rules are other ones: the plan is made anew, as if they had held when what came before it ended.
    mutating func planAnew(_ turn: inout Turn) {
        guard var plan = planned, let band = plan.band else { return }
        if case .asked = plan.permission { return }
        plan.due = max(plan.earliest + backoff.delayMs(band, &turn.random), turn.now)
        planned = plan
        tellPlan("the options of reconnects were changed", delayMs: plan.due - turn.now, &turn)
    }

    mutating func attemptDue(_ plan: PlannedAttempt, _ turn: inout Turn) {
        guard plan.permission == .needed else {
            reconnect(&turn)
            return
        }
        let question = ReconnectQuestion(
            id: nextQuestion(), attempt: attempts &+ 1, cause: plan.cause, deadline: turn.now + Self.consentDelayMs)
        planned?.due = question.deadline
        planned?.permission = .asked(question.id)
        turn.effects.append(.askReconnect(question))
    }

    mutating func reconnectAnswered(_ id: QuestionID, _ answer: ReconnectAnswer, _ turn: inout Turn) {
        guard let plan = planned, plan.permission == .asked(id) else { return }
        switch answer {
        case .proceed(let delayMs):
            planned?.due = turn.now + delayMs
            planned?.permission = .given
            planned?.band = nil
            if delayMs == 0 {
                reconnect(&turn)
            } else {
                tellPlan("the program set the delay", delayMs: delayMs, &turn)
            }
        case .refuse(let message):
            planned = nil
            attempts &+= 1
            backoff.attemptBegan()
            turn.effects.append(.attemptRefused)
            guard !backoff.isExhausted else {
                giveUp(after: plan.cause, &turn)
                return
            }
            let delayMs = planAttempt(after: plan.cause, .policy, &turn)
            tellPlan("the program refused the attempt: \(message)", delayMs: delayMs, &turn)
        }
    }

    /// The planned attempt begins, whether its time has come or somebody does not want to wait.
    mutating func reconnect(_ turn: inout Turn) {
        backoff.attemptBegan()
        open("reconnecting", &turn)
    }

    /// Option reconnect_attempts_max. Only the program's connect begins again.
    mutating func giveUp(after cause: Fault, _ turn: inout Turn) {
        var fault = cause
        fault.status = BIRD_ERR_GAVE_UP
        fault.field = "reconnect_attempts_max"
        let plural = backoff.attempts == 1 ? "" : "s"
        fault.message = "gave up after \(backoff.attempts) attempt\(plural): \(cause.message)"
        fault.isRetriable = false
        turn.emit(.error(fault))
        leave(
            to: .disconnected, reason: fault.status, fault.message, closeCode: fault.code, operations: fault, &turn)
        forgetAttempts()
    }

    func tellPlan(_ text: String, delayMs: Int64, _ turn: inout Turn) {
        turn.emit(
            .connectingIn(
                StateChange(
                    previous: state, current: state, reason: BIRD_OK, reasonText: text, closeCode: 0,
                    attempt: attempts &+ 1, delayMs: delayMs, policy: configuration.reconnect, connectionID: "")))
    }
}
