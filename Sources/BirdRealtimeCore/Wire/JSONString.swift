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
        let raw = UnsafeMutableRawPointer(destination)
        let count = source.count
        var from = 0
        var to = 0
        // `to` never passes `from`. In place, a word is read before it is overwritten, and never more is written than was
        // read; that is why a word with escapes is put together in a register.
        while count &- from >= 8 {
            if count &- from >= ByteBlock.byteCount {
                let block = ByteBlock(bytes + from)
                if block.mask(of: backslash) == 0 {
                    block.store(to: destination + to)
                    from &+= ByteBlock.byteCount
                    to &+= ByteBlock.byteCount
                    continue
                }
            }
            var word = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: from, as: UInt64.self))
            // Bit 8 i + 7 for each backslash, only the first of which is certainly an escape.
            var found = backslashes(in: word)
            var removed = 0
            var taken = 8
            while found != 0 {
                let index = found.trailingZeroBitCount &>> 3
                let character = bytes[from &+ index &+ 1]
                if character == UInt8(ascii: "u") {
                    break
                }
                let bit = UInt64(truncatingIfNeeded: (index &- removed) &<< 3)
                let before: UInt64 = (1 &<< bit) &- 1
                let behind: UInt64 = (~0 &<< bit) &<< 8
                word = (word & before) | (UInt64(meaning(of: character)) &<< bit) | ((word &>> 8) & behind)
                removed &+= 1
                if index == 7 {
                    taken = 9
                }
                found &= ((~0 &<< UInt64(truncatingIfNeeded: index &<< 3)) &<< 8) &<< 8
            }
            if found == 0 {
                raw.storeBytes(of: word.littleEndian, toByteOffset: to, as: UInt64.self)
                from &+= taken
                to &+= taken &- removed
            } else {
                let index = found.trailingZeroBitCount &>> 3
                for _ in 0..<(index &- removed) {
                    destination[to] = UInt8(truncatingIfNeeded: word)
                    word &>>= 8
                    to &+= 1
                }
                from &+= index
                unescapeUnicode(bytes, count: count, from: &from, into: destination, to: &to)
            }
        }
        while from < count {
            let byte = bytes[from]
            guard byte == backslash else {
                destination[to] = byte
                from &+= 1
                to &+= 1
                continue
            }
            let character = bytes[from &+ 1]
            if character == UInt8(ascii: "u") {
                unescapeUnicode(bytes, count: count, from: &from, into: destination, to: &to)
            } else {
                destination[to] = meaning(of: character)
                from &+= 2
                to &+= 1
            }
        }
        return to
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

    /// The high bit of each byte that is a backslash.
    @inline(__always)
    private static func backslashes(in word: UInt64) -> UInt64 {
        let difference = word ^ 0x5C5C_5C5C_5C5C_5C5C
        let sum = (difference & 0x7F7F_7F7F_7F7F_7F7F) &+ 0x7F7F_7F7F_7F7F_7F7F
        return ~(sum | difference) & 0x8080_8080_8080_8080
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

    /// Consecutive `\u` escapes; `from` is at the first one's backslash. Each is at least as long as what it stands for.
    private static func unescapeUnicode(
        _ bytes: UnsafePointer<UInt8>, count: Int, from: inout Int, into destination: UnsafeMutablePointer<UInt8>,
        to: inout Int
    ) {
        repeat {
            var scalar = codeUnit(bytes + (from &+ 2)) ?? 0xFFFD
            from &+= 6
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
        } while count &- from >= 6 && bytes[from] == backslash && bytes[from &+ 1] == UInt8(ascii: "u")
    }
}
