import BirdRealtime
import Foundation

/// Authorizes with a token that somebody else renews: each request reads it anew. Prints the events of the channel.
///
///     swift-example headers APP_KEY EDGE AUTH_ENDPOINT TOKEN_FILE CHANNEL
func headers(_ arguments: [String]) async throws {
    var options = options(arguments)
    options.authEndpoint = URL(string: arguments[2])
    let tokenFile = arguments[3]
    options.headerProvider = { endpoint in
        guard let token = try? String(contentsOfFile: tokenFile, encoding: .utf8) else {
            // The file may be there the next time; isRetriable false would deny for good.
            throw RealtimeError("There is no token for \(endpoint.path).", isRetriable: true)
        }
        say("token for \(endpoint.path)")
        return ["authorization": "Bearer \(token.trimmingCharacters(in: .whitespacesAndNewlines))"]
    }
    let bird = client(options)
    let channel = bird.subscribe(arguments[4])
    channel.bind(BirdProtocol.Event.subscriptionSucceeded) { _ in say("subscribed") }
    for try await event in channel.events() {
        say("\(event.name) \(event.data ?? "")")
    }
}
