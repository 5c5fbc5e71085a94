import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// A backend that signs, one that dawdles, fails and repeats itself as long as the world is chaotic.
enum ModelAuthorizer {
    static let wrongSignature = "wrong"

    static func signature(_ connectionID: String, _ channel: String?, _ memberData: String?) -> String {
        "signed \(connectionID) \(channel ?? "signin") \(memberData ?? "-")"
    }

    static func ask(_ question: AuthorizationQuestion, by client: SimulatedClient, _ world: World) {
        let answer = answer(question, client, world)
        if world.happens(onceIn: 12) { return }
        let delay: ClosedRange<Int64> = world.happens(onceIn: 6) ? 0...15_000 : 1...80
        world.schedule(.answer(client, question.id, answer), in: delay)
        if world.happens(onceIn: 12) {
            world.schedule(.answer(client, question.id, answer), in: 0...20_000)
        }
    }

    private static func answer(
        _ question: AuthorizationQuestion, _ client: SimulatedClient, _ world: World
    ) -> AuthorizationAnswer {
        if question.channelName?.hasPrefix("private-denied") == true || world.happens(onceIn: 40) {
            return .refused(Fault(BIRD_ERR_DENIED, .authorization, "denied", httpStatus: 403), retryAfterMs: nil)
        }
        if world.happens(onceIn: 5) {
            let wish = world.pick([nil, nil, 1_000, 20_000] as [Int64?]) ?? nil
            return .refused(
                Fault(BIRD_ERR_AUTH, .authorization, "busy", httpStatus: 503, isRetriable: true), retryAfterMs: wish)
        }
        if world.happens(onceIn: 40) {
            return .granted(auth: "", memberData: nil, sharedSecret: nil)
        }
        // Some backends forget the secret, or still have an old one.
        let generation = world.keyGeneration - (world.happens(onceIn: 8) ? 1 : 0)
        let sharedSecret = question.channelName.flatMap { name in
            ChannelKind.of(name) != .encrypted || world.happens(onceIn: 30)
                ? nil : ChannelKey(base64: Vault.sharedSecret(of: name, world.masterKey(generation)))
        }
        let memberData: String? =
            switch question.channelName {
            case nil: client.memberData(idKey: client.dialect.identityIDKey)
            case let name? where ChannelKind.of(name) == .presence:
                client.memberData(idKey: client.dialect.memberIDKey)
            default: nil
            }
        if world.happens(onceIn: 30) {
            return .granted(auth: wrongSignature, memberData: memberData, sharedSecret: sharedSecret)
        }
        return .granted(
            auth: signature(question.connectionID, question.channelName, memberData), memberData: memberData,
            sharedSecret: sharedSecret)
    }
}
