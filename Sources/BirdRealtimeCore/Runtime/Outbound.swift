import Glibc

/// Frames on their way to the socket. Reactor thread only; the bound is kept by whoever adds.
struct Outbound {
    private(set) var bytes: [UInt8] = []
    private var written = 0
    /// Where each waiting client event ends, and what it was counted with.
    private var clientEvents: [(end: Int, cost: Int)] = []

    var isEmpty: Bool { written == bytes.count }

    mutating func append(opcode: Opcode, _ payload: [UInt8], maskKey: UInt32, clientEventCost: Int?) {
        payload.withUnsafeBytes { FrameEncoder.append(opcode: opcode, payload: $0, maskKey: maskKey, to: &bytes) }
        if let clientEventCost { clientEvents.append((bytes.count, clientEventCost)) }
    }

    mutating func appendRaw(_ raw: ArraySlice<UInt8>) { bytes.append(contentsOf: raw) }

    mutating func appendClose(code: UInt16?, reason: String, maskKey: UInt32) {
        FrameEncoder.appendClose(code: code, reason: reason, maskKey: maskKey, to: &bytes)
    }

    /// Writes as much as the stream takes. nil: all good, whether or not something is left. Returns the cost of client events written.
    mutating func flush(to stream: Stream) -> (failure: Fault?, written: Int, costWritten: Int) {
        let before = written
        var failure: Fault?
        writing: while written < bytes.count {
            let outcome = bytes.withUnsafeBytes { stream.write(UnsafeRawBufferPointer(rebasing: $0[written...])) }
            switch outcome {
            case .bytes(let count): written += count
            case .wouldBlock, .end: break writing
            case .failed(let fault):
                failure = fault
                break writing
            }
        }
        let done = written - before
        var cost = 0
        var finished = 0
        while finished < clientEvents.count, clientEvents[finished].end <= written {
            cost += clientEvents[finished].cost
            finished += 1
        }
        clientEvents.removeFirst(finished)
        if written == bytes.count {
            bytes.removeAll(keepingCapacity: bytes.capacity <= 16_384)
            for position in clientEvents.indices { clientEvents[position].end -= written }
            written = 0
        }
        return (failure, done, cost)
    }

    /// Keeps no memory for what is to come.
    mutating func giveBack() { if isEmpty { bytes = [] } }

    /// Forgets everything; returns the number of client events that were lost and their cost.
    mutating func drop() -> (lost: Int, cost: Int) {
        defer { self = Outbound() }
        return (clientEvents.count, clientEvents.reduce(0) { $0 + $1.cost })
    }
}
