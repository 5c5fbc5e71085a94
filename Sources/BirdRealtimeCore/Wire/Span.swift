/// A part of a message, as offsets into its bytes. For strings: what stands between the quotes.
package struct Span: Equatable, Sendable {
    package var offset: Int
    package var length: Int
    /// The string contains escapes, so its bytes are not its text.
    package var isEscaped: Bool

    @inline(__always)
    package init(offset: Int, length: Int, isEscaped: Bool) {
        self.offset = offset
        self.length = length
        self.isEscaped = isEscaped
    }

    @inline(__always)
    package func bytes(in message: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: message[offset..<(offset + length)])
    }
}
