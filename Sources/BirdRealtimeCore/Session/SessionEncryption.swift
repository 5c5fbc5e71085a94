import CBirdRealtimeABI

/// The encryption of one channel.
///
/// Its key comes with the authorization of each subscription, and is forgotten when the program leaves the channel and when the connection
/// ends. While the channel is subscribed:
///
///     fitting     every event opens; the first that does not asks the authorizer for the key again, once -> waiting
///     waiting     that event and those behind it are held, in order: no longer than auth_timeout_ms, and within `heldEventsMax` and
///                 `heldBytesMax` for all channels together, beyond which reading from the socket rests
///     renewed     the held events are opened with the new key or reported; for `keyRefreshSpacingMs` every other that does not open is
///                 reported at once, so that nobody who publishes garbage makes the client hammer the authorizer -> fitting
///     put off     the authorizer failed for a while: the held events are opened with the old key or reported, and so is what comes, while
///                 the authorizer is tried again, as for a subscription -> renewed
///     denied      the same, and nobody is asked again until the program subscribes anew or the connection changes
///
/// Reported is `bird:decryption_error`, once per event; ciphertext never reaches the program. What no key can open is reported in its turn
/// and asks nobody. Held events of a connection that ends are opened or reported before its end is told; those of a channel that is
/// unsubscribed are dropped.
struct ChannelEncryption: Sendable {
    struct Event: Sendable {
        var name: String
        var data: InboundMessage.Data

        var bytes: [UInt8] {
            switch data {
            case .none: []
            case .string(let bytes), .value(let bytes): bytes
            }
        }
    }

    /// From the authorization last sent to the edge.
    var key: ChannelKey?
    /// The way to the next key, as `Applicant.key`.
    var refresh = Admission()
    /// Before this an event that does not open asks nobody.
    var refreshableAt = Instant(milliseconds: .min)
    /// Why the last refresh failed.
    var refusal: Fault?
    /// Not empty: the channel is waiting.
    var held: [Event] = []
    var heldUntil = Instant.distantFuture
}

/// How many events wait for keys, and their bytes.
struct HeldTotal: Sendable {
    private(set) var events = 0
    private(set) var bytes = 0

    mutating func add(_ event: ChannelEncryption.Event) {
        events += 1
        bytes += event.name.utf8.count + event.bytes.count
    }

    mutating func remove(_ event: ChannelEncryption.Event) {
        events -= 1
        bytes -= event.name.utf8.count + event.bytes.count
    }
}

extension Session {
    package static var keyRefreshSpacingMs: Int64 { 5_000 }
    package static var heldEventsMax: Int { 1_024 }
    package static var heldBytesMax: Int { 1_048_576 }

    /// The key for the next event of a subscribed channel, nil: the event has to go the long way, behind others.
    package func key(of reference: ChannelReference) -> ChannelKey? {
        guard let slot = channels.slot(of: reference), let encryption = encryptions[slot], encryption.held.isEmpty
        else { return nil }
        return encryption.key
    }

    /// As many events wait for keys as may: nothing is to be read until they do not.
    package var isHoldFull: Bool { heldTotal.events >= Self.heldEventsMax || heldTotal.bytes >= Self.heldBytesMax }

    // MARK: - Events

    mutating func receiveSealed(_ slot: Int, _ name: String, _ data: InboundMessage.Data, _ turn: inout Turn) {
        let event = ChannelEncryption.Event(name: name, data: data)
        guard let encryption = encryptions[slot] else { return }
        guard encryption.held.isEmpty else {
            hold(event, slot)
            return
        }
        if deliver(event, slot, &turn) { return }
        guard encryption.refresh.phase == .idle, turn.now >= encryption.refreshableAt else {
            report(event, slot, decryptionFault(slot), &turn)
            return
        }
        hold(event, slot)
        encryptions[slot]?.heldUntil = turn.now + configuration.authTimeoutMs
        turn.effects.append(.keyRefreshBegan(channels[slot].reference))
        begin(.key(slot), &turn)
    }

