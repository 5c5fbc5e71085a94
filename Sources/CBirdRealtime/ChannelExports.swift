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
        target.pointee = OpaquePointer(Unmanaged.passRetained(MembersObject(channel.members)).toOpaque())
    }
}

/// What a `bird_members` points to: like an error, an object that only its holder reads.
private final class MembersObject {
    private let strings: UnsafeMutablePointer<CChar>
    private var starts: [(id: Int, info: Int)] = []
    private var idLengths: [Int] = []

    init(_ members: [Member]) {
        let size = members.reduce(0) { $0 + $1.id.utf8.count + ($1.info?.count ?? 0) + 2 }
        strings = .allocate(capacity: max(1, size))
        var next = 0
        for member in members {
            let id = next
            next = copy(member.id.utf8, at: next)
            starts.append((id, next))
            idLengths.append(next - id - 1)
            next = copy(member.info ?? [], at: next)
        }
    }

    deinit { strings.deallocate() }

    private func copy(_ bytes: some Sequence<UInt8>, at start: Int) -> Int {
        var next = start
        for byte in bytes {
            strings[next] = CChar(bitPattern: byte)
            next += 1
        }
        strings[next] = 0
        return next + 1
    }

    static func at(_ pointer: OpaquePointer) -> MembersObject {
        Unmanaged<MembersObject>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue()
    }

    var count: Int { starts.count }

    func idLength(_ index: Int) -> Int { idLengths.indices.contains(index) ? idLengths[index] : 0 }

    func text(_ index: Int, _ part: (((id: Int, info: Int)) -> Int)) -> UnsafePointer<CChar> {
        starts.indices.contains(index) ? UnsafePointer(strings + part(starts[index])) : constant("")
    }
}

@c @implementation
public func bird_members_count(_ members: OpaquePointer!) -> Int { members.map { MembersObject.at($0).count } ?? 0 }

@c @implementation
public func bird_members_id(_ members: OpaquePointer!, _ index: Int) -> UnsafePointer<CChar>! {
    members.map { MembersObject.at($0).text(index) { $0.id } } ?? constant("")
}

@c @implementation
public func bird_members_id_length(_ members: OpaquePointer!, _ index: Int) -> Int {
    members.map { MembersObject.at($0).idLength(index) } ?? 0
}

@c @implementation
public func bird_members_info(_ members: OpaquePointer!, _ index: Int) -> UnsafePointer<CChar>! {
    members.map { MembersObject.at($0).text(index) { $0.info } } ?? constant("")
}

@c @implementation
public func bird_members_free(_ members: OpaquePointer!) {
    guard let members else { return }
    Unmanaged<MembersObject>.fromOpaque(UnsafeRawPointer(members)).release()
}
