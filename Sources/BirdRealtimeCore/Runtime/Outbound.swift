import Glibc

/// Frames on their way to the socket. Reactor thread only; the bound is kept by whoever adds.
struct Outbound {
    /// So much may wait when the answer to a ping joins it. Behind more, only the latest answer of each kind is kept until all has been
    /// written (RFC 6455 5.5.3): an edge that pings and does not read fills no memory.
    static let pongsBehindBytesMax = 65_536
    /// So much may wait of what the library writes by itself: pings, answers to pings and to what the edge sends. Beyond it the edge does
    /// not read, and the connection is given up.
    static let ownBytesMax = 1_048_576

    private(set) var bytes: [UInt8] = []
    private var written = 0
    /// The frames that wait, in order. Only the bytes of an upgrade have no mark.
    private var marks: [Mark] = []
    /// Of the frames that wait: the bytes of the library's own, and how many the program asked for (client events not among them).
    private(set) var ownBytes = 0
    private(set) var wishes = 0

    private struct Mark {
        var end: Int
        var bytes: Int
        /// What a client event was counted with; 0 for everything else.
        var cost = 0
        /// nil: a control frame.
        var kind: FrameKind?

        var isOwn: Bool { kind == nil || kind == .plain || kind == .pong }
        var isWish: Bool { kind == .awaited || kind == .leave }
    }

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
        /// Whole messages, without control frames.
        var messages = 0
    }

    var isEmpty: Bool { written == bytes.count }

    /// A message. `cost`: what a client event was counted with.
    mutating func append(_ payload: [UInt8], _ kind: FrameKind, cost: Int = 0, maskKey: UInt32) {
        let start = bytes.count
        FrameEncoder.append(opcode: .text, payload: payload, maskKey: maskKey, to: &bytes)
        mark(from: start, cost: kind == .clientEvent ? cost : 0, kind)
    }

    private mutating func mark(from start: Int, cost: Int = 0, _ kind: FrameKind?) {
        let mark = Mark(end: bytes.count, bytes: bytes.count - start, cost: cost, kind: kind)
        marks.append(mark)
        ownBytes += mark.isOwn ? mark.bytes : 0
        wishes += mark.isWish ? 1 : 0
    }

    private mutating func append(pong opcode: Opcode, _ payload: [UInt8], maskKey: UInt32) {
        guard opcode == .pong else { return append(payload, .pong, maskKey: maskKey) }
        let start = bytes.count
        FrameEncoder.append(opcode: opcode, payload: payload, maskKey: maskKey, to: &bytes)
        mark(from: start, nil)
    }

    /// The answer to a ping, as a control frame or as a message.
    mutating func appendPong(opcode: Opcode, _ payload: [UInt8], maskKey: UInt32) {
        if bytes.count - written <= Self.pongsBehindBytesMax {
            append(pong: opcode, payload, maskKey: maskKey)
        } else if opcode == .pong {
            owedPong = (payload, maskKey)
        } else {
            owedMessage = (payload, maskKey)
        }
    }

    private mutating func appendOwed() {
        if let owedPong { append(pong: .pong, owedPong.payload, maskKey: owedPong.maskKey) }
        if let owedMessage { append(pong: .text, owedMessage.payload, maskKey: owedMessage.maskKey) }
        (owedPong, owedMessage) = (nil, nil)
    }

    mutating func appendRaw(_ raw: ArraySlice<UInt8>) { bytes.append(contentsOf: raw) }

    mutating func appendClose(code: UInt16?, reason: String, maskKey: UInt32) {
        let start = bytes.count
        FrameEncoder.appendClose(code: code, reason: reason, maskKey: maskKey, to: &bytes)
        mark(from: start, nil)
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
            let mark = marks[finished]
            progress.cost += mark.cost
            progress.awaited += mark.kind == .awaited ? 1 : 0
            progress.messages += mark.kind == nil ? 0 : 1
            ownBytes -= mark.isOwn ? mark.bytes : 0
            wishes -= mark.isWish ? 1 : 0
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
        return (marks.count { $0.kind == .clientEvent }, marks.reduce(0) { $0 + $1.cost })
    }
}
