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
        var from = 0
        var to = 0
        // 1: the byte at `from` is escaped, and its backslash has been dealt with.
        var carry: UInt32 = 0
        // `to` never passes `from`, and a block is read before its place is written; that is what makes it work in place.
        withUnsafeBytes(of: (UInt64.max, UInt64.max, UInt64(0), UInt64(0))) { window in
            guard let window = window.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
            // Every second byte of a block may begin an escape.
            while count &- from >= width &+ width / 2 {
                var block = ByteBlock(bytes + from)
                let backslashes = block.mask(of: backslash)
                if backslashes | carry == 0 {
                    block.store(to: destination + to)
                    from &+= width
                    to &+= width
                    continue
                }
                let isFirstEscaped = carry == 1
                let escapes = Escapes(backslashes: backslashes, carry: &carry)
                guard escapes.escaped & ~block.selfEscapes == 0 else {
                    bytewise(
                        bytes, from: &from, until: from &+ width, isFirstEscaped: isFirstEscaped, into: destination,
                        to: &to)
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
        bytewise(bytes, from: &from, until: count, isFirstEscaped: carry == 1, into: destination, to: &to)
        return to
    }

    /// Takes the backslash at the lowest bit of `starts` out of the block that was read at `bytes`: from its place on the block gets
    /// the bytes one further on, by another load. Without a bit left, no byte that counts changes.
    ///
    /// `window` has 16 bytes of ones and then 16 of zeros.
    @inline(__always)
    private static func removeNext(
        _ starts: inout UInt32, from block: inout ByteBlock, at bytes: UnsafePointer<UInt8>,
        _ window: UnsafePointer<UInt8>, removed: inout Int
    ) {
        let start = (starts | 1 &<< UInt32(ByteBlock.byteCount)).trailingZeroBitCount
        let isBefore = ByteBlock(window + (ByteBlock.byteCount &- start &+ removed))
        block = ByteBlock.select(isBefore, block, ByteBlock(bytes + (removed &+ 1)))
        removed &+= starts != 0 ? 1 : 0
        starts &= starts &- 1
    }

    /// Takes whole escapes, so it may go a few bytes beyond `end`.
    private static func bytewise(
        _ bytes: UnsafePointer<UInt8>, from: inout Int, until end: Int, isFirstEscaped: Bool,
        into destination: UnsafeMutablePointer<UInt8>, to: inout Int
    ) {
        var isEscaped = isFirstEscaped
        while from < end || isEscaped {
            let byte = bytes[from]
            from &+= 1
            if !isEscaped, byte == backslash {
                isEscaped = true
                continue
            }
            if isEscaped, byte == UInt8(ascii: "u") {
                unescapeUnicode(bytes, from: &from, into: destination, to: &to)
            } else {
                destination[to] = isEscaped ? meaning(of: byte) : byte
                to &+= 1
            }
            isEscaped = false
        }
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

    /// The four hexadecimal digits of a `\u` escape; nil if they are not.
    @inline(__always)
    static func codeUnit(_ digits: UnsafePointer<UInt8>) -> UInt32? {
        let first = hexValue(digits[0])
        let second = hexValue(digits[1])
        let third = hexValue(digits[2])
        let fourth = hexValue(digits[3])
        guard (first | second | third | fourth) < 16 else { return nil }
        return (first &<< 12) | (second &<< 8) | (third &<< 4) | fourth
    }

    private static let backslash = UInt8(ascii: "\\")

    /// 16 or more when it is no hexadecimal digit.
    @inline(__always)
    private static func hexValue(_ byte: UInt8) -> UInt32 {
        let digit = byte &- UInt8(ascii: "0")
        let letter = (byte | 0x20) &- UInt8(ascii: "a")
        return UInt32(truncatingIfNeeded: digit < 10 ? digit : letter < 6 ? letter &+ 10 : 0xFF)
    }

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

    /// `from` is behind the u of an escape. The text is never longer than the escape.
    private static func unescapeUnicode(
        _ bytes: UnsafePointer<UInt8>, from: inout Int, into destination: UnsafeMutablePointer<UInt8>, to: inout Int
    ) {
        var scalar = codeUnit(bytes + from) ?? 0xFFFD
        from &+= 4
        if scalar & 0xFC00 == 0xD800 {
            let low = codeUnit(bytes + (from &+ 2)) ?? 0xFFFD
            scalar = 0x10000 &+ ((scalar & 0x3FF) &<< 10) &+ (low & 0x3FF)
            from &+= 6
        }
        if scalar < 0x80 {
            destination[to] = UInt8(truncatingIfNeeded: scalar)
            to &+= 1
        } else if scalar < 0x800 {
            destination[to] = UInt8(truncatingIfNeeded: 0xC0 | scalar &>> 6)
            destination[to &+ 1] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F)
            to &+= 2
        } else if scalar < 0x10000 {
            destination[to] = UInt8(truncatingIfNeeded: 0xE0 | scalar &>> 12)
            destination[to &+ 1] = UInt8(truncatingIfNeeded: 0x80 | (scalar &>> 6) & 0x3F)
            destination[to &+ 2] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F)
            to &+= 3
        } else {
            destination[to] = UInt8(truncatingIfNeeded: 0xF0 | scalar &>> 18)
            destination[to &+ 1] = UInt8(truncatingIfNeeded: 0x80 | (scalar &>> 12) & 0x3F)
            destination[to &+ 2] = UInt8(truncatingIfNeeded: 0x80 | (scalar &>> 6) & 0x3F)
            destination[to &+ 3] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F)
            to &+= 4
        }
    }
}
