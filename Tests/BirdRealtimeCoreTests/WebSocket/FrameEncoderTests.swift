import BirdRealtimeCore
import Testing

@Suite struct FrameEncoderTests {
    /// Undoes one masked frame by the book.
    private func decode(_ frame: [UInt8]) -> (first: UInt8, key: [UInt8], payload: [UInt8])? {
        guard frame.count >= 6, frame[1] & 0x80 != 0 else { return nil }
        var at = 2
        var length = Int(frame[1] & 0x7F)
        if length >= 126 {
            let size = length == 126 ? 2 : 8
            length = frame[2..<(2 + size)].reduce(0) { $0 << 8 | Int($1) }
            at += size
        }
        let key = Array(frame[at..<(at + 4)])
        let masked = frame[(at + 4)...]
        guard masked.count == length else { return nil }
        return (frame[0], key, masked.enumerated().map { $1 ^ key[$0 & 3] })
    }

    private func encode(_ opcode: Opcode, _ payload: [UInt8], key: UInt32 = 0x3D21_FA37) -> [UInt8] {
        var output: [UInt8] = [0xAA]
        FrameEncoder.append(opcode: opcode, payload: payload, maskKey: key, to: &output)
        #expect(output.first == 0xAA)
        return Array(output.dropFirst())
    }

    /// RFC 6455 section 5.7.
    @Test func exampleOfTheRFC() {
        let key = UInt32(littleEndian: 0x3D21_FA37)
        #expect(
            encode(.text, Array("Hello".utf8), key: key)
                == [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
    }

    @Test(arguments: Array(0...40) + [124, 125, 126, 127, 65_535, 65_536, 65_537])
    func roundTrip(_ size: Int) throws {
        let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let frame = encode(.binary, payload)
        let decoded = try #require(decode(frame))
        #expect(decoded.first == 0x82 && decoded.payload == payload)
        #expect(frame.count - payload.count <= FrameEncoder.headerBytesMax)
        #expect(frame[1] & 0x7F == (size < 126 ? UInt8(size) : size <= 0xFFFF ? 126 : 127))
    }

    @Test func appendsBehindWhatIsThere() throws {
        var output: [UInt8] = []
        for word in ["one", "two", "a longer third"] {
            FrameEncoder.append(opcode: .text, payload: Array(word.utf8), maskKey: 0xDEAD_BEEF, to: &output)
        }
        let sizes = [9, 9, 20]
        var at = 0
        for (size, word) in zip(sizes, ["one", "two", "a longer third"]) {
            #expect(decode(Array(output[at..<(at + size)]))?.payload == Array(word.utf8))
            at += size
        }
        #expect(at == output.count)
    }

    @Test func controlFrames() {
        #expect(encode(.ping, [])[0] == 0x89)
        #expect(encode(.pong, [])[0] == 0x8A)
        #expect(encode(.close, [])[0] == 0x88)
    }

    @Test func closeFrames() throws {
        func close(_ code: UInt16?, _ reason: String) throws -> [UInt8] {
            var output: [UInt8] = []
            FrameEncoder.appendClose(code: code, reason: reason, maskKey: 7, to: &output)
            return try #require(decode(output)).payload
        }
        #expect(try close(nil, "ignored") == [])
        #expect(try close(1000, "client disconnect") == [0x03, 0xE8] + Array("client disconnect".utf8))
        #expect(try close(4001, "") == [0x0F, 0xA1])
        // Cut between characters.
        let cut = try close(1000, String(repeating: "é", count: 100))
        #expect(cut.count == 124 && String(validating: cut[2...], as: UTF8.self) != nil)
        #expect(try close(1000, String(repeating: "a", count: 200)).count == 125)
    }
}
