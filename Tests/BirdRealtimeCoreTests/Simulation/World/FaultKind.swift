@testable import BirdRealtimeCore

/// Everything that goes wrong in a simulated world.
enum FaultKind: Int, CaseIterable, Sendable {
    // An attempt.
    case connectHangs, connectRefused, connectSlow
    case upgradeWithheld, upgradeSlow, upgradeRefused, upgradeRetryAfter, upgradeGarbled, upgradeInterim
    case handshakeWithheld, handshakeLate, handshakeLacksID, handshakeRepeated, handshakesEndless
    case errorBeforeHandshake, greetingOfOther

    // The stream of a connection.
    case cutTowardsClient, cutTowardsEdge, reset, silence, silenceForEver, delay
    case readSplit, readCoalesced, writeBlocked, writePartial

    // What an edge sends.
    case closeCode, closeRefusal
    case pongWithheld, pongLate, subscribeIgnored, subscribeLate, signinIgnored, signinLate
    case subscriptionRefused, errorUnrelated, errorLimit, errorOnChannel
    case pingMessage, pingFrame, pongUnasked, pongMessageUnasked
    case messageOdd, messageMalformed, messageBinary, messageFragmented
    case textNotUTF8, frameBroken, messageTooLarge
    case eventNotSealed, keyUnknown, keyOutdated, keyRotated, numericID

    // What an authorizer answers.
    case authLost, authLate, authTwice, authFailed, authDenied, authBusy, authRetryAfter, authRedirected, authUnusable
    case authWrong, authSecretMissing, authSecretOutdated

    // The machine and the program around a session.
    case clockJump, suspend, frozen, stalled
    case hintUp, hintDown, hintResumed
    case consentWithheld, consentDelayed, consentRefused, consentTwice
    case pastHeard

    /// So rarely, out of the occasions for it, does it happen in a world of the ordinary temper.
    var occasionsBetween: Int {
        switch self {
        case .cutTowardsClient, .cutTowardsEdge: 400
        case .readSplit, .readCoalesced, .messageFragmented, .delay: 12
        case .writeBlocked, .writePartial: 40
        case .pingFrame, .keyRotated: 20
        case .connectHangs, .connectSlow, .upgradeRefused, .connectRefused: 8
        case .upgradeWithheld, .upgradeSlow, .upgradeRetryAfter, .upgradeGarbled, .upgradeInterim: 12
        case .handshakeWithheld, .handshakeLate: 12
        case .handshakeLacksID, .greetingOfOther: 60
        case .errorBeforeHandshake: 10
        case .pongWithheld, .signinLate: 16
        case .pongLate, .signinIgnored, .numericID: 6
        case .subscribeIgnored: 30
        case .subscribeLate, .authLost, .authTwice: 12
        case .authLate, .authBusy: 6
        case .eventNotSealed, .keyUnknown, .keyOutdated, .authSecretOutdated: 15
        case .authFailed, .authRetryAfter: 12
        case .subscriptionRefused, .authDenied, .authRedirected, .authUnusable, .authWrong, .authSecretMissing:
            40
        case .consentWithheld, .consentDelayed, .consentRefused: 4
        case .consentTwice: 8
        case .closeRefusal: 6
        case .reset, .silence, .silenceForEver, .closeCode, .handshakeRepeated, .handshakesEndless, .errorUnrelated,
            .errorLimit, .errorOnChannel, .pingMessage, .pongUnasked, .pongMessageUnasked, .messageOdd,
            .messageMalformed,
            .messageBinary, .textNotUTF8,
            .frameBroken, .messageTooLarge, .clockJump, .suspend, .frozen, .stalled, .hintUp, .hintDown, .hintResumed,
            .pastHeard:
            2
        }
    }

    /// Those that need no occasion: one of them every few seconds, for each client.
    static let mishaps: [FaultKind] = [
        .reset, .silence, .silenceForEver, .closeCode, .closeCode, .handshakeRepeated, .handshakesEndless,
        .errorUnrelated, .errorLimit, .errorOnChannel, .errorOnChannel, .pingMessage, .pongUnasked, .pongMessageUnasked,
        .messageOdd, .messageOdd,
        .messageMalformed,
        .messageBinary, .textNotUTF8, .frameBroken, .messageTooLarge, .clockJump, .suspend, .frozen, .stalled,
        .hintUp, .hintDown, .hintResumed, .pastHeard,
    ]
}

/// How often each fault happens in one world. Some never do in most worlds: what would hide behind them shows there.
struct Temper {
    /// By fault; 0: never.
    private var occasionsBetween: [Int]

    init(_ random: inout SplitMix64) {
        let hasEverything = Int.random(in: 0..<4, using: &random) == 0
        occasionsBetween = FaultKind.allCases.map { kind in
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1: hasEverything ? kind.occasionsBetween : 0
            case 2: max(2, kind.occasionsBetween / 4)
            default: kind.occasionsBetween
            }
        }
    }

    func strikes(_ kind: FaultKind, _ random: inout SplitMix64) -> Bool {
        let occasions = occasionsBetween[kind.rawValue]
        return occasions > 0 && Int.random(in: 0..<occasions, using: &random) == 0
    }
}
