/// Frames of the client: whole messages, always masked (RFC 6455 section 5.3).
package enum FrameEncoder {
    /// Bytes that a frame adds to its payload, at most.
    package static let headerBytesMax = 14
    /// Of the reason of a close frame.
    package static let reasonBytesMax = 123

    /// Appends one frame with FIN set. `maskKey` must be unpredictable; its bytes go out in memory order.
    package static func append(
        opcode: Opcode, payload: UnsafeRawBufferPointer, maskKey: UInt32, to output: inout [UInt8]
    ) {
        let count = payload.count
        // For each frame, this would copy all that waits for the socket, each time.
        if output.isEmpty { output.reserveCapacity(headerBytesMax + count) }
        output.append(0x80 | opcode.rawValue)
        if count < 126 {
            output.append(0x80 | UInt8(count))
        } else if count <= 0xFFFF {
            output.append(0x80 | 126)
            withUnsafeBytes(of: UInt16(count).bigEndian) { output.append(contentsOf: $0) }
        } else {
            output.append(0x80 | 127)
            withUnsafeBytes(of: UInt64(count).bigEndian) { output.append(contentsOf: $0) }
        }
        withUnsafeBytes(of: maskKey) { output.append(contentsOf: $0) }
        let start = output.count
        output.append(contentsOf: payload)
        output.withUnsafeMutableBytes { mask($0, from: start, key: maskKey) }
    }

    package static func append(opcode: Opcode, payload: [UInt8], maskKey: UInt32, to output: inout [UInt8]) {
        payload.withUnsafeBytes { append(opcode: opcode, payload: $0, maskKey: maskKey, to: &output) }
    }

    /// `code` nil: an empty close frame. A reason that is too long is cut at a character.
    package static func appendClose(code: UInt16?, reason: String, maskKey: UInt32, to output: inout [UInt8]) {
        var payload: [UInt8] = []
        if let code {
            payload = [UInt8(code >> 8), UInt8(code & 0xFF)]
            for scalar in reason.unicodeScalars {
                let bytes = UTF8.encode(scalar).map(Array.init) ?? []
                guard payload.count + bytes.count <= 2 + reasonBytesMax else { break }
                payload += bytes
            }
        }
        append(opcode: .close, payload: payload, maskKey: maskKey, to: &output)
    }

    private static func mask(_ bytes: UnsafeMutableRawBufferPointer, from start: Int, key: UInt32) {
        let doubled = UInt64(key) << 32 | UInt64(key)
        var index = start
        while index + 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            bytes.storeBytes(of: word ^ doubled, toByteOffset: index, as: UInt64.self)
            index += 8
        }
        withUnsafeBytes(of: key) { key in
            while index < bytes.count {
                bytes[index] ^= key[(index - start) & 3]
                index += 1
            }
        }
    }
}
