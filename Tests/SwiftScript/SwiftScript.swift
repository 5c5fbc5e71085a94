import BirdRealtime
import Foundation
import Synchronization

/// Drives the Swift face by lines from stdin, and prints one line for everything that it tells.
///
///     swift-script APP_KEY WS_HOST [KEY=VALUE]...
///
/// KEY is auth, member_auth (endpoints), authorizer, headers, may_reconnect (any value: closures that ask by a line), or an option key
/// of birdrealtime.h.
///
///     subscribe CHANNEL | unsubscribe CHANNEL | trigger CHANNEL EVENT [JSON] | signin | member
///     connect | disconnect | close | release | state | statistics | roster CHANNEL
///     flush | hint up|down|resumed | retry | policy jitter|fixed|staged [SECONDS [ATTEMPTS_MAX]] | keep SECONDS PONG_SECONDS | set KEY VALUE
///     bind CHANNEL|* EVENT | unbind CHANNEL|* EVENT | unbind_last | unbind_all CHANNEL|*       "*" is the client
///     watch | watched                                    binds to the watchlist, says who is there
///     stream CHANNEL|* | drop CHANNEL|*                  makes a sequence of events (of the client: "*"), lets go of it
///     take CHANNEL|* COUNT [signin|cancelled]            reads from it in a task, which also signs in, or is cancelled from the start
///     cancel CHANNEL|*                                   cancels that task
///     block | unblock                                    holds the delivery queue up
///     grant WHAT AUTH [MEMBER_DATA] | refuse WHAT MESSAGE | fail WHAT MESSAGE       WHAT: a channel, or "signin"
///     grant headers TOKEN | grant reconnect now|skip|SECONDS
@main
struct SwiftScript {
    static func main() {
        let script = Script(CommandLine.arguments)
        while let line = readLine() { script.perform(line) }
    }
}

func say(_ line: String) {
    FileHandle.standardOutput.write(Data("\(line)\n".utf8))
}

private struct Answer: Sendable {
    var auth = ""
    var memberData: String?
    var error: RealtimeError?

    func get() throws -> Answer {
        if let error { throw error }
        return self
    }
}

/// What the authorizers wait for.
private final class Questions: Sendable {
    private let waiting = Mutex<[String: CheckedContinuation<Answer, Never>]>([:])

    func ask(_ what: String, _ connectionId: String) async throws -> Answer {
        try await withCheckedContinuation { continuation in
            waiting.withLock { $0[what] = continuation }
            say("asked \(what) \(connectionId)")
        }.get()
    }

    func answer(_ what: String, _ answer: Answer) {
        waiting.withLock { $0.removeValue(forKey: what) }?.resume(returning: answer)
    }
}

private final class Script {
    private let queue = DispatchQueue(label: "delivery")
    private let gate = DispatchSemaphore(value: 0)
    private let questions = Questions()
    private let streams = Streams()
    private var lastBinding: BindingToken?
    private var bird: BirdRealtime?

    init(_ arguments: [String]) {
        var options = BirdRealtimeOptions(
            appKey: arguments[1], wsHost: arguments[2], allowInsecure: true, deliveryQueue: queue, autoConnect: false)
        for setting in arguments.dropFirst(3).map({ $0.split(separator: "=", maxSplits: 1).map(String.init) }) {
            switch setting[0] {
            case "auth": options.authEndpoint = URL(string: setting[1])
            case "member_auth": options.memberAuthEndpoint = URL(string: setting[1])
            case "authorizer":
                options.authorizer = { [questions] connectionId, channelName in
                    let answer = try await questions.ask(channelName, connectionId)
                    return ChannelAuth(auth: answer.auth, memberData: answer.memberData)
                }
                options.memberAuthorizer = { [questions] connectionId in
                    let answer = try await questions.ask("signin", connectionId)
                    return MemberAuth(auth: answer.auth, memberData: answer.memberData ?? "")
                }
            case "overflow": options.overflow = Overflow(rawValue: setting[1]) ?? .pause
            case "headers":
                options.headerProvider = { [questions] endpoint in
                    ["authorization": "Bearer \(try await questions.ask("headers", endpoint.path).auth)"]
                }
            case "may_reconnect":
                options.mayReconnect = { [questions] attempt in
                    let about = "\(attempt.number) \(attempt.cause.code ?? 0)"
                    switch (try? await questions.ask("reconnect", about))?.auth {
                    case "now", nil: return .now
                    case "skip": return .skip
                    case let seconds?: return .after(TimeInterval(seconds) ?? 0)
                    }
                }
            default: options.settings[setting[0]] = setting[1]
            }
        }
        let bird = BirdRealtime(options: options)
        self.bird = bird
        bird.onConnectionStateChange { [queue] previous, current in
            dispatchPrecondition(condition: .onQueue(queue))
            say("state \(previous) \(current)")
        }
        bird.onConnectingIn { say("connecting in \($0.attempt) \($0.delay ?? -1) \($0.policy ?? "-")") }
        bird.onConnectionLost { say("lost") }
        bird.onError { say("error \($0.code ?? 0) \($0.message)\($0.channel.map { " on \($0)" } ?? "")") }
        bird.onSigninError { say("signin error \($0.message)") }
        bird.onSignedIn { say("signed in \($0.memberId) \($0.memberInfo ?? "-")") }
        bird.member.bindGlobal { say("member \($0) \($1?.text ?? "-")") }
        bird.connect()
    }

