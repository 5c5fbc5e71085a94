import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// Connection attempts as an application counts them, and who has agreed to them.
struct Attempts {
    /// Since the last handshake or own call.
    private(set) var count: Int32 = 0
    /// Those among them that the session planned by itself.
    private(set) var plannedInVain = 0
    /// The planned attempt begins not before.
    private(set) var plannedFor: Int64 = 0
    /// The edge has asked not to be dialled before.
    private(set) var leftAloneUntil: Int64 = 0
    private(set) var began: Int64 = 0
    private(set) var openQuestion: QuestionID?
    /// From when on the application agrees to an attempt; it does not before it has asked for one or been asked.
    private var agreesFrom = Int64.max
    private(set) var refusals = 0
    private var isOwnCall = false
    var waits = Waits()

    /// The program calls; no one has to agree. `isFirst`: of a new schedule.
    mutating func ownCallBegins(isFirst: Bool) {
        agreesFrom = .min
        isOwnCall = true
        if isFirst { forget() }
    }

    mutating func ownCallEnded() throws {
        isOwnCall = false
        agreesFrom = .max
        try require(openQuestion == nil, "asks about an attempt that the application has called for")
    }

    mutating func forget() {
        count = 0
        plannedInVain = 0
        waits.scheduleBegan()
    }

    mutating func asked(_ question: ReconnectQuestion) throws {
        try require(openQuestion == nil, "asks twice about one attempt")
        openQuestion = question.id
        agreesFrom = question.deadline.milliseconds
    }

    mutating func withdrawn() { openQuestion = nil }

    mutating func answered(_ answer: ReconnectAnswer, _ now: Int64) {
        openQuestion = nil
        switch answer {
        case .proceed(let delayMs): agreesFrom = now + delayMs
        case .refuse: agreesFrom = .max
        }
    }

    mutating func refused() {
        refusals += 1
        count += 1
        plannedInVain += 1
    }

    mutating func planned(
        _ plan: StateChange, after input: SessionInput, _ configuration: SessionConfiguration, _ dialect: Dialect,
        _ now: Int64
    ) throws {
        try require(plan.attempt == count + 1, "announces attempt \(plan.attempt), \(count) have been")
        try waits.check(
            plan, after: input, inVain: plannedInVain, restMs: max(0, leftAloneUntil - now), configuration, dialect, now
        )
        plannedFor = now + plan.delayMs
    }

    mutating func leaveAlone(until time: Int64) { leftAloneUntil = time }

    mutating func begin(_ now: Int64, needsConsent: Bool) throws {
        try require(!needsConsent || now >= agreesFrom, "dials though the application may refuse")
        try require(isOwnCall || now >= plannedFor, "dials \(plannedFor - now) ms before it said that it would")
        try require(isOwnCall || now >= leftAloneUntil, "dials \(leftAloneUntil - now) ms before the edge wants it")
        leftAloneUntil = 0
        agreesFrom = .max
        began = now
        waits.attemptBegan()
    }

    mutating func follow(_ change: StateChange, attemptsMax: Int) throws {
        switch change.current {
        case .connecting:
            count += 1
            plannedInVain += isOwnCall ? 0 : 1
        case .connected: forget()
        case .disconnected where change.reason == BIRD_ERR_GAVE_UP:
            try require(
                attemptsMax > 0 && plannedInVain >= attemptsMax,
                "gives up after \(plannedInVain) attempts of \(attemptsMax)")
            waits.forget()
        case .initialized, .unavailable, .disconnected, .failed: break
        }
        try require(change.attempt == count, "says attempt \(change.attempt), it is \(count)")
    }

    mutating func jump(_ ms: Int64) { began += ms }
}
