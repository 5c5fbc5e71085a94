import BirdRealtimeCore
public import CBirdRealtimeABI

@c @implementation
public func bird_client_create(
    _ options: OpaquePointer!, _ client: UnsafeMutablePointer<OpaquePointer?>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let target = try out(client, "client")
        target.pointee = nil
        target.pointee = OpaquePointer(bitPattern: try Client(optionsValue(options)).handle)
    }
}

@c @implementation
public func bird_client_destroy(_ client: OpaquePointer!) -> bird_status {
    guard let client else { return BIRD_OK }
    if let inherited = Handles.disinherit(UInt(bitPattern: client), .client) as? Client {
        inherited.destroyInherited()
        return BIRD_OK
    }
    return attempt { () throws(Fault) in
        guard try object(client, .client, as: Client.self).destroy() else {
            throw Fault(BIRD_ERR_HANDLE, .argument, field: "client", "The client is being destroyed already.")
        }
    }
}

@c @implementation
public func bird_client_connect(_ client: OpaquePointer!, _ error: UnsafeMutablePointer<OpaquePointer?>!) -> bird_status
{
    attempt(error) { () throws(Fault) in try CBirdRealtime.client(client).connect() }
}

@c @implementation
public func bird_client_disconnect(_ client: OpaquePointer!) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.client(client).disconnect() }
}

@c @implementation
public func bird_client_retry_now(_ client: OpaquePointer!) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.client(client).retryNow() }
}

@c @implementation
public func bird_client_set(
    _ client: OpaquePointer!, _ key: UnsafePointer<CChar>!, _ value: UnsafePointer<CChar>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        let key = try text(key, "key", malformed: BIRD_ERR_OPTION)
        guard let value = try optionalText(value, key, malformed: BIRD_ERR_VALUE) else { throw missing("value") }
        try client.set(key, value)
    }
}

@c @implementation
public func bird_client_set_int(
    _ client: OpaquePointer!, _ key: UnsafePointer<CChar>!, _ value: Int64,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        try client.set(text(key, "key", malformed: BIRD_ERR_OPTION), value)
    }
}

@c @implementation
public func bird_client_network_hint(_ client: OpaquePointer!, _ hint: Int32) -> bird_status {
    attempt { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        guard let hint = NetworkHint(rawValue: hint) else {
            throw Fault(BIRD_ERR_ARGUMENT, .argument, field: "hint", "There is no network hint \(hint).")
        }
        try client.networkHint(hint)
    }
}

@c @implementation
public func bird_client_wait(_ client: OpaquePointer!, _ state: Int32, _ timeout_ms: Int64) -> bird_status {
    attempt { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        guard let wanted = ConnectionState(rawValue: state) else {
            throw Fault(BIRD_ERR_ARGUMENT, .argument, field: "state", "There is no state \(state).")
        }
        try client.wait(for: wanted, timeoutMs: timeout_ms)
    }
}

@c @implementation
public func bird_client_flush(_ client: OpaquePointer!, _ timeout_ms: Int64) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.client(client).flush(timeoutMs: timeout_ms) }
}

@c @implementation
public func bird_client_close(_ client: OpaquePointer!, _ timeout_ms: Int64) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.client(client).close(timeoutMs: timeout_ms) }
}

@c @implementation
public func bird_client_state(_ client: OpaquePointer!, _ state: UnsafeMutablePointer<Int32>!) -> bird_status {
    attempt { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        try out(state, "state").pointee = client.state.rawValue
    }
}

@c @implementation
public func bird_state_name(_ state: Int32) -> UnsafePointer<CChar>! {
    switch ConnectionState(rawValue: state) {
    case .initialized: constant("initialized")
    case .connecting: constant("connecting")
    case .connected: constant("connected")
    case .unavailable: constant("unavailable")
    case .disconnected: constant("disconnected")
    case .failed: constant("failed")
    case nil: constant("unknown")
    }
}

@c @implementation
public func bird_client_connection_id(
    _ client: OpaquePointer!, _ buffer: UnsafeMutablePointer<CChar>!, _ size: Int, _ length: UnsafeMutablePointer<Int>!
) -> bird_status {
    attempt { () throws(Fault) in try copyOut(CBirdRealtime.client(client).connectionID, buffer, size, length) }
}

@c @implementation
public func bird_client_subscribe(
    _ client: OpaquePointer!, _ name: UnsafePointer<CChar>!, _ tag: UInt64,
    _ channel: UnsafeMutablePointer<OpaquePointer?>!, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        let target = try out(channel, "channel")
        target.pointee = nil
        target.pointee = OpaquePointer(
            bitPattern: try client.subscribe(text(name, "name", malformed: BIRD_ERR_NAME), operation: tag).handle)
    }
}

@c @implementation
public func bird_client_signin(
    _ client: OpaquePointer!, _ flags: UInt32, _ tag: UInt64, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        guard flags & ~BIRD_SIGNIN_REFRESH == 0 else {
            throw Fault(
                BIRD_ERR_ARGUMENT, .argument, field: "flags", "There are flags that this version does not know.")
        }
        try client.signin(refresh: flags & BIRD_SIGNIN_REFRESH != 0, operation: tag)
    }
}

@c @implementation
public func bird_client_member_id(
    _ client: OpaquePointer!, _ buffer: UnsafeMutablePointer<CChar>!, _ size: Int, _ length: UnsafeMutablePointer<Int>!
) -> bird_status {
    attempt { () throws(Fault) in try copyOut(CBirdRealtime.client(client).memberID, buffer, size, length) }
}

@c @implementation
public func bird_client_member_channel(
    _ client: OpaquePointer!, _ channel: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        let target = try out(channel, "channel")
        target.pointee = OpaquePointer(bitPattern: try client.memberChannelReference().handle)
    }
}

@c @implementation
public func bird_client_statistics(
    _ client: OpaquePointer!, _ statistics: UnsafeMutablePointer<bird_statistics>!
) -> bird_status {
    attempt { () throws(Fault) in
        let client = try CBirdRealtime.client(client)
        let target = try out(statistics, "statistics")
        try fill(target, client.statistics, Int(target.pointee.struct_size), "bird_statistics")
    }
}
