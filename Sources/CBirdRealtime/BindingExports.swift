import BirdRealtimeCore
public import CBirdRealtimeABI

/// Registers through `body`; when that is not even reached, the destructor still runs exactly once.
private func register(
    _ handler: bird_handler?, _ userData: UnsafeMutableRawPointer?, _ destructor: bird_destructor?,
    _ binding: UnsafeMutablePointer<UInt64>?, _ error: UnsafeMutablePointer<OpaquePointer?>?,
    _ body: (@escaping RecordHandler, inout Bool) throws(Fault) -> UInt64
) -> bird_status {
    binding?.pointee = 0
    // Set by the body once the core has taken over the user data, refusals included.
    var isTaken = false
    let status = attempt(error) { () throws(Fault) in
        guard let handler else { throw missing("handler") }
        let number = try body(handler, &isTaken)
        binding?.pointee = number
    }
    if !isTaken { destructor?(userData) }
    return status
}

@c @implementation
public func bird_channel_bind(
    _ channel: OpaquePointer!, _ event: UnsafePointer<CChar>!, _ handler: bird_handler!,
    _ user_data: UnsafeMutableRawPointer!, _ destructor: bird_destructor!, _ binding: UnsafeMutablePointer<UInt64>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    register(handler, user_data, destructor, binding, error) { (handler, isTaken) throws(Fault) in
        let channel = try CBirdRealtime.channel(channel)
        let name = try optionalBytes(event, "event", malformed: BIRD_ERR_NAME)
        isTaken = true
        return try channel.bind(name, handler, userData: user_data, destructor: destructor)
    }
}

@c @implementation
public func bird_client_bind(
    _ client: OpaquePointer!, _ event: UnsafePointer<CChar>!, _ handler: bird_handler!,
    _ user_data: UnsafeMutableRawPointer!, _ destructor: bird_destructor!, _ binding: UnsafeMutablePointer<UInt64>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    register(handler, user_data, destructor, binding, error) { (handler, isTaken) throws(Fault) in
        let client = try CBirdRealtime.client(client)
        let name = try optionalBytes(event, "event", malformed: BIRD_ERR_NAME)
        isTaken = true
        return try client.bind(name, handler, userData: user_data, destructor: destructor)
    }
}

@c @implementation
public func bird_client_observe(
    _ client: OpaquePointer!, _ kinds: UInt64, _ handler: bird_handler!, _ user_data: UnsafeMutableRawPointer!,
    _ destructor: bird_destructor!, _ binding: UnsafeMutablePointer<UInt64>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    register(handler, user_data, destructor, binding, error) { (handler, isTaken) throws(Fault) in
        let client = try CBirdRealtime.client(client)
        isTaken = true
        return try client.observe(kinds, handler, userData: user_data, destructor: destructor)
    }
}

@c @implementation
public func bird_client_unbind(_ client: OpaquePointer!, _ binding: UInt64) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.client(client).unbind(binding) }
}

@c @implementation
public func bird_channel_unbind_event(_ channel: OpaquePointer!, _ event: UnsafePointer<CChar>!) -> bird_status {
    attempt { () throws(Fault) in
        let channel = try CBirdRealtime.channel(channel)
        try channel.client.unbind(optionalBytes(event, "event", malformed: BIRD_ERR_NAME), of: channel)
    }
}

@c @implementation
public func bird_client_unbind_event(_ client: OpaquePointer!, _ event: UnsafePointer<CChar>!) -> bird_status {
    attempt { () throws(Fault) in
        try CBirdRealtime.client(client).unbind(optionalBytes(event, "event", malformed: BIRD_ERR_NAME))
    }
}

@c @implementation
public func bird_channel_unbind_all(_ channel: OpaquePointer!) -> bird_status {
    attempt { () throws(Fault) in
        let channel = try CBirdRealtime.channel(channel)
        try channel.client.unbindAll(of: channel)
    }
}

@c @implementation
public func bird_client_unbind_all(_ client: OpaquePointer!) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.client(client).unbindAll() }
}

@c @implementation
public func bird_client_intern(
    _ client: OpaquePointer!, _ event: UnsafePointer<CChar>!, _ event_id: UnsafeMutablePointer<UInt32>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        guard let name = try optionalBytes(event, "event", malformed: BIRD_ERR_NAME) else { throw missing("event") }
        try out(event_id, "event_id").pointee = try client.intern(name)
    }
}
