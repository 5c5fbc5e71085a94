import BirdRealtime
import Foundation

/// One program for all examples, each of which is a file:
///
///     swift-example NAME APP_KEY EDGE ...
///
/// EDGE is a region (us1, eu1), or host:port of a local edge.
@main
struct Examples {
    private typealias Example = @MainActor @Sendable (_ arguments: [String]) async throws -> Void

    /// With what follows APP_KEY and EDGE.
    private static let all: [String: (arguments: [String], run: Example)] = [
        "chat": (["AUTH_ENDPOINT", "MEMBER_AUTH_ENDPOINT", "TOKEN"], chat),
        "watchlist": (["MEMBER_AUTH_ENDPOINT", "MEMBER_ID"], watchlist),
        "headers": (["AUTH_ENDPOINT", "TOKEN_FILE", "CHANNEL"], headers),
        "encrypted": (["AUTH_ENDPOINT", "CHANNEL"], encrypted),
        "rolling-log": (["FILE", "CHANNEL"], rollingLog),
        "statistics": (["CHANNEL"], statistics),
        "staged": (["DELAY", "LONG_DELAY", "ATTEMPTS_MAX"], staged),
    ]

    @MainActor static func main() async throws {
        let words = CommandLine.arguments.dropFirst()
        guard let name = words.first, let example = all[name], words.count == 3 + example.arguments.count else {
            for (name, example) in all.sorted(by: { $0.key < $1.key }) {
                say("usage: swift-example \((["\(name) APP_KEY EDGE"] + example.arguments).joined(separator: " "))")
            }
            exit(2)
        }
        try await example.run(Array(words.dropFirst()))
    }
}

/// Options for the first two arguments.
func options(_ arguments: [String]) -> BirdRealtimeOptions {
    let isLocal = arguments[1].contains(":")
    return BirdRealtimeOptions(
        appKey: arguments[0], region: isLocal ? nil : arguments[1], wsHost: isLocal ? arguments[1] : nil,
        allowInsecure: true)
}

/// A client that tells how it is connected, and goes on as long as somebody holds it. Its handlers run on the main queue, which is
/// free while the examples, on the main actor, wait for something: until then they bind handlers that miss nothing.
func client(_ options: BirdRealtimeOptions) -> BirdRealtime {
    let bird = BirdRealtime(options: options)
    if let error = bird.configurationError {
        say("\(error)")
        exit(1)
    }
    bird.onConnectionStateChange { _, current in say("\(current)") }
    bird.onError { error in say("error \(error.code ?? 0) \(error.message)") }
    return bird
}

/// Returns when nothing will come any more.
@MainActor
func refusal(of bird: BirdRealtime) async {
    let (life, end) = AsyncStream.makeStream(of: Void.self)
    bird.onConnectionStateChange { _, current in
        if current == .failed || current == .disconnected { end.finish() }
    }
    if bird.connectionState == .failed { return }
    for await _ in life {}
}

/// Of stdin, read on a thread of their own.
func lines() -> AsyncStream<String> {
    AsyncStream { continuation in
        Thread.detachNewThread {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
    }
}

/// Prints a line at once, whatever stdout is.
func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
}
