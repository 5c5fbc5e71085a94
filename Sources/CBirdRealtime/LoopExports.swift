import BirdRealtimeCore
public import CBirdRealtimeABI

private func loop(_ handle: OpaquePointer?) throws(Fault) -> HostLoop { try object(handle, .loop, as: HostLoop.self) }

@c @implementation
public func bird_loop_create(_ loop: UnsafeMutablePointer<OpaquePointer?>!) -> bird_status {
    attempt { () throws(Fault) in
        let target = try out(loop, "loop")
        target.pointee = nil
        target.pointee = OpaquePointer(bitPattern: try HostLoop().handle)
    }
}

@c @implementation
public func bird_loop_destroy(_ loop: OpaquePointer!) -> bird_status {
    guard let loop else { return BIRD_OK }
    if let inherited = Handles.disinherit(UInt(bitPattern: loop), .loop) as? HostLoop {
        inherited.closeInherited()
        return BIRD_OK
    }
    return attempt { () throws(Fault) in
        guard try CBirdRealtime.loop(loop).retire() else {
            throw Fault(
                BIRD_ERR_BUSY, .argument, field: "loop", "A client uses the loop, or a thread runs it.",
                isRetriable: true)
        }
    }
}

@c @implementation
public func bird_loop_fd(_ loop: OpaquePointer!, _ fd: UnsafeMutablePointer<Int32>!) -> bird_status {
    attempt { () throws(Fault) in
        let loop = try CBirdRealtime.loop(loop)
        try out(fd, "fd").pointee = loop.fd
    }
}

@c @implementation
public func bird_loop_deadline(_ loop: OpaquePointer!, _ deadline_ms: UnsafeMutablePointer<Int64>!) -> bird_status {
    attempt { () throws(Fault) in
        let loop = try CBirdRealtime.loop(loop)
        try out(deadline_ms, "deadline_ms").pointee = loop.idleMs() ?? -1
    }
}

@c @implementation
public func bird_loop_run_once(_ loop: OpaquePointer!, _ timeout_ms: Int64) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.loop(loop).runOnce(timeoutMs: timeout_ms) }
}

@c @implementation
public func bird_loop_wake(_ loop: OpaquePointer!) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.loop(loop).wake() }
}

@c @implementation
public func bird_options_set_loop(_ options: OpaquePointer!, _ loop: OpaquePointer!) -> bird_status {
    changeOptions(options, nil) { (target) throws(Fault) in target.loop = try CBirdRealtime.loop(loop) }
}
