import BirdRealtimeCore
public import CBirdRealtimeABI

@c @implementation
public func bird_options_set_log(
    _ options: OpaquePointer!, _ handler: bird_log_handler!, _ user_data: UnsafeMutableRawPointer!,
    _ destructor: bird_destructor!
) -> bird_status {
    var isTaken = false
    let status = attempt { () throws(Fault) in
        guard let handler else { throw missing("handler") }
        isTaken = true
        // From here on the destructor runs when the handler is let go of.
        let added = LogHandler(handler, userData: user_data, destructor: destructor)
        try setLogHandler(options, added)
    }
    if !isTaken { destructor?(user_data) }
    return status
}

@c @implementation
public func bird_log_level_name(_ level: Int32) -> UnsafePointer<CChar>! {
    switch LogLevel(rawValue: level) {
    case .off: constant("off")
    case .error: constant("error")
    case .warn: constant("warn")
    case .info: constant("info")
    case .verbose: constant("verbose")
    case nil: constant("unknown")
    }
}

@c @implementation
public func bird_log_area_name(_ area: Int32) -> UnsafePointer<CChar>! {
    switch LogArea(rawValue: area) {
    case .connection: constant("connection")
    case .channel: constant("channel")
    case .authorization: constant("authorization")
    case .signin: constant("signin")
    case .delivery: constant("delivery")
    case .network: constant("network")
    case .wire: constant("wire")
    case .process: constant("process")
    case nil: constant("unknown")
    }
}

@c @implementation
public func bird_client_dump(
    _ client: OpaquePointer!, _ buffer: UnsafeMutablePointer<CChar>!, _ size: Int, _ length: UnsafeMutablePointer<Int>!
) -> bird_status {
    attempt { () throws(Fault) in
        // One that was closed, too.
        try copyOut(object(client, .client, as: Client.self).dump, buffer, size, length)
    }
}
