import Glibc

/// Frames on their way to the socket. Reactor thread only; the bound is kept by whoever adds.
struct Outbound {
    /// So much may wait when the answer to a ping joins it. Behind more, only the latest answer of each kind is kept until all has been
    /// written (RFC 6455 5.5.3): an edge that pings and does not read fills no memory.
    static let pongsBehindBytesMax = 65_536

    private(set) var bytes: [UInt8] = []
    private var written = 0
    /// Where each waiting client event and each awaited frame ends; a client event costs what it was counted with, nothing else does.
    private var marks: [(end: Int, cost: Int)] = []

    /// The latest answers that do not wait among `bytes`; a control frame and a message.
    private var owedPong: (payload: [UInt8], maskKey: UInt32)?
    private var owedMessage: (payload: [UInt8], maskKey: UInt32)?

    /// What a flush has done.
    struct Progress {
        /// nil: all good, whether or not something is left.
        var failure: Fault?
        var bytes = 0
        /// Of the client events written.
        var cost = 0
        /// Frames whose writing somebody waits for.
        var awaited = 0
    }

    var isEmpty: Bool { written == bytes.count }

    mutating func append(opcode: Opcode, _ payload: [UInt8], maskKey: UInt32) {
        payload.withUnsafeBytes { FrameEncoder.append(opcode: opcode, payload: $0, maskKey: maskKey, to: &bytes) }
    }

    /// The answer to a ping, as a control frame or as a message.
    mutating func appendPong(opcode: Opcode, _ payload: [UInt8], maskKey: UInt32) {
        if bytes.count - written <= Self.pongsBehindBytesMax {
            append(opcode: opcode, payload, maskKey: maskKey)
        } else if opcode == .pong {
            owedPong = (payload, maskKey)
        } else {
            owedMessage = (payload, maskKey)
        }
    }

    private mutating func appendOwed() {
        if let owedPong { append(opcode: .pong, owedPong.payload, maskKey: owedPong.maskKey) }
        if let owedMessage { append(opcode: .text, owedMessage.payload, maskKey: owedMessage.maskKey) }
        (owedPong, owedMessage) = (nil, nil)
    }

    /// What was appended last is a client event that was counted with this.
    mutating func markClientEvent(cost: Int) { marks.append((bytes.count, cost)) }

    /// Somebody waits for what was appended last to be written.
    mutating func markAwaited() { marks.append((bytes.count, 0)) }

    mutating func appendRaw(_ raw: ArraySlice<UInt8>) { bytes.append(contentsOf: raw) }

    mutating func appendClose(code: UInt16?, reason: String, maskKey: UInt32) {
        FrameEncoder.appendClose(code: code, reason: reason, maskKey: maskKey, to: &bytes)
    }

    /// Writes as much as the stream takes.
    mutating func flush(to stream: Stream) -> Progress {
        let before = written
        var progress = Progress()
        writing: while written < bytes.count {
            let outcome = bytes.withUnsafeBytes { stream.write(UnsafeRawBufferPointer(rebasing: $0[written...])) }
            switch outcome {
            case .bytes(let count):
                written += count
                if written == bytes.count { appendOwed() }
            case .wouldBlock, .end: break writing
            case .failed(let fault):
                progress.failure = fault
                break writing
            }
        }
        progress.bytes = written - before
        var finished = 0
        while finished < marks.count, marks[finished].end <= written {
            progress.cost += marks[finished].cost
            progress.awaited += marks[finished].cost == 0 ? 1 : 0
            finished += 1
        }
        marks.removeFirst(finished)
        if written == bytes.count {
            bytes.removeAll(keepingCapacity: bytes.capacity <= 16_384)
            written = 0
        } else if written > bytes.count / 2 {
            // Behind a socket that never takes everything, all that it ever took would be kept. Less moves than has gone.
            bytes.removeFirst(written)
            for index in marks.indices { marks[index].end -= written }
            written = 0
        }
        return progress
    }

    /// Keeps no memory for what is to come.
    mutating func giveBack() { if isEmpty { bytes = [] } }

    /// Forgets everything; returns the number of client events that were lost and their cost.
    mutating func drop() -> (lost: Int, cost: Int) {
        defer { self = Outbound() }
        return (marks.count { $0.cost > 0 }, marks.reduce(0) { $0 + $1.cost })
    }
}
