/// Texts that come from outside, such as messages of errors: whatever is kept of them, told or logged has been cut here.
package enum EdgeText {
    package static let bytesMax = 2_048

    /// The beginning of a text, up to the end of a character, with an ellipsis where something is missing.
    package static func cut(_ text: String, bytesMax: Int = bytesMax) -> String {
        guard text.utf8.count > bytesMax else { return text }
        var text = text
        return text.withUTF8 { cut(UnsafeRawBufferPointer($0), bytesMax: bytesMax) }
    }

    /// The same of bytes, which need not be valid UTF-8.
    package static func cut(_ bytes: UnsafeRawBufferPointer, bytesMax: Int = bytesMax) -> String {
        guard bytes.count > bytesMax else { return String(decoding: bytes, as: UTF8.self) }
        var end = max(0, bytesMax - ellipsis.utf8.count)
        while end > 0, bytes[end] & 0xC0 == 0x80 { end -= 1 }
        return String(decoding: bytes[..<end], as: UTF8.self) + ellipsis
    }

    private static let ellipsis = "\u{2026}"
}
