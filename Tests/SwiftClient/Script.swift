import BirdRealtime
import Foundation

/// Performs the commands on one client, and prints what it tells.
final class Script {
    private var bird: BirdRealtime?
    private let queue: DispatchQueue
    private let gate = DispatchSemaphore(value: 0)
    private let questions: Questions
    private var bindings: [Int: BindingToken] = [:]

    init(_ bird: BirdRealtime, _ queue: DispatchQueue, _ questions: Questions) {
        self.bird = bird
        self.queue = queue
        self.questions = questions
        observe(bird)
        let error = bird.configurationError
        reply("create", error?.statusName ?? "BIRD_OK", error?.fields ?? [:])
    }

    func end() {
        bird = nil
    }

    // MARK: What happens

    private func observe(_ bird: BirdRealtime) {
        bird.onConnectionChange { say($0.fields("state")) }
        bird.onConnectingIn { say($0.fields("connecting_in")) }
        bird.onConnectionLost { say(["record": "connection_lost"]) }
        bird.onError { say($0.fields.merging(["record": "error"]) { $1 }) }
        bird.onSigninError { say($0.fields.merging(["record": "signin_error"]) { $1 }) }
        bird.onSignedIn { say(["record": "signed_in", "member_id": JSONValue($0.memberId)]) }
        bird.bindGlobal { channel, event, data in
            say([
                "record": "event", "channel": JSONValue(channel), "event": JSONValue(event),
                "data": JSONValue(data?.text ?? ""),
            ])
        }
        for status in ["online", "offline"] {
            bird.member.watchlist.bind(status) { ids in
                let ids = JSONValue(ids.map { JSONValue($0) })
                say(["record": "watchlist", "event": JSONValue(status), "data": JSONValue(ids.text)])
            }
        }
        for (record, event) in [
            ("subscribed", BirdProtocol.Event.subscriptionSucceeded),
            ("subscription_error", BirdProtocol.Event.subscriptionError),
            ("member_added", BirdProtocol.Event.memberAdded), ("member_removed", BirdProtocol.Event.memberRemoved),
            ("connection_count", BirdProtocol.Event.connectionCount),
            ("decryption_error", BirdProtocol.Event.decryptionError),
        ] {
            bird.bind(event) { channel, data in
                say(lifecycleFields(data).merging(["record": JSONValue(record), "channel": JSONValue(channel)]) { $1 })
            }
        }
    }

    // MARK: Commands

    func perform(_ line: String) {
        let words = line.split(separator: " ", maxSplits: 3).map(String.init)
        let command = words[0]
        guard let bird else { return reply(command, "BIRD_ERR_CLOSED") }
        do {
            reply(command, "BIRD_OK", try execute(bird, command, Array(words.dropFirst())) ?? [:])
        } catch let error as RealtimeError {
            reply(command, error.statusName, error.fields)
        } catch {
            fatalError("\(line): \(error)")
        }
    }

    /// The fields of the reply beside its status.
    private func execute(_ bird: BirdRealtime, _ command: String, _ words: [String]) throws -> [String: JSONValue]? {
        switch command {
        case "connect": bird.connect()
        case "disconnect": bird.disconnect()
        case "retry_now": bird.retryNow()
        case "network": bird.networkHint(["1": .up, "2": .down][words[0]] ?? .resumed)
        case "configure": try bird.set(words[0], words[1])
        case "close": try bird.close(timeout: seconds(words[0]))
        case "flush": try bird.flush(timeout: seconds(words[0]))
        case "destroy": end()
        case "state": return ["state": JSONValue(bird.connectionState.rawValue)]
        case "member": return ["member_id": JSONValue(bird.signedInMember?.memberId ?? "")]
        case "statistics": return bird.statistics.fields
        case "dump": return ["dump": JSONValue(bird.dump.text)]
        case "subscribe": bird.subscribe(words[0])
        case "pause": queue.async { [gate] in gate.wait() }
        case "resume": gate.signal()
        case "unsubscribe": bird.unsubscribe(words[0])
        case "trigger":
            let data = words.count > 2 ? JSONValue(json: words[2]) : nil
            guard try bird.subscribe(words[0]).trigger(words[1], data: data) else {
                return ["status": "BIRD_ERR_NOT_SUBSCRIBED"]
            }
        case "roster":
            let room = bird.subscribe(words[0]) as? PresenceChannel
            return [
                "members": JSONValue(room?.members.keys.sorted().joined(separator: " ") ?? ""),
                "my_id": JSONValue(room?.myId ?? ""),
            ]
        case "signin": signin(bird, tag: words[0], refresh: words[1] != "0")
        case "bind": bind(bird, number: words[0], channel: words[1], event: words.count > 2 ? words[2] : nil)
        case "unbind": bindings.removeValue(forKey: Int(words[0]) ?? 0).map { bird.unbind($0) }
        case "unbind_event": bird.subscribe(words[0]).unbind(words[1])
        case "unbind_all": bird.subscribe(words[0]).unbindAll()
        case "iterate": iterate(bird, channel: words[0], count: Int(words[1]) ?? 0)
        case "grant":
            answer(words[0], .grant(auth: words[1], memberData: words.count > 2 ? words[2] : nil, sharedSecret: nil))
        case "headers": answer(words[0], .headers([words[1]: words[2]]))
        case "proceed": answer(words[0], .proceed(seconds(words[1])))
        case "refuse": answer(words[0], .refuse(RealtimeError(words[2], isRetriable: words[1] != "0")))
        default: fatalError("unknown command \(command)")
        }
        return nil
    }

