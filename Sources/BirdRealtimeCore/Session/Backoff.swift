/// How long to wait before the next attempt, and when to give up (Bird protocol 7.1, 7.3 and 24.2): the policy, the bands of
/// close codes, and the guard against connections that keep dying young.
struct Backoff: Sendable {
    /// What the end of a connection or attempt asks for, under every policy.
    enum Band: Equatable, Sendable {
        /// 4200-4299, and ends that say nothing against the edge.
        case atOnce
        /// 4100-4199.
        case overCapacity
        case policy

        init(closeCode: UInt16) {
            switch closeCode {
            case 4200...4299: self = .atOnce
            case 4100...4199: self = .overCapacity
            default: self = .policy
            }
        }
    }

    private enum Wait: Equatable, Sendable {
        case jitter(baseMs: Int64, maxMs: Int64)
        case fixed(Int64)
        case staged(ReconnectStages)
    }

    /// What a plan follows. The program may change it.
    private struct Rules: Equatable, Sendable {
        var wait: Wait
        var hasFlapGuard: Bool

        init(_ configuration: SessionConfiguration) {
            wait =
                switch configuration.reconnect {
                case .jitter: .jitter(baseMs: configuration.backoffBaseMs, maxMs: configuration.backoffMaxMs)
                case .fixed: .fixed(configuration.reconnectDelayMs)
                case .staged: .staged(configuration.reconnectStages)
                }
            hasFlapGuard = configuration.hasFlapGuard
        }
    }

    /// Planned attempts that have begun, or were refused, since the schedule began.
    private(set) var attempts = 0
    /// Those of them from before the waits began anew.
    private var attemptsBefore = 0
    /// Connections in a row that lasted less than `shortLifeMs`.
    private(set) var shortLives = 0
    private var rules: Rules
    private var attemptsMax: Int

    static let shortLifeMs: Int64 = 5_000
    private static let overCapacityFloorMs: Int64 = 1_000
    private static let shortLivesFree = 2
    private static let flapBaseMs: Int64 = 2_000
    private static let flapMaxMs: Int64 = 30_000

    init(_ configuration: SessionConfiguration) {
        rules = Rules(configuration)
        attemptsMax = configuration.reconnectAttemptsMax
    }

    /// False: what is planned is as before.
    mutating func configure(_ configuration: SessionConfiguration) -> Bool {
        attemptsMax = configuration.reconnectAttemptsMax
        let changed = Rules(configuration)
        defer { rules = changed }
        return rules != changed
    }

    /// As many planned attempts as the program wants were in vain.
    var isExhausted: Bool { attemptsMax > 0 && attempts >= attemptsMax }

    mutating func attemptBegan() {
        attempts += 1
    }

    /// A handshake came, or the program itself connects: the schedule begins again.
    mutating func restart() {
        attempts = 0
        attemptsBefore = 0
    }

    /// What failed so far says nothing about what will: the waits begin anew, but attempts in vain are that all the same.
    mutating func beginWaitsAnew() {
        attemptsBefore = attempts
    }

    mutating func connectionEnded(afterMs lifeMs: Int64) {
        shortLives = lifeMs < Self.shortLifeMs ? shortLives + 1 : 0
    }

    mutating func reset() {
        restart()
        shortLives = 0
    }

    /// From the end of the attempt or connection before.
    func delayMs(_ band: Band, _ random: inout SplitMix64) -> Int64 {
        let delayMs: Int64 =
            switch (band, rules.wait) {
            case (.atOnce, _): 0
            case (.overCapacity, .jitter(_, let maxMs)):
                min(maxMs, Self.overCapacityFloorMs + waitMs(&random))
            case (.overCapacity, _): max(Self.overCapacityFloorMs, waitMs(&random))
            case (.policy, _): waitMs(&random)
            }
        return max(delayMs, guardMs(&random))
    }

    private func waitMs(_ random: inout SplitMix64) -> Int64 {
        let step = attempts - attemptsBefore
        return switch rules.wait {
        case .jitter(let baseMs, let maxMs): Self.jitterMs(baseMs, step, maxMs, &random)
        case .fixed(let delayMs): delayMs
        case .staged(let stages): stages.delayMs(step)
        }
    }

    /// Uniform between 0 and the window of this exponent.
    static func jitterMs(_ baseMs: Int64, _ exponent: Int, _ maxMs: Int64, _ random: inout SplitMix64) -> Int64 {
        Int64.random(in: 0...windowMs(baseMs, exponent, maxMs), using: &random)
    }

    private func guardMs(_ random: inout SplitMix64) -> Int64 {
        guard rules.hasFlapGuard, shortLives > Self.shortLivesFree else { return 0 }
        let windowMs = Self.windowMs(Self.flapBaseMs, shortLives - Self.shortLivesFree - 1, Self.flapMaxMs)
        return Int64.random(in: windowMs / 2...windowMs, using: &random)
    }

    private static func windowMs(_ baseMs: Int64, _ exponent: Int, _ maxMs: Int64) -> Int64 {
        // Beyond 2^20 every window is at its maximum.
        let (windowMs, isTooLarge) = baseMs.multipliedReportingOverflow(by: 1 << Int64(min(exponent, 20)))
        return isTooLarge ? maxMs : min(maxMs, windowMs)
    }
}
