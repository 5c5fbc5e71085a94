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
        throw Fault(
            BIRD_ERR_ANSWERED, .authorization, field: "request",
            "The request has been answered, or its deadline has passed.")
    }
}

@c @implementation
public func bird_request_authorize(
    _ request: OpaquePointer!, _ auth: UnsafePointer<CChar>!, _ member_data: UnsafePointer<CChar>!,
    _ shared_secret: UnsafePointer<CChar>!
) -> bird_status {
    attempt { () throws(Fault) in
        try CBirdRealtime.request(request).authorize(
            auth: text(auth, "auth"), memberData: optionalText(member_data, "member_data"),
            sharedSecret: optionalText(shared_secret, "shared_secret"))
    }
}

@c @implementation
public func bird_request_fail(
    _ request: OpaquePointer!, _ retriable: Int32, _ message: UnsafePointer<CChar>!
) -> bird_status {
    attempt { () throws(Fault) in
        let request = try CBirdRealtime.request(request)
        guard retriable == 0 || retriable == 1 else {
            throw Fault(BIRD_ERR_ARGUMENT, .argument, field: "retriable", "Argument retriable must be 0 or 1.")
        }
        try request.fail(
            isRetriable: retriable != 0, message: optionalText(message, "message") ?? "The authorizer refused.")
    }
}