    private func answer(_ number: String, _ answer: Questions.Answer) {
        questions.answer(Int(number) ?? -1, answer)
    }

    private func seconds(_ milliseconds: String) -> TimeInterval { (Double(milliseconds) ?? 0) / 1_000 }

    private func signin(_ bird: BirdRealtime, tag: String, refresh: Bool) {
        Task { [weak bird] in
            var completion: [String: JSONValue] = [
                "record": "completion", "operation": "signin", "tag": JSONValue(Int(tag) ?? 0), "status": "BIRD_OK",
            ]
            do {
                _ = try await bird?.signin(refresh: refresh)
            } catch let error as RealtimeError {
                completion["status"] = JSONValue(error.statusName)
                completion.merge(error.fields) { $1 }
            } catch {
                completion["status"] = JSONValue("\(error)")
            }
            say(completion)
        }
    }

    /// `channel` "*": on the client, `event` nil: every application event.
    private func bind(_ bird: BirdRealtime, number: String, channel: String, event: String?) {
        let bound = { @Sendable (event: String, data: JSONValue?) in
            say([
                "record": "bound", "binding": JSONValue(Int(number) ?? 0), "event": JSONValue(event),
                "data": JSONValue(data?.text ?? ""),
            ])
        }
        bindings[Int(number) ?? 0] =
            switch (channel, event) {
            case ("*", let event?): bird.bind(event) { bound(event, $1) }
            case ("*", nil): bird.bindGlobal { bound($1, $2) }
            case (_, let event?): bird.subscribe(channel).bind(event) { bound(event, $0) }
            case (_, nil): bird.subscribe(channel).bindGlobal { bound($0, $1) }
            }
    }

    private func iterate(_ bird: BirdRealtime, channel: String, count: Int) {
        let events = channel == "*" ? bird.events() : bird.subscribe(channel).events()
        Task {
            var taken = 0
            do {
                for try await event in events {
                    taken += 1
                    say([
                        "record": "iterated", "channel": JSONValue(event.channelName), "event": JSONValue(event.name),
                        "data": JSONValue(event.data?.text ?? ""),
                    ])
                    if taken == count { break }
                }
                say(["record": "iteration_over"])
            } catch let error as RealtimeError {
                say(error.fields.merging(["record": "iteration_over"]) { $1 })
            }
        }
    }

    private func reply(_ command: String, _ status: String, _ fields: [String: JSONValue] = [:]) {
        say(["reply": JSONValue(command), "status": JSONValue(status)].merging(fields) { $1 })
    }
}

/// The payload of a `bird:` event, with the names that every face prints.
private func lifecycleFields(_ data: JSONValue?) -> [String: JSONValue] {
    var fields = data?.object ?? [:]
    for flag in ["is_resubscribe", "will_retry"] {
        if let value = fields[flag]?.bool { fields[flag] = JSONValue(value ? 1 : 0) }
    }
    for (theirs, ours) in [("error", "message"), ("status", "http_status")] {
        if let value = fields.removeValue(forKey: theirs) { fields[ours] = value }
    }
    if let data { fields["data"] = JSONValue(data.text) }
    return fields
}

extension ConnectionChange {
    fileprivate func fields(_ record: String) -> [String: JSONValue] {
        [
            "record": JSONValue(record), "previous": JSONValue(previous.rawValue),
            "current": JSONValue(current.rawValue), "reason_text": JSONValue(reason),
            "close_code": JSONValue(closeCode ?? 0), "attempt": JSONValue(attempt),
            "delay_ms": JSONValue(delay.map { Int(($0 * 1_000).rounded()) } ?? -1),
            "connection_id": JSONValue(connectionId ?? ""),
        ]
    }
}

extension Statistics {
    /// By the names of the header: bytes_received for bytesReceived.
    fileprivate var fields: [String: JSONValue] {
        var fields: [String: JSONValue] = [:]
        for case (let name?, let value as UInt64) in Mirror(reflecting: self).children {
            let words = name.map { $0.isUppercase ? "_" + $0.lowercased() : String($0) }
            fields[words.joined()] = JSONValue(value)
        }
        return fields
    }
}