    /// False: the key does not fit.
    private func deliver(_ event: ChannelEncryption.Event, _ slot: Int, _ turn: inout Turn) -> Bool {
        var memory = event.bytes
        switch memory.withUnsafeMutableBytes({ encryptions[slot]?.key?.open($0, length: $0.count) }) {
        case .opened(let count):
            turn.emit(
                .channelEvent(
                    channels[slot].reference, event: event.name, data: .string(Array(memory.suffix(count)))))
        case .unreadable(let problem):
            report(event, slot, Self.decryptionFault(channels[slot].name, problem), &turn)
        case .refused, nil:
            return false
        }
        return true
    }

    private func report(_ event: ChannelEncryption.Event, _ slot: Int, _ fault: Fault, _ turn: inout Turn) {
        turn.emit(
            .decryptionFailed(channels[slot].reference, channel: channels[slot].name, event: event.name, fault))
    }

    private static func decryptionFault(_ channel: String, _ problem: String) -> Fault {
        Fault(
            BIRD_ERR_DECRYPTION, .channel, field: "data", "An event on \(channel) could not be opened: \(problem).")
    }

    /// The key does not fit.
    private func decryptionFault(_ slot: Int) -> Fault {
        let name = channels[slot].name
        guard let refusal = encryptions[slot]?.refusal else {
            let problem =
                self[.key(slot)].phase == .idle
                ? "it does not fit the shared_secret that the authorizer has just given"
                : "the connection ended before the authorizer gave the key again"
            return Self.decryptionFault(name, problem)
        }
        var fault = refusal
        fault.status = BIRD_ERR_DECRYPTION
        fault.area = .channel
        fault.message =
            "An event on \(name) could not be opened, and asking for its key again failed: \(refusal.message)"
        return fault
    }

    // MARK: - Held events

    private mutating func hold(_ event: ChannelEncryption.Event, _ slot: Int) {
        encryptions[slot]?.held.append(event)
        heldTotal.add(event)
    }

    private mutating func takeHeld(_ slot: Int) -> [ChannelEncryption.Event] {
        let events = encryptions[slot]?.held ?? []
        encryptions[slot]?.held = []
        for event in events { heldTotal.remove(event) }
        return events
    }

    /// The waiting is over: everything is opened with the key that there is, or reported.
    mutating func settleHeld(_ slot: Int, _ turn: inout Turn) {
        for event in takeHeld(slot) where !deliver(event, slot, &turn) {
            report(event, slot, decryptionFault(slot), &turn)
        }
    }

    mutating func settleEverythingHeld(_ turn: inout Turn) {
        guard heldTotal.events > 0 else { return }
        for slot in encryptions.keys.sorted() { settleHeld(slot, &turn) }
    }

    // MARK: - Keys

    /// The authorizer has given the key again.
    mutating func keyCame(_ slot: Int, _ key: ChannelKey?, _ turn: inout Turn) {
        enter(.idle, .key(slot), &turn)
        encryptions[slot]?.refresh.renew()
        encryptions[slot]?.key = key
        encryptions[slot]?.refusal = nil
        encryptions[slot]?.refreshableAt = turn.now + Self.keyRefreshSpacingMs
        settleHeld(slot, &turn)
    }

    mutating func keyRefused(_ slot: Int, _ fault: Fault, _ turn: inout Turn) {
        encryptions[slot]?.refusal = fault
        settleHeld(slot, &turn)
    }

    /// The program has subscribed anew: a denial is final no more.
    mutating func allowKeyRefresh(_ slot: Int, _ turn: inout Turn) {
        guard self[.key(slot)].phase == .denied else { return }
        enter(.idle, .key(slot), &turn)
    }

    /// The channel is subscribed no more. The key stays: a late success may have it subscribed again.
    mutating func endKeyRefresh(_ slot: Int, _ turn: inout Turn) {
        guard encryptions[slot] != nil else { return }
        enter(.idle, .key(slot), &turn)
        _ = takeHeld(slot)
    }

    /// The program has left the channel, or the connection has ended.
    mutating func forgetKey(_ slot: Int, _ turn: inout Turn) {
        endKeyRefresh(slot, &turn)
        encryptions[slot] = nil
    }

    /// When whoever waits behind the applicant has waited long enough.
    func patienceEnd(of applicant: Applicant) -> Instant? {
        guard case .key(let slot) = applicant, let encryption = encryptions[slot], !encryption.held.isEmpty else {
            return nil
        }
        return encryption.heldUntil
    }
}
