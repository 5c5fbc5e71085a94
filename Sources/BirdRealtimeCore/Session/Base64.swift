/// Base64 (RFC 4648 section 4) in its one canonical form: padded, no bits left over, nothing else in between. For what is no secret: its
/// time depends on the text, where libsodium's does not, which takes ten times as long.
package enum Base64 {
    private static let invalid: UInt8 = 0x80

    /// By character.
    private static let values: InlineArray<256, UInt8> = {
        var values = InlineArray<256, UInt8>(repeating: invalid)
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        for (value, character) in alphabet.utf8.enumerated() { values[Int(character)] = UInt8(value) }
        return values
    }()

    /// Writes what `text` says and returns how many bytes that are; nil: it is no Base64. `output` has room for three bytes for each four
    /// characters, and may be the place of the text itself.
    package static func decode(_ text: UnsafeBufferPointer<UInt8>, into output: UnsafeMutablePointer<UInt8>) -> Int? {
        guard let characters = text.baseAddress, text.count >= 4 else { return text.isEmpty ? 0 : nil }
        guard text.count % 4 == 0 else { return nil }
        let pad = UInt8(ascii: "=")
        let last = text.count - 4
        let padding = characters[last + 3] != pad ? 0 : characters[last + 2] != pad ? 1 : 2
        var from = 0
        var to = 0
        while from < (padding > 0 ? last : text.count) {
            guard let group = group(characters + from, count: 4) else { return nil }
            output[to] = UInt8(truncatingIfNeeded: group >> 16)
            output[to &+ 1] = UInt8(truncatingIfNeeded: group >> 8)
            output[to &+ 2] = UInt8(truncatingIfNeeded: group)
            from &+= 4
            to &+= 3
        }
        guard padding > 0 else { return to }
        // The bits that belong to no byte are 0.
        guard let group = group(characters + last, count: 4 - padding), group & (padding == 1 ? 0xFF : 0xFFFF) == 0
        else {
            return nil
        }
        output[to] = UInt8(truncatingIfNeeded: group >> 16)
        if padding == 1 { output[to + 1] = UInt8(truncatingIfNeeded: group >> 8) }
        return to + 3 - padding
    }

    /// The 24 bits of four characters; the last ones of fewer are 0.
    @inline(__always)
    private static func group(_ characters: UnsafePointer<UInt8>, count: Int) -> UInt32? {
        var group: UInt32 = 0
        var wrong: UInt8 = 0
        for index in 0..<count {
            let value = values[Int(characters[index])]
            wrong |= value
            group |= UInt32(value) &<< UInt32(truncatingIfNeeded: 18 &- 6 &* index)
        }
        return wrong & invalid == 0 ? group : nil
    }
}
