/// A part of a message, as offsets into its bytes. For strings: what stands between the quotes.
package struct Span: Equatable, Sendable {
    package var offset: Int
    package var length: Int
    /// A stretch without escapes that is longer than all that comes before it in the string.
    package var plainOffset: Int
    package var plainLength: Int

    @inline(__always)
    package init(offset: Int, length: Int, isEscaped: Bool) {
        self.init(offset: offset, length: length, plainOffset: offset, plainLength: isEscaped ? 0 : length)
    }

    @inline(__always)
    package init(offset: Int, length: Int, plainOffset: Int, plainLength: Int) {
        self.offset = offset
        self.length = length
        self.plainOffset = plainOffset
        self.plainLength = plainLength
    }

    /// The string contains escapes, so its bytes are not its text.
    @inline(__always)
    package var isEscaped: Bool { plainLength != length }

    /// Remembers a stretch without escapes if it is longer than what comes before it.
    @inline(__always)
    mutating func takePlain(from start: Int, to end: Int) {
        guard end &- start > start &- offset else { return }
        plainOffset = start
        plainLength = end &- start
    }

    @inline(__always)
    package func bytes(in message: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: message[offset..<(offset + length)])
    }
}
