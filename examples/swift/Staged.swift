import BirdRealtime
import Foundation

/// Reconnects in stages, asks itself before every attempt, gives up after so many, and prints all that it is told.
///
///     swift-example staged APP_KEY EDGE DELAY LONG_DELAY ATTEMPTS_MAX
///
/// Delays are seconds: one attempt is made at the first distance, five at the second, and so on; a program would take what `.staged()`
/// has (5 × 3 s, 5 × 9 s, 5 × 15 s). With ATTEMPTS_MAX 0 it never gives up. Enter tries now, whatever the schedule says, also after it has
/// given up; the end of the input ends it.
@MainActor
func staged(_ arguments: [String]) async throws {
    var options = options(arguments)
    options.preset = .staged  // pings after 20 s, two of which may be missed
    options.reconnect = .staged([
        .init(attempts: 1, delay: Double(arguments[2]) ?? 3), .init(attempts: 5, delay: Double(arguments[3]) ?? 9),
    ])
    options.reconnectAttemptsMax = Int(arguments[4])
    options.mayReconnect = { attempt in
        // A program would look at its battery or its data plan here; this one skips the first.
        let isAllowed = attempt.number > 1
        say("attempt \(attempt.number) \(isAllowed ? "goes ahead" : "is skipped"), after: \(attempt.cause.message)")
        return isAllowed ? .now : .skip
    }
    let bird = client(options)
    bird.onConnectionChange { change in say("\(change.current): \(change.reason)") }
    bird.onConnectionLost { say("the connection is lost") }
    bird.onConnectingIn { change in say("attempt \(change.attempt) in \(change.delay ?? 0) s") }
    for await _ in lines() {
        if bird.connectionState == .unavailable {
            bird.retryNow()
        } else {
            bird.connect()  // it has given up, or there is nothing to do
        }
    }
}
