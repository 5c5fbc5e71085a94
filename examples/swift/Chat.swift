import BirdRealtime
import Foundation

/// Subscribes to a public, a private and a presence channel, signs in as a member and prints what comes. Lines from stdin, each one
/// JSON value, go to the others on the private channel as the client event "client-said". Ends when the edge refuses the connection, or
/// with Ctrl-C.
///
///     swift-example chat APP_KEY EDGE AUTH_ENDPOINT MEMBER_AUTH_ENDPOINT TOKEN
///
/// The endpoints learn who asks from the header "Authorization: Bearer TOKEN"; a local edge takes a member id as the token.
@MainActor
func chat(_ arguments: [String]) async {
    var options = options(arguments)
    options.authEndpoint = URL(string: arguments[2])
    options.memberAuthEndpoint = URL(string: arguments[3])
    options.authHeaders = ["authorization": "Bearer \(arguments[4])"]
    let bird = client(options)

    for name in ["orders", "private-ledger", "presence-lobby"] {
        let channel = bird.subscribe(name)
        channel.bind(BirdProtocol.Event.subscriptionSucceeded) { [weak channel] _ in
            let room = channel as? PresenceChannel
            say("subscribed \(name)" + (room.map { " as \($0.myId ?? "?"), \($0.memberCount) here" } ?? ""))
        }
        channel.bind(BirdProtocol.Event.subscriptionError) { error in
            say("not on \(name): \(error?["error"] ?? "")")
        }
        channel.bindGlobal { event, data in say("event \(name) \(event) \(data ?? "")") }
    }
    bird.member.bindGlobal { event, data in say("event me \(event) \(data ?? "")") }

    bird.onSignedIn { member in say("signed in as \(member.memberId)") }
    bird.onSigninError { error in say("no signin: \(error.message)") }
    do {
        try await bird.signin()
    } catch {
        say("no signin: \(error)")
    }

    Thread.detachNewThread { [weak bird] in
        while let line = readLine(), let ledger = bird?.subscribe("private-ledger") {
            do {
                let isSent = try ledger.trigger("client-said", data: JSONValue(json: line) ?? JSONValue(line))
                if !isSent { say("not said: the channel is not subscribed") }
            } catch {
                say("not said: \(error)")
            }
        }
    }
    await refusal(of: bird)
}
