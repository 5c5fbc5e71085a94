import BirdRealtimeCore
public import CBirdRealtimeABI

private func request(_ handle: OpaquePointer?) throws(Fault) -> Request {
    do throws(Fault) {
        return try object(handle, .request, as: Request.self)
    } catch let fault {
        // The handle of a request ends with its answer or its deadline.
        guard fault.status == BIRD_ERR_HANDLE, Handles.hasBeenIssued(UInt(bitPattern: handle), .request) else {
            throw fault
        }
        throw Request.overFault
    }
}

@c @implementation
public func bird_request_authorize(
    _ request: OpaquePointer!, _ auth: UnsafePointer<CChar>!, _ member_data: UnsafePointer<CChar>!,
    _ shared_secret: UnsafePointer<CChar>!, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        try CBirdRealtime.request(request).authorize(
            auth: text(auth, "auth"), memberData: optionalText(member_data, "member_data"),
            sharedSecret: optionalText(shared_secret, "shared_secret"))
    }
}

@c @implementation
public func bird_request_headers(
    _ request: OpaquePointer!, _ headers: UnsafePointer<bird_header>!, _ count: Int,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let request = try CBirdRealtime.request(request)
        guard (0...HTTPHeaders.countMax).contains(count) else {
            throw Fault(
                BIRD_ERR_SIZE, .argument, field: "count", "There are more than \(HTTPHeaders.countMax) headers.")
        }
        if headers == nil, count != 0 { throw missing("headers") }
        var given: [(name: String, value: String)] = []
        for (index, header) in UnsafeBufferPointer(start: headers, count: count).enumerated() {
            given.append(
                (try text(header.name, "headers[\(index)].name"), try text(header.value, "headers[\(index)].value")))
        }
        try request.addHeaders(given)
    }
}

@c @implementation
public func bird_request_proceed(
    _ request: OpaquePointer!, _ delay_ms: Int64, _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in try CBirdRealtime.request(request).proceed(delayMs: delay_ms) }
}

@c @implementation
public func bird_request_fail(
    _ request: OpaquePointer!, _ retriable: Int32, _ message: UnsafePointer<CChar>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let request = try CBirdRealtime.request(request)
        guard retriable == 0 || retriable == 1 else {
            throw Fault(BIRD_ERR_ARGUMENT, .argument, field: "retriable", "Argument retriable must be 0 or 1.")
        }
        try request.fail(isRetriable: retriable != 0, message: optionalText(message, "message"))
    }
}
