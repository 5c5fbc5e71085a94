/// Escapes of JSON that are half of a surrogate pair, such as `\ud83d` without `\ude00` behind it: no character, and nothing that UTF-8 can
/// say (RFC 8259 section 8.2). JavaScript makes them by cutting texts.
enum HalfPairs {
    private static let escapeBytes = 6
    private static let replacement = Array(#"\ufffd"#.utf8)

    /// The bytes with each half replaced by U+FFFD; nil: there is none.
    static func replaced(in bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        var copy: [UInt8] = []
        var position = 0
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "\\") else {
                position += 1
                continue
            }
            let unit = Self.unit(bytes, at: position)
            switch unit.map({ $0 & 0xFC00 }) {
            case nil: position += 2
            case 0xD800 where Self.unit(bytes, at: position + escapeBytes).map({ $0 & 0xFC00 }) == 0xDC00:
                position += 2 * escapeBytes
            case 0xD800, 0xDC00:
                if copy.isEmpty { copy = Array(bytes) }
                copy.replaceSubrange(position..<position + escapeBytes, with: replacement)
                position += escapeBytes
            default: position += escapeBytes
            }
        }
        return copy.isEmpty ? nil : copy
    }

    /// Of the \u escape that begins here.
    private static func unit(_ bytes: UnsafeRawBufferPointer, at position: Int) -> UInt16? {
        guard position + escapeBytes <= bytes.count, bytes[position] == UInt8(ascii: "\\"),
            bytes[position + 1] == UInt8(ascii: "u"),
            let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return nil }
        return JSONString.codeUnit(base + position + 2).map { UInt16(truncatingIfNeeded: $0) }
    }
}
