import BirdRealtimeCore
public import CBirdRealtimeABI

@c @implementation
public func bird_set_delivery_threads(_ threads: Int32) -> bird_status {
    attempt { () throws(Fault) in try DeliveryPool.setThreads(threads) }
}

@c @implementation
public func bird_data_is_json(_ data: UnsafeRawPointer!, _ length: Int) -> Int32 {
    guard let data, length >= -1 else { return 0 }
    var count = length
    if count == -1 {
        let bytes = data.assumingMemoryBound(to: UInt8.self)
        count = 0
        while bytes[count] != 0 { count += 1 }
    }
    return JSONValidator.isValue(UnsafeRawBufferPointer(start: data, count: count)) ? 1 : 0
}
