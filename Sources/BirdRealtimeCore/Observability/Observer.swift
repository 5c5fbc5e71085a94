import CBirdRealtimeABI

/// Tells the log, the statistics and the diary what a session does. Reactor thread only.
final class Observer {
    private let log: Log
    private let diary: Diary
    private let counters: Counters
    private var pingedAtUs: Int64?

    init(_ client: Client) {
        log = client.log
        diary = client.diary
        counters = client.counters
    }

    /// Before they are performed.
    func note(_ effects: [SessionEffect]) {
        var told: [String] = []
        for case .emit(.state(let change)) in effects { told.append(change.reasonText) }
        for effect in effects {
            if case .emit(let event) = effect {
                note(event, told)
            } else {
                note(effect)
            }
        }
    }

    private func note(_ effect: SessionEffect) {
        switch effect {
        case .note(let note): self.note(note)
        case .close(_, let code, let reason, _):
            log.write(.verbose, .connection, "closes the connection\(code.map { " with \($0) \(reason)" } ?? "")")
        case .send(_, let bytes, _):
            log.write(.verbose, .wire, "sends \(Self.eventName(bytes)), \(bytes.count) bytes")
        case .askReconnect(let question):
            log.write(.verbose, .connection, "asks the program whether attempt \(question.attempt) may begin")
        case .channelState(let reference, .unsubscribed):
            let name = Self.name(reference)
            log.write(.info, .channel, channel: name, "unsubscribed from \(name)")
        case .channelState(let reference, let state):
            let name = Self.name(reference)
            log.write(.verbose, .channel, channel: name, "\(name) is \(state)")
        case .clientEventLost:
            log.write(.verbose, .channel, "a client event is lost: its channel is not subscribed now")
        case .keyRefreshBegan(let reference):
            let name = Self.name(reference)
            log.write(.info, .authorization, channel: name, "an event does not open: asks for the key of \(name) again")
        case .open, .authorize, .withdraw, .identity, .attemptRefused, .emit, .watchlistEntriesMalformed: break
        }
    }

    private func note(_ event: SessionEvent, _ told: [String]) {
        switch event {
        case .state(let change): note(change)
        case .connectingIn(let change):
            // Else the state has told it.
            guard change.previous == change.current else { return }
            diary.note(change)
            log.write(.info, .connection, "next attempt in \(change.delayMs) ms: \(change.reasonText)")
        case .error(let fault):
            diary.note(fault)
            if !told.contains(fault.message) {
                log.write(.warn, Self.area(fault), status: fault.status, fault.message)
            }
        case .channelError(_, _, let fault):
            diary.note(fault)
            log.write(.warn, .channel, status: fault.status, channel: fault.channel, fault.message)
        case .subscribed(let reference, _, let members, _, let isResubscribe, let interruptedMs):
            let name = Self.name(reference)
            let again = isResubscribe ? " again, after \(interruptedMs) ms" : ""
            let count = members.map { ", with \($0.count) members" } ?? ""
            log.write(.info, .channel, channel: name, "subscribed to \(name)\(again)\(count)")
        case .memberAdded(let reference, let member):
            let name = Self.name(reference)
            log.write(.verbose, .channel, channel: name, "\(member.id) joined \(name)")
        case .memberRemoved(let reference, let member):
            let name = Self.name(reference)
            log.write(.verbose, .channel, channel: name, "\(member.id) left \(name)")
        case .signedIn(let member, _): log.write(.info, .signin, "signed in as \(member.id)")
        case .subscriptionFailed(_, let fault, _, _), .signinFailed(let fault): diary.note(fault)
        case .decryptionFailed(_, let channel, _, let fault):
            log.write(.warn, .channel, status: fault.status, channel: channel, fault.message)
        case .watchlist(let name, let memberIDs):
            log.write(.verbose, .signin, "\(memberIDs.count) watched members are \(name)")
        case .connectionLost: counters.connectionsLost.add(1)
        case .connectionCount, .channelEvent, .completed: break
        }
    }

    private func note(_ change: StateChange) {
        diary.note(change)
        if change.current == .connected {
            if counters.connects.load(ordering: .relaxed) > 0 { counters.reconnects.add(1) }
            counters.connected()
        } else if change.previous == .connected {
            counters.disconnected()
        }
        let level: LogLevel =
            switch change.current {
            case .failed: .error
            case .disconnected where change.reason != BIRD_OK: .error
            case .unavailable: .warn
            case .initialized, .connecting, .connected, .disconnected: .info
            }
        log.write(level, .connection, status: change.reason, Self.text(change))
    }

    private func note(_ note: SessionNote) {
        switch note {
        case .pinged:
            counters.pingsSent.add(1)
            pingedAtUs = System.monotonicUs()
            log.write(.verbose, .connection, "pings the edge")
        case .ponged(let isLast):
            guard isLast, let pingedAtUs else { return }
            let tripUs = System.monotonicUs() - pingedAtUs
            self.pingedAtUs = nil
            counters.roundTripUs.store(UInt64(max(1, tripUs)), ordering: .relaxed)
            log.write(.verbose, .connection, "pong after \(tripUs) us")
        case .pongMissed:
            pingedAtUs = nil
            counters.pongsMissed.add(1)
            log.write(.warn, .connection, status: BIRD_ERR_TIMEOUT, "the edge has not answered a ping in time")
        case .authorizationFailed: counters.authorizationFailures.add(1)
        case .setback(let channel, let fault, let againInMs):
            let next = againInMs.map { "again in \($0) ms" } ?? "not tried again"
            log.write(
                .warn, Self.area(fault), status: fault.status, channel: channel ?? "", "\(fault.message) (\(next))")
        }
    }

    private static func text(_ change: StateChange) -> String {
        var text = "\(change.current)"
        if change.current == .connecting { text += ", attempt \(change.attempt)" }
        if change.current == .connected { text += ", connection \(change.connectionID)" }
        text += ": \(change.reasonText)"
        if change.delayMs >= 0 { text += " (attempt \(change.attempt + 1) in \(change.delayMs) ms)" }
        return text
    }

    private static func area(_ fault: Fault) -> LogArea {
        switch fault.area {
        case .argument, .connection: .connection
        case .channel: .channel
        case .authorization: .authorization
        case .signin: .signin
        case .system: .process
        }
    }

    private static func name(_ reference: ChannelReference) -> String {
        ChannelHot.at(reference)?.pointee.channel.takeUnretainedValue().currentName ?? ""
    }

    /// All of a message that is told: the rest may be secret.
    private static func eventName(_ message: [UInt8]) -> String {
        JSONDocument.parse(message)?["event"]?.string ?? "a message"
    }
}

extension Client {
    /// Longer than this a handler should not take: in LOOP mode nothing else happens meanwhile.
    private static let slownessMs: Int64 = 1_000

    func tellSlowness(since began: Instant, _ what: @autoclosure () -> String) {
        guard log.wants(.warn, .delivery) else { return }
        let tookMs = System.now() - began
        if tookMs >= Self.slownessMs { log.write(.warn, .delivery, "\(what()) \(tookMs) ms") }
    }
}
