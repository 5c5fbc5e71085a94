/// Takes the frames of a server apart (RFC 6455 section 5), without copying messages that came in one frame.
package struct FrameDecoder {
    /// What stands at the start of the buffer. Offsets count from there; `consumed` bytes have been dealt with once the step has
    /// been carried out.
    package enum Step: Equatable {
        /// A message in one frame. Text is not checked for UTF-8 unless `isValidUTF8` says so.
        case message(offset: Int, length: Int, consumed: Int, isValidUTF8: Bool, isBinary: Bool)
        /// The last fragment of a message, which is in `assembly` until the next call; text in valid UTF-8.
        case assembled(consumed: Int, isBinary: Bool)
        /// A fragment that is not the last; it has been copied.
        case fragment(consumed: Int)
        case ping(offset: Int, length: Int, consumed: Int)
        case pong(offset: Int, length: Int, consumed: Int)
        /// The close frame: 1005 when it has no code. Nothing after it counts (section 5.5.1).
        case close(code: UInt16, reason: String, consumed: Int)
        /// Nothing complete: call again with the same bytes and more, `bytes` in all as far as is known.
        case needsMore(bytes: Int)
        /// The server broke the rules; close with `code`. Do not call again.
        case failure(code: UInt16, reason: String)
    }

    /// Of the largest header a server may send.
    package static let headerBytesMax = 10
    /// An assembly buffer up to this size is kept for the next fragmented message.
    private static let assemblyBytesKept = 64 * 1024

    private enum Mode {
        /// Between messages, no frame looked at in part.
        case idle
        /// Between messages, `assembly` to be emptied.
        case assembled
        /// Between fragments of a message or in a frame looked at in part.
        case inMessage
    }

    /// The message whose last fragment was reported, until the next call.
    package private(set) var assembly: [UInt8] = []

    private let messageBytesMax: Int
    private var mode = Mode.idle
    /// The kind of the fragmented message; nil: none is open.
    private var fragmented: Opcode?
    private var validator = UTF8Validator()
    /// Payload bytes of the incomplete frame at the start of the buffer that the validator has seen.
    private var validated = 0

    /// A fragment has come, and not the last one yet.
    var isInsideMessage: Bool { fragmented != nil }

    package init(messageBytesMax: Int) {
        self.messageBytesMax = messageBytesMax
    }

    /// The next step of the unread bytes.
    @inline(__always)
    package mutating func next(_ buffer: UnsafeMutableRawBufferPointer) -> Step {
        // Nearly every frame: a whole text message that is complete.
        if case .idle = mode, buffer.count >= 4, let base = buffer.baseAddress {
            let bytes = UnsafeRawPointer(base)
            let head = UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self))
            if head & 0xFF == 0x81 {
                let short = Int(truncatingIfNeeded: (head >> 8) & 0xFF)
                let long = Int(truncatingIfNeeded: UInt16(truncatingIfNeeded: head >> 16).byteSwapped)
                if short < 126, short <= messageBytesMax, short &+ 2 <= buffer.count {
                    return .message(
                        offset: 2, length: short, consumed: short &+ 2, isValidUTF8: false, isBinary: false)
                }
                if short == 126, long >= 126, long <= messageBytesMax, long &+ 4 <= buffer.count {
                    return .message(offset: 4, length: long, consumed: long &+ 4, isValidUTF8: false, isBinary: false)
                }
            }
        }
        return nextSlowly(UnsafeRawBufferPointer(buffer))
    }

    @inline(never)
    private mutating func nextSlowly(_ buffer: UnsafeRawBufferPointer) -> Step {
        if case .assembled = mode {
            assembly.removeAll(keepingCapacity: assembly.capacity <= Self.assemblyBytesKept)
            mode = .idle
        }
        do throws(Violation) {
            guard let header = try Header(buffer) else {
                return .needsMore(bytes: Header.bytesNeeded(buffer))
            }
            return try step(header, buffer)
        } catch {
            return .failure(code: error.code, reason: error.reason)
        }
    }

    private mutating func step(_ header: Header, _ buffer: UnsafeRawBufferPointer) throws(Violation) -> Step {
        if !header.opcode.isControl {
            guard (header.opcode == .continuation) == (fragmented != nil) else {
                throw .protocolError(
                    fragmented == nil
                        ? "continuation frame without a message" : "new message inside a fragmented one")
            }
            // From the header alone, before anything is allocated for the payload.
            guard header.length <= messageBytesMax - assembly.count else {
                throw Violation(
                    code: CloseCode.tooBig, reason: "message of more than \(messageBytesMax) bytes")
            }
        }
        let available = min(header.length, buffer.count - header.size)
        let payload = UnsafeRawBufferPointer(rebasing: buffer[header.size..<(header.size + available)])
        guard available == header.length else {
            if !header.opcode.isControl {
                try validatePart(payload, of: header)
            }
            return .needsMore(bytes: header.size + header.length)
        }
        let consumed = header.size + header.length
        switch header.opcode {
        case .ping: return .ping(offset: header.size, length: header.length, consumed: consumed)
        case .pong: return .pong(offset: header.size, length: header.length, consumed: consumed)
        case .close: return try Self.close(payload, consumed: consumed)
        case .text, .binary, .continuation: return try data(payload, header, consumed: consumed)
        }
    }

    private func isText(_ header: Header) -> Bool {
        (fragmented ?? header.opcode) == .text
    }

    /// Text is refused at its first wrong byte, not only when the rest has come.
    private mutating func validatePart(_ payload: UnsafeRawBufferPointer, of header: Header) throws(Violation) {
        mode = .inMessage
        guard isText(header) else { return }
        try validate(payload)
    }

    private mutating func validate(_ payload: UnsafeRawBufferPointer) throws(Violation) {
        guard validator.append(UnsafeRawBufferPointer(rebasing: payload[validated...])) else {
            throw .invalidUTF8
        }
        validated = payload.count
    }

    /// A complete data frame.
    private mutating func data(
        _ payload: UnsafeRawBufferPointer, _ header: Header, consumed: Int
    ) throws(Violation) -> Step {
        let isText = isText(header)
        if header.isFinal, fragmented == nil {
            // The scanner checks the UTF-8, unless that has begun here.
            let isChecked = isText && validated > 0
            if isChecked {
                try validate(payload)
            }
            try endMessage()
            return .message(
                offset: header.size, length: header.length, consumed: consumed, isValidUTF8: isChecked,
                isBinary: !isText)
        }
        if isText {
            try validate(payload)
        }
        assembly.append(contentsOf: payload)
        validated = 0
        guard header.isFinal else {
            if fragmented == nil {
                fragmented = header.opcode
            }
            mode = .inMessage
            return .fragment(consumed: consumed)
        }
        try endMessage()
        mode = .assembled
        return .assembled(consumed: consumed, isBinary: !isText)
    }

    private mutating func endMessage() throws(Violation) {
        guard validator.isComplete else { throw .invalidUTF8 }
        fragmented = nil
        validated = 0
        mode = .idle
    }

    private static func close(_ payload: UnsafeRawBufferPointer, consumed: Int) throws(Violation) -> Step {
        guard payload.count > 0 else { return .close(code: CloseCode.noStatus, reason: "", consumed: consumed) }
        guard payload.count > 1 else { throw .protocolError("close frame with half a code") }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        guard CloseCode.isValid(code) else { throw .protocolError("close frame with code \(code)") }
        let reason = UnsafeRawBufferPointer(rebasing: payload[2...])
        guard UTF8Validator.isValid(reason) else { throw .invalidUTF8 }
        return .close(code: code, reason: String(decoding: reason, as: UTF8.self), consumed: consumed)
    }
}

