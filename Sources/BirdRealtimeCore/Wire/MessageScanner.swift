/// What `data` of a message is.
package enum DataKind: UInt8, Sendable {
    case none
    case string
    case value
}

/// Where the parts of one message stand (Bird protocol 3).
package struct ScannedMessage: Equatable, Sendable {
    package var event: Span
    /// nil: absent or not a string.
    package var channel: Span?
    package var dataKind: DataKind
    /// Between the quotes for `.string`, the whole value for `.value`, empty for `.none`.
    package var data: Span
    /// Who has sent a client event, where the edge says so (Bird protocol 14).
    package var sender: SenderSpan

    @inline(__always)
    package init(event: Span, channel: Span?, dataKind: DataKind, data: Span, sender: SenderSpan = .none) {
        self.event = event
        self.channel = channel
        self.dataKind = dataKind
        self.data = data
        self.sender = sender
    }
}

/// A short span in one word, since nearly no message has one.
package struct SenderSpan: Equatable, Sendable {
    /// Member ids have at most 128 characters. A longer one is not told.
    static let bytesMax = 0x7FFF

    private var word: UInt64

    package static let none = SenderSpan(word: 0)

    @inline(__always)
    package var isNone: Bool { word == 0 }

    private init(word: UInt64) {
        self.word = word
    }

    /// A string, or a number, which stands for its digits. `.none` for an empty one.
    init(_ span: Span) {
        guard 1...Self.bytesMax ~= span.length, 0...Int(UInt32.max) ~= span.offset else {
            word = 0
            return
        }
        word = UInt64(span.offset) << 32 | UInt64(span.length) << 1 | (span.isEscaped ? 1 : 0)
    }

    @inline(__always)
    package var span: Span {
        Span(offset: Int(word >> 32), length: Int(word & 0xFFFF_FFFF) >> 1, isEscaped: word & 1 == 1)
    }
}

package enum ScanOutcome: Equatable, Sendable {
    case message(ScannedMessage)
    /// No JSON object with a string `event`.
    case malformed
    /// Somewhere in the bytes, malformed or not.
    case invalidUTF8
}

/// Takes one text message apart in one pass, without changing or copying it.
package enum MessageScanner {
    /// `isValidUTF8`: the bytes have been checked already.
    package static func scan(_ bytes: UnsafeRawBufferPointer, isValidUTF8: Bool) -> ScanOutcome {
        guard var reader = JSONReader(bytes) else { return .malformed }
        guard let message = message(&reader) else {
            return isValidUTF8 || UTF8Validator.isValid(bytes) ? .malformed : .invalidUTF8
        }
        guard !reader.sawNonASCII || isValidUTF8 || UTF8Validator.isValid(bytes) else { return .invalidUTF8 }
        return .message(message)
    }

    private enum Key {
        case event
        case channel
        case data
        case sender
        case other
    }

    @inline(__always)
    private static func message(_ reader: inout JSONReader) -> ScannedMessage? {
        let absent = Span(offset: -1, length: 0, isEscaped: false)
        var event = absent
        var channel = absent
        var dataKind = DataKind.none
        var data = Span(offset: 0, length: 0, isEscaped: false)
        var sender = SenderSpan.none

        reader.skipWhitespace()
        guard reader.take(UInt8(ascii: "{")) else { return nil }
        reader.skipWhitespace()
        if !reader.take(UInt8(ascii: "}")) {
            while true {
                reader.skipWhitespace()
                guard let key = key(&reader) else { return nil }
                reader.skipWhitespace()
                guard reader.take(UInt8(ascii: ":")) else { return nil }
                reader.skipWhitespace()
                // The last of duplicate keys wins, whatever its type.
                let isString = reader.current == UInt8(ascii: "\"")
                var span: Span
                if isString {
                    guard let string = reader.string() else { return nil }
                    span = string
                } else {
                    let start = reader.position
                    guard reader.skipValue(depth: 1) else { return nil }
                    span = Span(offset: start, length: reader.position &- start, isEscaped: false)
                }
                switch key {
                case .event: event = isString ? span : absent
                case .channel: channel = isString ? span : absent
                case .data:
                    dataKind = isString ? .string : .value
                    data = span
                case .sender:
                    let first = reader.bytes[span.offset]
                    let isNumber = !isString && (ASCII.isDigit(first) || first == UInt8(ascii: "-"))
                    sender = isString || isNumber ? SenderSpan(span) : .none
                case .other: break
                }
                reader.skipWhitespace()
                if reader.take(UInt8(ascii: ",")) { continue }
                guard reader.take(UInt8(ascii: "}")) else { return nil }
                break
            }
        }
        reader.skipWhitespace()
        guard reader.isAtEnd, event.offset >= 0 else { return nil }
        return ScannedMessage(
            event: event, channel: channel.offset >= 0 ? channel : nil, dataKind: dataKind, data: data, sender: sender)
    }

    /// A key; `reader` is at its quote and moves behind its end.
    @inline(__always)
    private static func key(_ reader: inout JSONReader) -> Key? {
        // The three keys in their plain spelling are told by one comparison each.
        if reader.count &- reader.position > 8, reader.current == UInt8(ascii: "\"") {
            let word = UInt64(
                littleEndian: UnsafeRawPointer(reader.bytes + (reader.position &+ 1)).loadUnaligned(as: UInt64.self))
            if word & 0xFFFF_FFFF_FFFF == 0x2274_6E65_7665 {  // event"
                reader.position &+= 7
                return .event
            }
            if word == 0x226C_656E_6E61_6863 {  // channel"
                reader.position &+= 9
                return .channel
            }
            if word & 0xFF_FFFF_FFFF == 0x22_6174_6164 {  // data"
                reader.position &+= 6
                return .data
            }
            if word == 0x2264_695F_7265_7375 {  // user_id"
                reader.position &+= 9
                return .sender
            }
        }
        guard let span = reader.string() else { return nil }
        return key(span, in: UnsafeRawBufferPointer(start: reader.bytes, count: reader.count))
    }

    @inline(never)
    private static func key(_ span: Span, in bytes: UnsafeRawBufferPointer) -> Key {
        // No character takes more than the six bytes of a \u escape, and no key has more than nine.
        guard span.length <= 6 * 9 else { return .other }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 6 * 9) { buffer in
            guard let text = buffer.baseAddress else { return .other }
            let length = JSONString.unescape(span.bytes(in: bytes), into: text)
            let name = UnsafeRawBufferPointer(start: text, count: length)
            if name.elementsEqual("event".utf8) { return .event }
            if name.elementsEqual("channel".utf8) { return .channel }
            if name.elementsEqual("data".utf8) { return .data }
            // Pusher's key, and what Bird's would be by its other keys; it is not public.
            if name.elementsEqual("user_id".utf8) || name.elementsEqual("member_id".utf8) { return .sender }
            return .other
        }
    }
}
