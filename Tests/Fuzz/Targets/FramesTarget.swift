import BirdRealtimeCore

/// A stream of frames, whole, byte by byte, and in pieces that its first bytes choose.
enum FramesTarget {
    private static let eventsMax = 4_096

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var choices = Choices(input)
        let messageBytesMax = choices.pick([0, 1, 125, 126, 1_000, 70_000, 16 << 20])
        let cuts = choices.bytes()
        let stream = choices.everything()

        let whole = try read(stream, messageBytesMax) { _ in stream.count }
        try require(
            try whole == read(stream, messageBytesMax) { cuts.isEmpty ? stream.count : Int(cuts[$0 % cuts.count]) + 1 },
            "other events in pieces")
        // What a reader of single bytes does again and again would make long inputs slow.
        guard stream.count <= 600 else { return }
        try require(try whole == read(stream, messageBytesMax) { _ in 1 }, "other events byte by byte")
    }

    /// What a reader of frames gets to see.
    private enum Event: Equatable {
        case message([UInt8], isBinary: Bool)
        case ping([UInt8])
        case pong([UInt8])
        case close(UInt16, String)
        case failure(UInt16)
    }

    /// `piece`: how long the piece of this number is.
    private static func read(
        _ stream: [UInt8], _ messageBytesMax: Int, _ piece: (Int) -> Int
    ) throws -> [Event] {
        var decoder = FrameDecoder(messageBytesMax: messageBytesMax)
        var events: [Event] = []
        var unread: [UInt8] = []
        var rest = stream[...]
        var pieces = 0
        while !rest.isEmpty {
            let count = piece(pieces)
            pieces += 1
            unread += rest.prefix(count)
            rest = rest.dropFirst(count)
            var start = 0
            while true {
                let (step, event) = try withCopy(unread[start...]) { bytes in
                    let step = decoder.next(bytes)
                    return (step, try Self.event(step, UnsafeRawBufferPointer(bytes), decoder.assembly))
                }
                if let event { events.append(event) }
                switch step {
                case .message(_, _, let consumed, _, _), .assembled(let consumed, _), .fragment(let consumed),
                    .ping(_, _, let consumed), .pong(_, _, let consumed), .close(_, _, let consumed):
                    try require(consumed > 0 && consumed <= unread.count - start, "consumes \(consumed)")
                    start += consumed
                case .needsMore(let bytes):
                    let have = unread.count - start
                    try require(
                        bytes > have && bytes <= FrameDecoder.headerBytesMax + max(messageBytesMax, 125),
                        "has \(have) and needs \(bytes)")
                case .failure: break
                }
                try require(decoder.assembly.count <= messageBytesMax, "collects \(decoder.assembly.count) bytes")
                try require(events.count <= eventsMax || stream.count > eventsMax, "makes events out of nothing")
                if case .needsMore = step { break }
                switch events.last {
                case .close, .failure: return events
                default: continue
                }
            }
            unread.removeFirst(start)
        }
        return events
    }

    private static func event(
        _ step: FrameDecoder.Step, _ bytes: UnsafeRawBufferPointer, _ assembly: [UInt8]
    ) throws -> Event? {
        func part(_ offset: Int, _ length: Int) throws -> [UInt8] {
            try require(offset >= 0 && length >= 0 && offset + length <= bytes.count, "points outside of its bytes")
            return Array(bytes[offset..<(offset + length)])
        }
        switch step {
        case .message(let offset, let length, _, let isValidUTF8, let isBinary):
            return try message(try part(offset, length), isChecked: isValidUTF8, isBinary: isBinary)
        case .assembled(_, let isBinary): return try message(assembly, isChecked: true, isBinary: isBinary)
        case .ping(let offset, let length, _): return .ping(try part(offset, length))
        case .pong(let offset, let length, _): return .pong(try part(offset, length))
        case .close(let code, let reason, _):
            try require(code == 1005 || CloseCode.isValid(code), "takes the close code \(code)")
            return .close(code, reason)
        case .failure(let code, _):
            try require([1002, 1007, 1009].contains(code), "fails with \(code)")
            return .failure(code)
        case .fragment, .needsMore: return nil
        }
    }

    /// Text that came whole is left to the scanner, which finds what is not UTF-8.
    private static func message(_ bytes: [UInt8], isChecked: Bool, isBinary: Bool) throws -> Event {
        if isBinary { return .message(bytes, isBinary: true) }
        let isText = String(validating: bytes, as: UTF8.self) != nil
        try require(isText || !isChecked, "calls text what is none")
        return isText ? .message(bytes, isBinary: false) : .failure(1007)
    }
}