    func perform(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 3).map(String.init)
        let first = words.count > 1 ? words[1] : ""
        guard let bird else { return say("released") }
        switch words[0] {
        case "subscribe": subscribe(bird, first)
        case "unsubscribe": bird.unsubscribe(first)
        case "trigger": trigger(bird.subscribe(first), words)
        case "signin": signin(bird)
        case "member": say("is \(bird.signedInMember?.memberId ?? "-")")
        case "connect": bird.connect()
        case "disconnect": bird.disconnect()
        case "close":
            do {
                try bird.close()
                say("closed")
            } catch {
                say("close: \(error)")
            }
        case "release":
            self.bird = nil
            say("released")
        case "state": say("is \(bird.connectionState) \(bird.connectionId ?? "-")")
        case "statistics":
            let statistics = bird.statistics
            say(
                "pauses \(statistics.readPauses) waiting \(statistics.queueRecords) dropped \(statistics.eventsDropped) "
                    + "refused \(statistics.attemptsRefused)"
            )
        case "roster":
            let room = bird.subscribe(first) as? PresenceChannel
            say("roster \(room?.myId ?? "-") \(room?.members.keys.sorted().joined(separator: ",") ?? "-")")
        case "block":
            queue.async { [gate] in
                say("blocked")
                gate.wait()
            }
        case "unblock": gate.signal()
        case "flush":
            try? bird.flush(timeout: 30)
            say("flushed")
        case "hint": bird.networkHint(first == "up" ? .up : first == "down" ? .down : .resumed)
        case "retry": bird.retryNow()
        case "policy":
            change { try bird.setReconnect(policy(words), attemptsMax: words.count > 3 ? Int(words[3]) : nil) }
        case "keep":
            change {
                try bird.setKeepAlive(.init(activityTimeout: Double(first), pongTimeout: Double(words[2])))
            }
        case "set": change { try bird.set(first, words[2]) }
        case "bind": lastBinding = bind(bird, first, words[2])
        case "unbind": first == "*" ? bird.unbind(words[2]) : bird.subscribe(first).unbind(words[2])
        case "unbind_last": lastBinding.map { bird.unbind($0) }
        case "unbind_all": first == "*" ? bird.unbindAll() : bird.subscribe(first).unbindAll()
        case "watch":
            for event in ["online", "offline"] {
                bird.member.watchlist.bind(event) { say("\(event) \($0.joined(separator: ","))") }
            }
        case "watched":
            let watchlist = bird.member.watchlist
            say("watched \(watchlist.online.joined(separator: ",")) \(watchlist.offline.joined(separator: ","))")
        case "stream": streams.open(first, bird)
        case "drop": streams.drop(first)
        case "take":
            streams.take(
                first, Int(words[2]) ?? 0, signingInTo: words.last == "signin" ? bird : nil,
                isCancelled: words.last == "cancelled")
        case "cancel": streams.cancel(first)
        case "grant":
            questions.answer(first, Answer(auth: words[2], memberData: words.count > 3 ? words[3] : nil))
        case "refuse": questions.answer(first, Answer(error: RealtimeError(words[2])))
        case "fail": questions.answer(first, Answer(error: RealtimeError(words[2], isRetriable: true)))
        default: say("unknown command")
        }
    }

    private func subscribe(_ bird: BirdRealtime, _ name: String) {
        let channel = bird.subscribe(name)
        for event in [
            BirdProtocol.Event.subscriptionSucceeded, BirdProtocol.Event.subscriptionError,
            BirdProtocol.Event.memberAdded, BirdProtocol.Event.memberRemoved,
        ] {
            channel.bind(event) { say("\(name) \(event) \($0?.text ?? "-")") }
        }
        channel.bindGlobal { say("\(name) \($0) \($1?.text ?? "-")") }
    }

    private func change(_ body: () throws -> Void) {
        do {
            try body()
            say("changed")
        } catch {
            say("not changed: \(error)")
        }
    }

    private func policy(_ words: [String]) -> ReconnectPolicy {
        let delay = words.count > 2 ? Double(words[2]) : nil
        return switch words[1] {
        case "fixed": .fixed(delay: delay)
        case "staged": .staged(delay.map { [.init(attempts: 1, delay: $0), .init(attempts: 2, delay: 2 * $0)] })
        default: .jitter(base: delay)
        }
    }

    private func bind(_ bird: BirdRealtime, _ name: String, _ event: String) -> BindingToken {
        guard name == "*" else { return bird.subscribe(name).bind(event) { say("\(event): \($0?.text ?? "-")") } }
        return bird.bind(event) { say("\(event) on \($0): \($1?.text ?? "-")") }
    }

    private func trigger(_ channel: Channel, _ words: [String]) {
        do {
            let data = words.count > 3 ? JSONValue(json: words[3]) : nil
            say("triggered \(try channel.trigger(words[2], data: data))")
        } catch {
            say("refused \(error)")
        }
    }

    private func signin(_ bird: BirdRealtime) {
        Task { [weak bird] in
            do {
                guard let me = try await bird?.signin() else { return }
                say("signin \(me.memberId) \(me.memberInfo?.text ?? "-")")
            } catch {
                say("no signin \(error)")
            }
        }
    }
}
