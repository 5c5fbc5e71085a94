/// How long to wait before the next attempt (Bird protocol 7.1 and 7.3): full jitter, the bands of close codes, and the
/// guard against connections that keep dying young.
struct Backoff: Sendable {
    /// Grows with every planned attempt, back to 0 with a handshake or the program's own disconnect.
    private(set) var exponent = 0
    /// Connections in a row that lasted less than `shortLifeMs`.
    private(set) var shortLives = 0

    private let baseMs: Int64
    private let maxMs: Int64
    private let hasFlapGuard: Bool

    static let shortLifeMs: Int64 = 5_000
    private static let overCapacityFloorMs: Int64 = 1_000
    private static let shortLivesFree = 2
    private static let flapBaseMs: Int64 = 2_000
    private static let flapMaxMs: Int64 = 30_000

    init(_ configuration: SessionConfiguration) {
        baseMs = configuration.backoffBaseMs
        maxMs = configuration.backoffMaxMs
        hasFlapGuard = configuration.hasFlapGuard
    }

    mutating func attemptBegan() {
        exponent += 1
    }

    mutating func handshakeCame() {
        exponent = 0
    }

    mutating func connectionEnded(afterMs lifeMs: Int64) {
        shortLives = lifeMs < Self.shortLifeMs ? shortLives + 1 : 0
    }

    mutating func reset() {
        exponent = 0
        shortLives = 0
    }

    /// `closeCode` 0: there was none.
    func delayMs(closeCode: UInt16, atOnce: Bool, _ random: inout SplitMix64) -> Int64 {
        let delayMs: Int64 =
            switch closeCode {
            case _ where atOnce: 0
            case 4200...4299: 0
            case 4100...4199: min(maxMs, Self.overCapacityFloorMs + jitterMs(exponent, &random))
            default: jitterMs(exponent, &random)
            }
        return max(delayMs, guardMs(&random))
    }

    /// Uniform between 0 and the window of this exponent.
    func jitterMs(_ exponent: Int, _ random: inout SplitMix64) -> Int64 {
        Int64.random(in: 0...Self.windowMs(baseMs, exponent, maxMs), using: &random)
    }

    private func guardMs(_ random: inout SplitMix64) -> Int64 {
        guard hasFlapGuard, shortLives > Self.shortLivesFree else { return 0 }
        let windowMs = Self.windowMs(Self.flapBaseMs, shortLives - Self.shortLivesFree - 1, Self.flapMaxMs)
        return Int64.random(in: windowMs / 2...windowMs, using: &random)
    }

    private static func windowMs(_ baseMs: Int64, _ exponent: Int, _ maxMs: Int64) -> Int64 {
        // Beyond 2^20 every window is at its maximum.
        let (windowMs, isTooLarge) = baseMs.multipliedReportingOverflow(by: 1 << Int64(min(exponent, 20)))
        return isTooLarge ? maxMs : min(maxMs, windowMs)
    }
}
