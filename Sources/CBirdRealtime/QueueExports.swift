import BirdRealtimeCore
public import CBirdRealtimeABI

@c @implementation
public func bird_queue_create(_ queue: UnsafeMutablePointer<OpaquePointer?>!) -> bird_status {
    attempt { () throws(Fault) in
        let target = try out(queue, "queue")
        target.pointee = nil
        target.pointee = OpaquePointer(bitPattern: try RecordQueue().registerHandle())
    }
}

@c @implementation
public func bird_queue_destroy(_ queue: OpaquePointer!) -> bird_status {
    guard let queue else { return BIRD_OK }
    if let inherited = Handles.disinherit(UInt(bitPattern: queue), .queue) as? RecordQueue {
        inherited.closeInherited()
        return BIRD_OK
    }
    return attempt { () throws(Fault) in
        guard try CBirdRealtime.queue(queue).retire() else {
            throw Fault(
                BIRD_ERR_BUSY, .argument, field: "queue", "A client uses the queue, or a batch of it is held.",
                isRetriable: true)
        }
    }
}

@c @implementation
public func bird_queue_fd(_ queue: OpaquePointer!, _ fd: UnsafeMutablePointer<Int32>!) -> bird_status {
    attempt { () throws(Fault) in
        let queue = try CBirdRealtime.queue(queue)
        try out(fd, "fd").pointee = try queue.polledFD()
    }
}

@c @implementation
public func bird_queue_wait(_ queue: OpaquePointer!, _ timeout_ms: Int64) -> bird_status {
    attempt { () throws(Fault) in
        switch try CBirdRealtime.queue(queue).wait(timeoutMs: timeout_ms) {
        case .ready: break
        case .woken: throw Fault(BIRD_ERR_WOKEN, .argument, field: "queue", "bird_queue_wake() was called.")
        case .timeout:
            throw Fault(BIRD_ERR_TIMEOUT, .argument, field: "timeout_ms", "No record came in time.", isRetriable: true)
        }
    }
}

@c @implementation
public func bird_queue_wake(_ queue: OpaquePointer!) -> bird_status {
    attempt { () throws(Fault) in try CBirdRealtime.queue(queue).wake() }
}

@c @implementation
public func bird_queue_drain(
    _ queue: OpaquePointer!, _ batch: UnsafeMutablePointer<OpaquePointer?>!,
    _ records: UnsafeMutablePointer<UnsafePointer<bird_record>?>!, _ count: UnsafeMutablePointer<Int>!,
    _ stride: UnsafeMutablePointer<Int>!
) -> bird_status {
    attempt { () throws(Fault) in
        let queue = try CBirdRealtime.queue(queue)
        let batch = try out(batch, "batch")
        let records = try out(records, "records")
        let count = try out(count, "count")
        batch.pointee = nil
        records.pointee = nil
        count.pointee = 0
        try out(stride, "stride").pointee = RecordChunk.stride
        guard let chunk = try queue.drain() else { return }
        batch.pointee = OpaquePointer(bitPattern: chunk.handle)
        records.pointee = chunk.visibleRecords
        count.pointee = chunk.visibleCount
    }
}

@c @implementation
public func bird_batch_release(_ batch: OpaquePointer!) -> bird_status {
    attempt { () throws(Fault) in
        let chunk = try object(batch, .batch, as: RecordChunk.self)
        guard Handles.release(UInt(bitPattern: batch), .batch) else {
            throw Fault(BIRD_ERR_HANDLE, .argument, field: "batch", "The batch has been released before.")
        }
        chunk.release()
    }
}

@c @implementation
public func bird_queue_dispatch(
    _ queue: OpaquePointer!, _ records_max: Int, _ count: UnsafeMutablePointer<Int>!
) -> bird_status {
    attempt { () throws(Fault) in
        let queue = try CBirdRealtime.queue(queue)
        count?.pointee = 0
        let delivered = try queue.dispatch(recordsMax: records_max < 0 ? 0 : records_max)
        count?.pointee = delivered
    }
}
