import BirdRealtime

/// Comes back in stages, asks before each attempt, and gives up in the end.
///
///     swift-example staged APP_KEY EDGE
///
/// A program would take the stages of `.staged()` (5 × 3 s, 5 × 9 s, 5 × 15 s); these are for those who watch.
func staged(_ arguments: [String]) async throws {
    var options = options(arguments)
    options.reconnect = .staged([.init(attempts: 2, delay: 0.1), .init(attempts: 2, delay: 0.3)])
    options.reconnectAttemptsMax = 6
    options.mayReconnect = { attempt in
        // A program that knows that its network is off would skip; this one only skips the third.
        say("attempt \(attempt.number) after: \(attempt.cause.message)")
        return attempt.number == 3 ? .skip : .now
    }
    let bird = client(options)
    bird.onConnectionLost { say("lost") }
    bird.onConnectingIn { change in say("connecting in \(change.delay ?? 0) s") }
    bird.onConnectionChange { change in
        if change.current == .disconnected { say("\(change.reason)") }
    }
    await refusal(of: bird)
}
