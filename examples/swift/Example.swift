import BirdRealtime
import Foundation

/// Subscribes to a public, a private and a presence channel, signs in as a member and prints what comes. Lines from stdin, each one
/// JSON value, go to the others on the private channel as the client event "client-said". Ends when the edge refuses the connection, or
/// with Ctrl-C.
///
///     swift-example APP_KEY EDGE AUTH_ENDPOINT MEMBER_AUTH_ENDPOINT TOKEN
///
/// EDGE is a region (us1, eu1), or host:port of a local edge. The endpoints learn who asks from the header
/// "Authorization: Bearer TOKEN"; a local edge takes a member id as the token.
@main
struct Example {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 6 else {
            say("usage: swift-example APP_KEY EDGE AUTH_ENDPOINT MEMBER_AUTH_ENDPOINT TOKEN")
            exit(2)
        }
        let isLocal = arguments[2].contains(":")
        let bird = BirdRealtime(
            options: .init(
                appKey: arguments[1],
                region: isLocal ? nil : arguments[2],
                wsHost: isLocal ? arguments[2] : nil,
                authEndpoint: URL(string: arguments[3]),
                authHeaders: ["authorization": "Bearer \(arguments[5])"],
                memberAuthEndpoint: URL(string: arguments[4]),
                allowInsecure: true))

        if let error = bird.configurationError {
            say("\(error)")
            exit(1)
        }

        // The handlers run on the main queue, which is free while `main` awaits.
        let (life, end) = AsyncStream.makeStream(of: Void.self)
        bird.onConnectionStateChange { _, current in
            say("\(current)")
            if current == .failed { end.finish() }
        }
        bird.onError { error in say("error \(error.code ?? 0) \(error.message)") }

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
        for await _ in life {}
    }

    /// Prints a line at once, whatever stdout is.
    static func say(_ line: String) {
        FileHandle.standardOutput.write(Data("\(line)\n".utf8))
    }
}
