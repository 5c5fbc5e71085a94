import Glibc

/// Strings as JSON writes them.
package enum JSONString {
    /// Writes the text of a string that has been validated and returns its length, which is at most that of `source`.
    ///
    /// `destination` is either the start of `source` itself (in place) or a buffer at least as long that does not overlap it.
    package static func unescape(
        _ source: UnsafeRawBufferPointer, into destination: UnsafeMutablePointer<UInt8>
    ) -> Int {
        guard let base = source.baseAddress else { return 0 }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        let count = source.count
        let width = ByteBlock.byteCount
        // `to` never passes `from`, and a block is read before its place is written; that is what makes it work in place.
        var from = 0
        var to = 0
        // 1: the byte at `from` is escaped, and its backslash has been dealt with.
        var carry: UInt64 = 0
        withUnsafeBytes(of: (UInt64.max, UInt64.max, UInt64(0), UInt64(0))) { window in
            guard let window = window.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
            // Every second byte of a block may begin an escape.
            while count &- from >= width &+ width / 2 {
                var block = ByteBlock(bytes + from)
                let backslashes = UInt64(block.mask(of: backslash))
                if backslashes | carry == 0 {
                    block.store(to: destination + to)
                    from &+= width
                    to &+= width
                    continue
                }
                let isEscaped = carry == 1
                let escapes = Escapes(backslashes: backslashes, carry: &carry, width: width)
                guard escapes.escaped & ~UInt64(block.selfEscapes) == 0 else {
                    (from, to) = bytewise(
                        bytes, from: from, until: from &+ width, isEscaped: isEscaped, into: destination, to: to)
                    carry = 0
                    continue
                }
                var starts = escapes.starts
                var removed = 0
                // The usual number of times is cheaper done always than predicted.
                for _ in 0..<4 {
                    removeNext(&starts, from: &block, at: bytes + from, window, removed: &removed)
                }
                while starts != 0 {
                    removeNext(&starts, from: &block, at: bytes + from, window, removed: &removed)
                }
                block.store(to: destination + to)
                from &+= width
                to &+= width &- removed
            }
        }
        // What is left and plain goes by words.
        while carry == 0, count &- from >= 8 {
            let word = base.loadUnaligned(fromByteOffset: from, as: UInt64.self)
            guard !hasBackslash(word) else { break }
            UnsafeMutableRawPointer(destination).storeBytes(of: word, toByteOffset: to, as: UInt64.self)
            from &+= 8
            to &+= 8
        }
        return bytewise(bytes, from: from, until: count, isEscaped: carry == 1, into: destination, to: to).to
    }

    /// One of the eight bytes is a backslash.
    @inline(__always)
    private static func hasBackslash(_ word: UInt64) -> Bool {
        let zeroWhereFound = word ^ 0x5C5C_5C5C_5C5C_5C5C
        return (zeroWhereFound &- 0x0101_0101_0101_0101) & ~zeroWhereFound & 0x8080_8080_8080_8080 != 0
    }

    /// Takes the backslash at the lowest bit of `starts` out of the block that was read at `bytes`: from its place on the block gets
    /// the bytes one further on, by another load. Without a bit left, no byte that counts changes.
    ///
    /// `window` has 16 bytes of ones and then 16 of zeros.
    @inline(__always)
    private static func removeNext(
        _ starts: inout UInt64, from block: inout ByteBlock, at bytes: UnsafePointer<UInt8>,
        _ window: UnsafePointer<UInt8>, removed: inout Int
    ) {
        let start = (starts | 1 &<< UInt64(ByteBlock.byteCount)).trailingZeroBitCount
        let isBefore = ByteBlock(window + (ByteBlock.byteCount &- start &+ removed))
        block = ByteBlock.select(isBefore, block, ByteBlock(bytes + (removed &+ 1)))
        removed &+= starts != 0 ? 1 : 0
        starts &= starts &- 1
    }

    /// Takes whole escapes, so it may go a few bytes beyond `end`.
    private static func bytewise(
        _ bytes: UnsafePointer<UInt8>, from start: Int, until end: Int, isEscaped isFirstEscaped: Bool,
        into destination: UnsafeMutablePointer<UInt8>, to output: Int
    ) -> (from: Int, to: Int) {
        var from = start
        var to = output
        var isEscaped = isFirstEscaped
        while from < end || isEscaped {
            let byte = bytes[from]
            from &+= 1
            if isEscaped {
                isEscaped = false
                if byte == UInt8(ascii: "u") {
                    to &+= encode(scalar(bytes, behindU: &from), to: destination + to)
                } else {
                    destination[to] = meaning(of: byte)
                    to &+= 1
                }
            } else if byte == backslash {
                isEscaped = true
            } else {
                destination[to] = byte
                to &+= 1
            }
        }
        return (from, to)
    }

    /// Writes the text of a validated string and returns its length.
    package static func unescape(
        _ span: Span, in message: UnsafeRawPointer, into destination: UnsafeMutablePointer<UInt8>
    ) -> Int {
        let (head, tail) = aroundPlain(span)
        var length = unescape(
            UnsafeRawBufferPointer(start: message + head.lowerBound, count: head.count), into: destination)
        memcpy(destination + length, message + head.upperBound, tail.lowerBound &- head.upperBound)
        length &+= tail.lowerBound &- head.upperBound
        return length
            &+ unescape(
                UnsafeRawBufferPointer(start: message + tail.lowerBound, count: tail.count), into: destination + length)
    }

    /// The same in place; the text may begin later than the string. The plain stretch stays where it is: what comes before it moves up to
    /// it, what follows it moves down.
    package static func unescapeInPlace(_ span: Span, in message: UnsafeMutableRawPointer) -> Span {
        let (head, tail) = aroundPlain(span)
        let start = (message + head.lowerBound).assumingMemoryBound(to: UInt8.self)
        let headLength = unescape(UnsafeRawBufferPointer(start: start, count: head.count), into: start)
        let offset = head.upperBound &- headLength
        memmove(message + offset, start, headLength)
        let end = (message + tail.lowerBound).assumingMemoryBound(to: UInt8.self)
        let tailLength = unescape(UnsafeRawBufferPointer(start: end, count: tail.count), into: end)
        return Span(offset: offset, length: tail.lowerBound &+ tailLength &- offset, isEscaped: false)
    }

    @inline(__always)
    private static func aroundPlain(_ span: Span) -> (Range<Int>, Range<Int>) {
        let behind = span.plainOffset &+ span.plainLength
        return (
            Range(uncheckedBounds: (span.offset, span.plainOffset)),
            Range(uncheckedBounds: (behind, span.offset &+ span.length))
        )
    }

    /// The text of a validated string.
    package static func decode(_ span: Span, in message: UnsafeRawBufferPointer) -> String {
        let source = span.bytes(in: message)
        guard span.isEscaped else { return String(decoding: source, as: UTF8.self) }
        return String(unsafeUninitializedCapacity: source.count) { buffer in
            guard let destination = buffer.baseAddress else { return 0 }
            return unescape(source, into: destination)
        }
    }

    /// A JSON array of these strings.
    package static func array(_ texts: [String]) -> [UInt8] {
        var bytes = [UInt8(ascii: "[")]
        for (index, text) in texts.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            appendQuoted(text, to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
        return bytes
    }

    package static func appendQuoted(_ text: String, to output: inout [UInt8]) {
        var text = text
        text.withUTF8 { appendQuoted(UnsafeRawBufferPointer($0), to: &output) }
    }

    /// `text` is UTF-8. Only what must be escaped is.
    package static func appendQuoted(_ text: UnsafeRawBufferPointer, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        var plain = 0
        for index in text.indices {
            let byte = text[index]
            guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == backslash else { continue }
            output.append(contentsOf: text[plain..<index])
            plain = index + 1
            output.append(backslash)
            switch byte {
            case UInt8(ascii: "\""), backslash: output.append(byte)
            case 0x08: output.append(UInt8(ascii: "b"))
            case 0x09: output.append(UInt8(ascii: "t"))
            case 0x0A: output.append(UInt8(ascii: "n"))
            case 0x0C: output.append(UInt8(ascii: "f"))
            case 0x0D: output.append(UInt8(ascii: "r"))
            default:
                output.append(contentsOf: "u00".utf8)
                output.append(hexDigit(byte >> 4))
                output.append(hexDigit(byte & 0x0F))
            }
        }
        output.append(contentsOf: text[plain...])
        output.append(UInt8(ascii: "\""))
    }

    /// The four hexadecimal digits of a `\u` escape; nil if they are not. All four are looked at together.
    @inline(__always)
    static func codeUnit(_ digits: UnsafePointer<UInt8>) -> UInt32? {
        let text = UInt32(littleEndian: UnsafeRawPointer(digits).loadUnaligned(as: UInt32.self))
        // Letters, and of all other bytes none that then passes, have bit 6 set.
        let values = (text & 0x0F0F_0F0F) &+ ((text &>> 6) & 0x0101_0101) &* 9
        let isLetter = ((values &+ 0x0606_0606) &>> 4) & 0x0101_0101
        let lowercased = text | isLetter &* 0x20
        guard values & 0xF0F0_F0F0 == 0, lowercased == values &+ 0x3030_3030 &+ isLetter &* 0x27 else { return nil }
        let pairs = (values &<< 4 | values &>> 8) & 0x00FF_00FF
        return (pairs & 0xFF) &<< 8 | pairs &>> 16
    }

    private static let backslash = UInt8(ascii: "\\")

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    @inline(__always)
    private static func meaning(of character: UInt8) -> UInt8 {
        switch character {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: character
        }
    }

    /// The character of a validated escape, both halves of a pair; `from` is behind the first u.
    @inline(__always)
    private static func scalar(_ bytes: UnsafePointer<UInt8>, behindU from: inout Int) -> UInt32 {
        let unit = codeUnit(bytes + from) ?? 0xFFFD
        from &+= 4
        guard unit & 0xFC00 == 0xD800 else { return unit }
        let low = codeUnit(bytes + (from &+ 2)) ?? 0xFFFD
        from &+= 6
        return 0x10000 &+ ((unit & 0x3FF) &<< 10) &+ (low & 0x3FF)
    }

    /// Writes the UTF-8 of a character and returns its length.
    @inline(__always)
    private static func encode(_ scalar: UInt32, to output: UnsafeMutablePointer<UInt8>) -> Int {
        let length = scalar < 0x80 ? 1 : scalar < 0x800 ? 2 : scalar < 0x10000 ? 3 : 4
        var rest = scalar
        var index = length &- 1
        while index > 0 {
            output[index] = 0x80 | UInt8(truncatingIfNeeded: rest & 0x3F)
            rest &>>= 6
            index &-= 1
        }
        // As many ones as there are bytes.
        let marks: UInt32 = length == 1 ? 0 : 0xF00 &>> UInt32(truncatingIfNeeded: length)
        output[0] = UInt8(truncatingIfNeeded: marks | rest)
        return length
    }
}
