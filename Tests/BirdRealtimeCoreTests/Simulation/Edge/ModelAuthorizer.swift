import CBirdRealtimeABI

@testable import BirdRealtimeCore

/// A backend that signs, one that dawdles, fails and repeats itself as long as the world is chaotic.
enum ModelAuthorizer {
    static let wrongSignature = "wrong"

    static func signature(_ connectionID: String, _ channel: String?, _ memberData: String?) -> String {
        "signed \(connectionID) \(channel ?? "signin") \(memberData ?? "-")"
    }

    static func ask(_ question: AuthorizationQuestion, by client: SimulatedClient, _ world: World) {
        let result = answer(question, client, world)
        if world.strikes(.authLost, client) { return }
        let isLate = world.strikes(.authLate, client)
        world.schedule(.authorized(client, question, result), in: isLate ? 0...15_000 : 1...80)
        if world.strikes(.authTwice, client) {
            world.schedule(.authorized(client, question, result), in: 0...20_000)
        }
    }

    private static func answer(
        _ question: AuthorizationQuestion, _ client: SimulatedClient, _ world: World
    ) -> Result<HTTPAnswer, Fault> {
        if world.strikes(.authFailed, client) {
            return .failure(Fault(BIRD_ERR_CONNECT, .connection, "connection reset", isRetriable: true))
        }
        if question.channelName?.hasPrefix("private-denied") == true || world.strikes(.authDenied, client) {
            return .success(HTTPAnswer(status: world.pick([400, 401, 403, 404]) ?? 403, body: []))
        }
        if world.strikes(.authBusy, client) {
            return .success(HTTPAnswer(status: world.pick([408, 425, 429, 500, 502, 503]) ?? 503, body: []))
        }
        if world.strikes(.authRetryAfter, client) {
            let wishMs = world.pick([0, 1_000, 20_000, 3_600_000] as [Int64]) ?? 0
            return .success(
                HTTPAnswer(status: world.pick([429, 503]) ?? 429, body: [], retryAfterMs: wishMs))
        }
        if world.strikes(.authRedirected, client) {
            return .success(HTTPAnswer(status: 302, body: [], location: "https://login.example/"))
        }
        if world.strikes(.authUnusable, client) {
            let bodies = ["", "<html>", #"{"auth":7}"#, #"{"auth":""}"#, "[]", "\u{0}"]
            return .success(HTTPAnswer(status: 200, body: Array((world.pick(bodies) ?? "").utf8)))
        }
        return .success(HTTPAnswer(status: 200, body: granted(question, client, world)))
    }

    private static func granted(
        _ question: AuthorizationQuestion, _ client: SimulatedClient, _ world: World
    ) -> [UInt8] {
        let dialect = client.dialect
        let name = question.channelName
        let memberData: String? =
            switch name {
            case nil: client.memberData(idKey: dialect.identityIDKey)
            case let name? where ChannelKind.of(name) == .presence: client.memberData(idKey: dialect.memberIDKey)
            default: nil
            }
        var body = ObjectWriter()
        body.member(
            "auth",
            world.strikes(.authWrong, client) ? wrongSignature : signature(question.connectionID, name, memberData))
        body.member(name == nil ? dialect.identityKey : dialect.channelDataKey, memberData)
        if let name, ChannelKind.of(name) == .encrypted, !world.strikes(.authSecretMissing, client) {
            let generation = world.keyGeneration - (world.strikes(.authSecretOutdated, client) ? 1 : 0)
            body.member("shared_secret", Vault.sharedSecret(of: name, world.masterKey(generation)))
        }
        return body.finish()
    }
}
