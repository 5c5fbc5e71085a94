import BirdRealtimeCore
public import CBirdRealtimeABI

// Errors are real objects, not handles: they are read often, and only by who holds them.

private func fault(_ error: OpaquePointer?) -> Fault? { error.map { ErrorObject.at($0).fault } }

@c @implementation
public func bird_error_status(_ error: OpaquePointer!) -> bird_status { fault(error)?.status ?? BIRD_OK }

@c @implementation
public func bird_error_area(_ error: OpaquePointer!) -> Int32 { fault(error)?.area.rawValue ?? 0 }

@c @implementation
public func bird_error_field(_ error: OpaquePointer!) -> UnsafePointer<CChar>! {
    error.map { ErrorObject.at($0).field } ?? constant("")
}

@c @implementation
public func bird_error_message(_ error: OpaquePointer!) -> UnsafePointer<CChar>! {
    error.map { ErrorObject.at($0).message } ?? constant("")
}

@c @implementation
public func bird_error_code(_ error: OpaquePointer!) -> Int32 { fault(error)?.code ?? 0 }

@c @implementation
public func bird_error_http_status(_ error: OpaquePointer!) -> Int32 { fault(error)?.httpStatus ?? 0 }

@c @implementation
public func bird_error_curl_code(_ error: OpaquePointer!) -> Int32 { fault(error)?.curlCode ?? 0 }

@c @implementation
public func bird_error_endpoint(_ error: OpaquePointer!) -> UnsafePointer<CChar>! {
    error.map { ErrorObject.at($0).endpoint } ?? constant("")
}

@c @implementation
public func bird_error_channel(_ error: OpaquePointer!) -> UnsafePointer<CChar>! {
    error.map { ErrorObject.at($0).channel } ?? constant("")
}

@c @implementation
public func bird_error_retriable(_ error: OpaquePointer!) -> Int32 { fault(error)?.isRetriable == true ? 1 : 0 }

@c @implementation
public func bird_error_free(_ error: OpaquePointer!) {
    guard let error else { return }
    Unmanaged<ErrorObject>.fromOpaque(UnsafeRawPointer(error)).release()
}
