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
}

/// From the plan to the next attempt, which the program may put off or refuse (option may_reconnect).
extension Session {
    private static var consentDelayMs: Int64 { 1_000 }

    mutating func planAttempt(after cause: Fault, delayMs: Int64, _ turn: inout Turn) {
        planned = PlannedAttempt(
            due: turn.now + delayMs, permission: configuration.asksBeforeReconnect ? .needed : .given, cause: cause)
    }

    /// Nothing is planned any more; an open question is withdrawn.
    mutating func dropPlan(_ turn: inout Turn) {
        if case .asked(let id) = planned?.permission {
            turn.effects.append(.withdraw(id))
        }
        planned = nil
    }

    mutating func attemptDue(_ plan: PlannedAttempt, _ turn: inout Turn) {
        guard plan.permission == .needed else {
            reconnect(&turn)
            return
        }
        let question = ReconnectQuestion(
            id: nextQuestion(), attempt: attempts &+ 1, cause: plan.cause, deadline: turn.now + Self.consentDelayMs)
        planned = PlannedAttempt(due: question.deadline, permission: .asked(question.id), cause: plan.cause)
        turn.effects.append(.askReconnect(question))
    }

    mutating func reconnectAnswered(_ id: QuestionID, _ answer: ReconnectAnswer, _ turn: inout Turn) {
        guard let plan = planned, plan.permission == .asked(id) else { return }
        switch answer {
        case .proceed(let delayMs):
            planned = PlannedAttempt(due: turn.now + delayMs, permission: .given, cause: plan.cause)
            if delayMs == 0 {
                reconnect(&turn)
            } else {
                tellPlan("the program set the delay", delayMs: delayMs, &turn)
            }
        case .refuse(let message):
            attempts &+= 1
            backoff.attemptBegan()
            turn.effects.append(.attemptRefused)
            let delayMs = backoff.delayMs(closeCode: 0, atOnce: false, &turn.random)
            planAttempt(after: plan.cause, delayMs: delayMs, &turn)
            tellPlan("the program refused the attempt: \(message)", delayMs: delayMs, &turn)
        }
    }

    /// The planned attempt begins, whether its time has come or somebody does not want to wait.
    mutating func reconnect(_ turn: inout Turn) {
        backoff.attemptBegan()
        open("reconnecting", &turn)
    }

    private func tellPlan(_ text: String, delayMs: Int64, _ turn: inout Turn) {
        turn.emit(
            .connectingIn(
                StateChange(
                    previous: state, current: state, reason: BIRD_OK, reasonText: text, closeCode: 0,
                    attempt: attempts, delayMs: delayMs, connectionID: "")))
    }
}
