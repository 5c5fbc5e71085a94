import Glibc

/// The data of an encrypted event, {"nonce": Base64, "ciphertext": Base64} (Bird protocol 21), taken apart where it stands.
enum SealedEnvelope {
    typealias Nonce = InlineArray<24, UInt8>
    static let tagBytes = 16

    /// The nonce, and the box in the memory of the text, which is overwritten; nil: it is no envelope, or holds no box.
    static func decode(_ text: UnsafeMutableRawBufferPointer) -> (nonce: Nonce, box: UnsafeBufferPointer<UInt8>)? {
        guard let (nonceSpan, ciphertextSpan) = members(UnsafeRawBufferPointer(text)),
            let nonceBytes = bytes(nonceSpan, in: text), nonceBytes.count == MemoryLayout<Nonce>.size,
            let box = bytes(ciphertextSpan, in: text), box.count >= tagBytes
        else { return nil }
        var nonce = Nonce(repeating: 0)
        withUnsafeMutableBytes(of: &nonce) { $0.copyMemory(from: UnsafeRawBufferPointer(nonceBytes)) }
        return (nonce, box)
    }

    /// The last of duplicates, as everywhere.
    private static func members(_ text: UnsafeRawBufferPointer) -> (nonce: Span, ciphertext: Span)? {
        guard var reader = JSONReader(text) else { return nil }
        var nonce: Span?
        var ciphertext: Span?
        reader.skipWhitespace()
        guard reader.take(UInt8(ascii: "{")) else { return nil }
        repeat {
            reader.skipWhitespace()
            guard let key = reader.string() else { return nil }
            reader.skipWhitespace()
            guard reader.take(UInt8(ascii: ":")) else { return nil }
            reader.skipWhitespace()
            var value: Span?
            if reader.current == UInt8(ascii: "\"") {
                value = reader.string()
                guard value != nil else { return nil }
            } else {
                guard reader.skipValue(depth: 1) else { return nil }
            }
            if isName(key, "nonce", in: text) { nonce = value }
            if isName(key, "ciphertext", in: text) { ciphertext = value }
            reader.skipWhitespace()
        } while reader.take(UInt8(ascii: ","))
        guard reader.take(UInt8(ascii: "}")) else { return nil }
        reader.skipWhitespace()
        guard reader.isAtEnd, let nonce, let ciphertext else { return nil }
        return (nonce, ciphertext)
    }

    private static func isName(_ key: Span, _ name: StaticString, in text: UnsafeRawBufferPointer) -> Bool {
        guard !key.isEscaped else {
            return JSONString.decode(key, in: text).utf8.elementsEqual(String(describing: name).utf8)
        }
        guard key.length == name.utf8CodeUnitCount, let start = text.baseAddress else { return false }
        return memcmp(start + key.offset, name.utf8Start, key.length) == 0
    }

    /// What a string says in Base64, decoded in its own place.
    private static func bytes(
        _ span: Span, in text: UnsafeMutableRawBufferPointer
    ) -> UnsafeBufferPointer<UInt8>? {
        guard let start = text.baseAddress?.advanced(by: span.offset).assumingMemoryBound(to: UInt8.self) else {
            return nil
        }
        var length = span.length
        if span.isEscaped {
            length = JSONString.unescape(UnsafeRawBufferPointer(start: start, count: length), into: start)
        }
        return Base64.decode(UnsafeBufferPointer(start: start, count: length), into: start).map {
            UnsafeBufferPointer(start: start, count: $0)
        }
    }
}
