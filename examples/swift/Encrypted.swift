import BirdRealtime
import Foundation

/// Prints the events of an encrypted channel, which the edge cannot read: its key comes with the answer of the backend that authorizes.
///
///     swift-example encrypted APP_KEY EDGE AUTH_ENDPOINT CHANNEL
///
/// CHANNEL begins with "private-encrypted-".
@MainActor
func encrypted(_ arguments: [String]) async throws {
    var options = options(arguments)
    options.authEndpoint = URL(string: arguments[2])
    let bird = client(options)
    let channel = bird.subscribe(arguments[3])
    channel.bind(BirdProtocol.Event.subscriptionSucceeded) { _ in say("subscribed to \(arguments[3])") }
    channel.bind(BirdProtocol.Event.decryptionError) { lost in
        // The key has been asked for once more, and does not open it either.
        say("cannot read: \(lost?["event"] ?? "")")
    }
    do {
        try channel.trigger("client-hello")
    } catch {
        say("nothing can be sent: \(error)")
    }
    for try await event in channel.events() {
        say("\(event.channelName): \(event.name) \(event.data ?? "")")
    }
}
