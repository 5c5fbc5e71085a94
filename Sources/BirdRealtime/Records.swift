import BirdRealtimeCore
import CBirdRealtimeABI

// What records say, in the types of this module.

/// Ids may contain a NUL.
private func string(_ pointer: UnsafePointer<CChar>?, _ length: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: pointer, count: pointer == nil ? 0 : length), as: UTF8.self)
}

extension bird_record {
    var channelName: String { text(channel_name, channel_name_length) }
    var eventName: String { text(event, event_length) }

    /// Who sent a client event, nil if the edge does not say.
    var senderID: String? { sender_length == 0 ? nil : text(sender, sender_length) }

    private func text(_ pointer: UnsafePointer<CChar>?, _ length: UInt32) -> String { string(pointer, Int(length)) }

    /// The payload of the event, nil if it has none.
    var payload: JSONValue? {
        switch Int32(bitPattern: kind) {
        case BIRD_RECORD_SUBSCRIBED: detail?.load(as: bird_subscription.self).success(isPresence: isOnPresenceChannel)
        // What the edge said, as it came, or what the library found.
        case BIRD_RECORD_SUBSCRIPTION_ERROR: data(data) ?? detail?.load(as: bird_subscription.self).failure
        case BIRD_RECORD_MEMBER_ADDED, BIRD_RECORD_MEMBER_REMOVED: member?.json
        default: data(data)
        }
    }

    private var isOnPresenceChannel: Bool { ChannelKind.of(channelName) == .presence }

    /// The member that a record is about; its data are the member_info.
    private var member: Member? {
        guard let member = detail?.load(as: bird_member.self) else { return nil }
        return Member(memberId: string(member.id, Int(member.id_length)), memberInfo: data(data))
    }

    private func data(_ pointer: UnsafePointer<CChar>?) -> JSONValue? {
        guard let pointer, data_kind != UInt32(BIRD_DATA_NONE) else { return nil }
        let bytes = UnsafeRawBufferPointer(start: pointer, count: data_length)
        return data_kind == UInt32(BIRD_DATA_VALUE) ? JSONValue(json: bytes) : JSONValue(payload: bytes)
    }

    var connectionChange: ConnectionChange? {
        detail.map { ConnectionChange($0.load(as: bird_state_change.self)) }
    }

    /// The ids in a record of the watchlist.
    var watchedMembers: [String] {
        guard let detail = detail?.load(as: bird_watchlist.self), let ids = detail.ids, let lengths = detail.id_lengths
        else { return [] }
        return (0..<Int(detail.id_count)).map { string(ids[$0], lengths[$0]) }
    }

    /// Why the subscription was denied, if it will not be tried again.
    var denial: RealtimeError? {
        guard let detail = detail?.load(as: bird_subscription.self), detail.will_retry == 0 else { return nil }
        return detail.error.map { RealtimeError($0) }
    }

    /// What a record of an error says.
    var failure: RealtimeError? { detail?.load(as: bird_failure.self).error.map { RealtimeError($0) } }
}

extension Member {
    /// As in the protocol's frames.
    var json: JSONValue {
        var members = [(name: "member_id", value: JSONValue(memberId))]
        if let memberInfo { members.append(("member_info", memberInfo)) }
        return JSONValue(members: members)
    }
}

extension bird_subscription {
    fileprivate func success(isPresence: Bool) -> JSONValue {
        var members: [(name: String, value: JSONValue)] = [
            ("is_resubscribe", JSONValue(is_resubscribe != 0)), ("interrupted_ms", JSONValue(interrupted_ms)),
        ]
        if isPresence {
            members.append(("my_id", JSONValue(string(my_id, my_id_length))))
            members.append(("member_count", JSONValue(member_count)))
        }
        return JSONValue(members: members)
    }

    fileprivate var failure: JSONValue? {
        error.map { RealtimeError($0).json(willRetry: will_retry != 0) }
    }
}

extension RealtimeError {
    /// As the data of `bird:subscription_error`.
    func json(willRetry: Bool) -> JSONValue {
        var members = [(name: "error", value: JSONValue(message)), ("will_retry", JSONValue(willRetry))]
        if let code { members.append(("code", JSONValue(code))) }
        if let httpStatus { members.append(("status", JSONValue(httpStatus))) }
        if let endpoint { members.append(("endpoint", JSONValue(endpoint))) }
        return JSONValue(members: members)
    }
}
