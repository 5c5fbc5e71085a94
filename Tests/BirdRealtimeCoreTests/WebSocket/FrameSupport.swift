import BirdRealtimeCore

/// What a reader of frames gets to see.
enum FrameEvent: Equatable {
    case message([UInt8], isBinary: Bool)
    case ping([UInt8])
    case pong([UInt8])
    case close(UInt16, String)
    case failure(UInt16)
}

enum LengthForm {
    case minimal
    case sixteenBit
    case sixtyFourBit
}

/// One frame of a server.
func serverFrame(
    _ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, reserved: UInt8 = 0, isMasked: Bool = false,
    form: LengthForm = .minimal
) -> [UInt8] {
    let count = payload.count
    let mask: UInt8 = isMasked ? 0x80 : 0
    var frame: [UInt8] = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
    if form == .minimal, count < 126 {
        frame.append(mask | UInt8(count))
    } else if form != .sixtyFourBit, count <= 0xFFFF {
        frame += [mask | 126, UInt8(count >> 8), UInt8(count & 0xFF)]
    } else {
        frame.append(mask | 127)
        frame += stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: count >> $0) }
    }
    if isMasked {
        frame += [0, 0, 0, 0]
    }
    return frame + payload
}

func serverFrame(_ opcode: UInt8, _ payload: String, isFinal: Bool = true) -> [UInt8] {
    serverFrame(opcode, Array(payload.utf8), isFinal: isFinal)
}

/// Reads a stream that arrives in pieces, as the runtime does.
struct FrameReader {
    private(set) var events: [FrameEvent] = []
    private var decoder: FrameDecoder
    private var unread: [UInt8] = []
    private var hasEnded = false
    /// Bytes that the decoder said it needs; it must not be wrong.
    private(set) var wanted = 1

    init(messageBytesMax: Int = 16 * 1024 * 1024) {
        decoder = FrameDecoder(messageBytesMax: messageBytesMax)
    }

    /// Text that is not UTF-8 ends the stream with 1007, whether the decoder finds it or the scanner.
    mutating func receive(_ bytes: some Sequence<UInt8>) {
        unread += bytes
        while !hasEnded {
            let (step, event) = step()
            switch step {
            case .needsMore(let bytes):
                precondition(bytes > unread.count, "no progress")
                wanted = bytes
                return
            case .message(_, _, let consumed, _, _), .assembled(let consumed, _), .fragment(let consumed),
                .ping(_, _, let consumed), .pong(_, _, let consumed), .close(_, _, let consumed):
                unread.removeFirst(consumed)
            case .failure: break
            }
            guard let event else { continue }
            events.append(event)
            switch event {
            case .close, .failure: hasEnded = true
            case .message, .ping, .pong: break
            }
        }
    }

    private mutating func step() -> (FrameDecoder.Step, FrameEvent?) {
        withGuarded(unread) { buffer in
            let step = decoder.next(buffer)
            let event: FrameEvent? =
                switch step {
                case .message(let offset, let length, _, let isValidUTF8, let isBinary):
                    Self.message(Array(buffer[offset..<(offset + length)]), isValidUTF8 || isBinary, isBinary)
                case .assembled(_, let isBinary): Self.message(decoder.assembly, true, isBinary)
                case .ping(let offset, let length, _): .ping(Array(buffer[offset..<(offset + length)]))
                case .pong(let offset, let length, _): .pong(Array(buffer[offset..<(offset + length)]))
                case .close(let code, let reason, _): .close(code, reason)
                case .failure(let code, _): .failure(code)
                case .fragment, .needsMore: nil
                }
            return (step, event)
        }
    }

    private static func message(_ bytes: [UInt8], _ isChecked: Bool, _ isBinary: Bool) -> FrameEvent {
        if isBinary { return .message(bytes, isBinary: true) }
        let isValid = String(validating: bytes, as: UTF8.self) != nil
        precondition(isValid || !isChecked, "text called valid that is not")
        return isValid ? .message(bytes, isBinary: false) : .failure(1007)
    }
}

func read(_ bytes: [UInt8], messageBytesMax: Int = 16 * 1024 * 1024) -> [FrameEvent] {
    var reader = FrameReader(messageBytesMax: messageBytesMax)
    reader.receive(bytes)
    return reader.events
}

func readBytewise(_ bytes: [UInt8], messageBytesMax: Int = 16 * 1024 * 1024) -> [FrameEvent] {
    var reader = FrameReader(messageBytesMax: messageBytesMax)
    for byte in bytes {
        reader.receive(CollectionOfOne(byte))
    }
    return reader.events
}

func textMessage(_ text: String) -> FrameEvent {
    .message(Array(text.utf8), isBinary: false)
}
