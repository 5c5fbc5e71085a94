import BirdRealtimeCore
public import CBirdRealtimeABI

@c @implementation
public func bird_channel_release(_ channel: OpaquePointer!) {
    _ = attempt { () throws(Fault) in try object(channel, .channel, as: Channel.self).release() }
}

@c @implementation
public func bird_channel_unsubscribe(_ channel: OpaquePointer!) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.channel(channel).unsubscribe() }
}

@c @implementation
public func bird_channel_trigger(
    _ channel: OpaquePointer!, _ event: UnsafePointer<CChar>!, _ data: UnsafeRawPointer!, _ length: Int,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let channel = try CBirdRealtime.channel(channel)
        let limit = channel.client.options.clientEventBytesMax
        try channel.trigger(text(event, "event", malformed: BIRD_ERR_NAME), payload(data, length, limit: limit, "data"))
    }
}

@c @implementation
public func bird_channel_state(_ channel: OpaquePointer!, _ state: UnsafeMutablePointer<Int32>!) -> bird_status {
    attempt { () throws(Fault) in
        let channel = try CBirdRealtime.channel(channel)
        try out(state, "state").pointee = channel.state.rawValue
    }
}

@c @implementation
public func bird_channel_kind(_ channel: OpaquePointer!, _ kind: UnsafeMutablePointer<Int32>!) -> bird_status {
    attempt { () throws(Fault) in
        let channel = try CBirdRealtime.channel(channel)
        try out(kind, "kind").pointee = channel.kind.rawValue
    }
}

@c @implementation
public func bird_channel_name(
    _ channel: OpaquePointer!, _ buffer: UnsafeMutablePointer<CChar>!, _ size: Int, _ length: UnsafeMutablePointer<Int>!
) -> bird_status {
    attempt { () throws(Fault) in try copyOut(CBirdRealtime.channel(channel).currentName, buffer, size, length) }
}

@c @implementation
public func bird_channel_set_tag(_ channel: OpaquePointer!, _ tag: UInt64) -> bird_status {
    attempt { () throws(Fault) in try subscribed(channel).setTag(tag) }
}

/// A channel that was not unsubscribed.
private func subscribed(_ handle: OpaquePointer?) throws(Fault) -> Channel {
    let channel = try CBirdRealtime.channel(handle)
    guard !channel.isUnsubscribed else { throw Channel.unsubscribedFault }
    return channel
}

/// A channel with a roster.
private func presence(_ handle: OpaquePointer?) throws(Fault) -> Channel {
    let channel = try subscribed(handle)
    guard channel.kind == .presence else {
        throw Fault(BIRD_ERR_UNSUPPORTED, .channel, field: "channel", "Only presence channels have members.")
    }
    return channel
}

@c @implementation
public func bird_channel_my_id(
    _ channel: OpaquePointer!, _ buffer: UnsafeMutablePointer<CChar>!, _ size: Int, _ length: UnsafeMutablePointer<Int>!
) -> bird_status {
    attempt { () throws(Fault) in try copyOut(presence(channel).myID, buffer, size, length) }
}

@c @implementation
public func bird_channel_member_count(_ channel: OpaquePointer!, _ count: UnsafeMutablePointer<Int>!) -> bird_status {
    attempt { () throws(Fault) in
        let channel = try presence(channel)
        try out(count, "count").pointee = channel.memberCount
    }
}

@c @implementation
public func bird_channel_members(
    _ channel: OpaquePointer!, _ members: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt { () throws(Fault) in
        let channel = try presence(channel)
        let target = try out(members, "members")
        target.pointee = OpaquePointer(Unmanaged.passRetained(MembersObject(channel.rosterCopy)).toOpaque())
    }
}

@c @implementation
public func bird_members_count(_ members: OpaquePointer!) -> Int { members.map { MembersObject.at($0).count } ?? 0 }

@c @implementation
public func bird_members_id(_ members: OpaquePointer!, _ index: Int) -> UnsafePointer<CChar>! {
    members.flatMap { MembersObject.at($0).id(index) } ?? constant("")
}

@c @implementation
public func bird_members_id_length(_ members: OpaquePointer!, _ index: Int) -> Int {
    members.map { MembersObject.at($0).idLength(index) } ?? 0
}

@c @implementation
public func bird_members_info(_ members: OpaquePointer!, _ index: Int) -> UnsafePointer<CChar>! {
    members.flatMap { MembersObject.at($0).info(index) } ?? constant("")
}

@c @implementation
public func bird_members_free(_ members: OpaquePointer!) {
    guard let members else { return }
    Unmanaged<MembersObject>.fromOpaque(UnsafeRawPointer(members)).release()
}