/// A broken rule and the close code for it.
private struct Violation: Error {
    let code: UInt16
    let reason: String

    static let invalidUTF8 = Violation(code: CloseCode.invalidPayload, reason: "text that is not UTF-8")

    static func protocolError(_ reason: String) -> Violation {
        Violation(code: CloseCode.protocolError, reason: reason)
    }
}

private struct Header {
    let isFinal: Bool
    let opcode: Opcode
    let size: Int
    let length: Int

    /// nil: more bytes are needed. What is there is checked all the same.
    init?(_ buffer: UnsafeRawBufferPointer) throws(Violation) {
        guard buffer.count > 0 else { return nil }
        let first = buffer[0]
        isFinal = first & 0x80 != 0
        guard first & 0x70 == 0 else { throw .protocolError("reserved bits without an extension") }
        guard let opcode = Opcode(rawValue: first & 0x0F) else {
            throw .protocolError("unknown opcode \(first & 0x0F)")
        }
        self.opcode = opcode
        guard isFinal || !opcode.isControl else { throw .protocolError("fragmented control frame") }

        guard buffer.count > 1 else { return nil }
        guard buffer[1] & 0x80 == 0 else { throw .protocolError("masked frame from the server") }
        let short = Int(buffer[1] & 0x7F)
        guard short < 126 || !opcode.isControl else { throw .protocolError("control frame of more than 125 bytes") }

        size = Self.size(short)
        guard buffer.count >= size else { return nil }
        let number = buffer[2..<size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        switch short {
        case 126:
            guard number >= 126 else { throw .protocolError("length in more bytes than needed") }
        case 127:
            guard number > 0xFFFF else { throw .protocolError("length in more bytes than needed") }
        default: break
        }
        guard let long = Int(exactly: number) else { throw .protocolError("length with its highest bit set") }
        length = short < 126 ? short : long
    }

    static func bytesNeeded(_ buffer: UnsafeRawBufferPointer) -> Int {
        buffer.count > 1 ? size(Int(buffer[1] & 0x7F)) : 2
    }

    private static func size(_ short: Int) -> Int {
        switch short {
        case 126: 4
        case 127: 10
        default: 2
        }
    }
}
