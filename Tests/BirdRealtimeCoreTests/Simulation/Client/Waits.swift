import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// How long a session may wait before an attempt: the policy, the bands of close codes, and the guard against connections that die young,
/// reckoned once more from what the client has seen.
struct Waits {
    private enum Band {
        case atOnce, overCapacity, policy
    }

    private static let shortLifeMs: Int64 = 5_000
    private static let hintsApartMs: Int64 = 1_000
    /// Of windows at least so wide, and after so many draws, each half must have had one.
    private static let windowMsMin: Int64 = 1_000
    private static let drawsMin = 40

    /// Connections in a row that lasted less than `shortLifeMs`.
    private var shortLives = 0
    private var openedAt: Int64?
    /// What the planned attempt follows; nil: the program or a hint has said when it begins.
    private var ended: (at: Int64, band: Band, restMs: Int64)?
    private var lastHint = Int64.min / 2
    /// Before this no attempt begins for the sake of a hint.
    var nextHint: Int64 { lastHint + Self.hintsApartMs }
    /// Attempts of this schedule from before a hint had the waits begin anew.
    private var before = 0
    private var lowDraws = 0
    private var highDraws = 0

    mutating func opened(_ now: Int64) { openedAt = now }
    mutating func attemptBegan() { openedAt = nil }
    mutating func scheduleBegan() { before = 0 }
    mutating func forget() { shortLives = 0 }

    /// A plan is told because of this input. `inVain`: attempts of this schedule. `restMs`: what the edge has asked for on top.
    mutating func check(
        _ plan: StateChange, after input: SessionInput, inVain: Int, restMs: Int64,
        _ configuration: SessionConfiguration,
        _ dialect: Dialect, _ now: Int64
    ) throws {
        if case .transportEnded(_, .closed(let code, _)) = input {
            try require(!Self.refusals(dialect).contains { $0 ~= code }, "comes back after \(code)")
        }
        if plan.previous != plan.current {
            if let openedAt { shortLives = now - openedAt < Self.shortLifeMs ? shortLives + 1 : 0 }
            ended = (now, Self.band(input, dialect, wasConnected: plan.previous == .connected), restMs)
        } else if case .reconnect(_, .refuse) = input {
            ended = (now, .policy, 0)
        } else if case .reconnect(_, .proceed(let delayMs)) = input {
            ended = nil
            try require(plan.delayMs == delayMs, "waits \(plan.delayMs) ms, the program has said \(delayMs)")
        } else if case .configure = input {
            try require(ended != nil, "plans anew what does not follow the options")
        } else {
            ended = nil
            before = inVain
            try require(now + plan.delayMs >= lastHint + Self.hintsApartMs, "tries too often for the sake of hints")
            lastHint = now + plan.delayMs
        }
        guard let ended else { return }
        let (least, most) = bounds(ended.band, step: inVain - before, configuration)
        let from = ended.at + ended.restMs - now
        let allowed = max(0, from + least)...max(0, from + most)
        try require(allowed.contains(plan.delayMs), "waits \(plan.delayMs) ms, and not \(allowed)")
        let isDrawn = configuration.reconnect == .jitter && ended.band == .policy && from == 0
        if isDrawn, least == 0, most >= Self.windowMsMin {
            lowDraws += plan.delayMs <= most / 2 ? 1 : 0
            highDraws += plan.delayMs > most / 2 ? 1 : 0
        }
    }

    /// Close codes behind which nobody comes back by itself.
    static func refusals(_ dialect: Dialect) -> [ClosedRange<UInt16>] {
        dialect.name == Dialect.pusher.name ? [4000...4099, 4300...4999] : [4000...4099]
    }

    private static func band(_ input: SessionInput, _ dialect: Dialect, wasConnected: Bool) -> Band {
        switch input {
        case .transportEnded(_, .closed(let code, _)): band(code)
        // An error before the handshake, or a protocol that was broken.
        case .message(_, let message) where message.event == dialect.error:
            band(SimulatedClient.number("code", in: message.data).flatMap { UInt16(exactly: $0) } ?? 0)
        case .message: .policy
        case .transportEnded(_, .failed(let fault)): fault.status == BIRD_ERR_SIZE ? .atOnce : .policy
        default: wasConnected ? .atOnce : .policy
        }
    }

    private static func band(_ code: UInt16) -> Band {
        4200...4299 ~= code ? .atOnce : 4100...4199 ~= code ? .overCapacity : .policy
    }

    private func bounds(_ band: Band, step: Int, _ configuration: SessionConfiguration) -> (least: Int64, most: Int64) {
        let maxMs = configuration.backoffMaxMs
        let window = min(maxMs, configuration.backoffBaseMs << Int64(min(step, 20)))
        var (least, most): (Int64, Int64) =
            switch configuration.reconnect {
            case .jitter: (0, window)
            case .fixed: (configuration.reconnectDelayMs, configuration.reconnectDelayMs)
            case .staged: Self.staged(configuration.reconnectStages, step)
            }
        switch band {
        case .atOnce: (least, most) = (0, 0)
        case .overCapacity where configuration.reconnect == .jitter: (least, most) = (1_000, min(maxMs, 1_000 + window))
        case .overCapacity: (least, most) = (max(1_000, least), max(1_000, most))
        case .policy: break
        }
        guard configuration.hasFlapGuard, shortLives > 2 else { return (least, most) }
        let guardMs: Int64 = min(30_000, 2_000 << Int64(min(shortLives - 3, 10)))
        return (max(least, guardMs / 2), max(most, guardMs))
    }

    private static func staged(_ stages: ReconnectStages, _ step: Int) -> (Int64, Int64) {
        let delays = stages.stages.flatMap { [Int64](repeating: $0.delayMs, count: $0.attempts) }
        let delayMs = delays[step % delays.count]
        return (delayMs, delayMs)
    }

    /// Clients that lose one edge must not come back in step.
    static func checkSpread(_ all: [Waits]) throws {
        let (low, high) = (all.reduce(0) { $0 + $1.lowDraws }, all.reduce(0) { $0 + $1.highDraws })
        try require(low + high < drawsMin || low > 0 && high > 0, "draws \(low) short waits and \(high) long ones")
    }
}
