import BirdRealtime
import Foundation

/// Sends a token that does not live long with each authorization, and prints the events of the channel. Whoever renews the token writes it
/// into the file, which is read whenever a header is needed.
///
///     swift-example headers APP_KEY EDGE AUTH_ENDPOINT TOKEN_FILE CHANNEL
@MainActor
func headers(_ arguments: [String]) async throws {
    var options = options(arguments)
    options.authEndpoint = URL(string: arguments[2])
    let tokenFile = arguments[3]
    options.headerProvider = { endpoint in
        guard let token = try? String(contentsOfFile: tokenFile, encoding: .utf8) else {
            say("no token for \(endpoint) yet")
            // Asked again later; isRetriable false would deny for good.
            throw RealtimeError("There is no token.", isRetriable: true)
        }
        say("a token for \(endpoint)")
        return ["authorization": "Bearer \(token.trimmingCharacters(in: .whitespacesAndNewlines))"]
    }
    let bird = client(options)
    let channel = bird.subscribe(arguments[4])
    channel.bind(BirdProtocol.Event.subscriptionSucceeded) { _ in say("subscribed to \(arguments[4])") }
    for try await event in channel.events() {
        say("\(event.channelName): \(event.name) \(event.data ?? "")")
    }
}
