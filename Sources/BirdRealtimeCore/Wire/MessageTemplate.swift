import Glibc

/// How the last event began, up to the contents of its data. Events on a busy channel begin alike, byte for byte, so that only the data
/// of the next one has to be looked at.
package struct MessageTemplate: ~Copyable {
    /// Names have at most 164 and 200 characters; what begins with more than this is scanned each time.
    static let headBytesMax = 512

    private var head: UnsafeMutablePointer<UInt8>?
    /// 0: nothing learnt.
    private var length = 0
    private var scanned = ScannedMessage(
        event: Span(offset: 0, length: 0, isEscaped: false), channel: nil, dataKind: .none,
        data: Span(offset: 0, length: 0, isEscaped: false))

    package init() {}

    deinit { head?.deallocate() }

    /// Takes over a message that has been scanned, if a string as data is the last that it says.
    package mutating func learn(_ bytes: UnsafeRawBufferPointer, _ message: ScannedMessage) {
        length = 0
        guard message.dataKind == .string, message.data.offset <= Self.headBytesMax,
            message.data.offset &+ message.data.length &+ 2 == bytes.count, let base = bytes.baseAddress
        else { return }
        let head = self.head ?? .allocate(capacity: Self.headBytesMax)
        self.head = head
        memcpy(head, base, message.data.offset)
        length = message.data.offset
        scanned = message
    }

    /// The parts of a message that begins like the one learnt; nil: scan it.
    @inline(__always)
    package func match(_ bytes: UnsafeRawBufferPointer) -> ScannedMessage? {
        guard length > 0, let head, bytes.count >= length &+ 2, let base = bytes.baseAddress,
            memcmp(head, base, length) == 0
        else { return nil }
        let text = base.assumingMemoryBound(to: UInt8.self)
        let scan = JSONStringScan(text, count: bytes.count, from: length)
        // What is not ASCII has to be checked, as the scanner does.
        guard let data = scan.span, data.offset &+ data.length == bytes.count &- 2,
            text[bytes.count &- 1] == UInt8(ascii: "}"), !scan.sawNonASCII
        else { return nil }
        var message = scanned
        message.data = data
        return message
    }
}
