import BirdRealtimeCore
public import CBirdRealtimeABI
import Glibc

@c @implementation
public func bird_set_delivery_threads(_ threads: Int32) -> bird_status {
    attempt { () throws(Fault) in try DeliveryPool.setThreads(threads) }
}

@c @implementation
public func bird_data_is_json(_ data: UnsafeRawPointer!, _ length: Int) -> Int32 {
    guard let data, length >= -1 else { return 0 }
    let count = length == -1 ? strlen(data.assumingMemoryBound(to: CChar.self)) : length
    return JSONValidator.isValue(UnsafeRawBufferPointer(start: data, count: count)) ? 1 : 0
}
