import BirdRealtimeCore
import Testing

@Suite struct FrameDecoderTests {
    @Test func wholeFrames() {
        #expect(read(serverFrame(1, "hello")) == [textMessage("hello")])
        #expect(read(serverFrame(1, "")) == [textMessage("")])
        #expect(read(serverFrame(2, [0, 0xFF, 0x80])) == [.message([0, 0xFF, 0x80], isBinary: true)])
        #expect(read(serverFrame(9, "p")) == [.ping(Array("p".utf8))])
        #expect(read(serverFrame(9, "")) == [.ping([])])
        #expect(read(serverFrame(10, "q")) == [.pong(Array("q".utf8))])
        #expect(read(serverFrame(8, [])) == [.close(1005, "")])
        #expect(read(serverFrame(8, [0x0F, 0xA9])) == [.close(4009, "")])
        #expect(read(serverFrame(8, [0x03, 0xE8] + Array("bye é".utf8))) == [.close(1000, "bye é")])
    }

    @Test(arguments: [0, 1, 124, 125, 126, 127, 128, 255, 256, 15_000, 16_384, 16_385, 65_535, 65_536, 65_537, 1 << 20])
    func sizes(_ size: Int) {
        let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0 % 95 + 32) }
        for opcode in [1, 2] as [UInt8] {
            let frame = serverFrame(opcode, payload)
            #expect(read(frame + frame) == Array(repeating: .message(payload, isBinary: opcode == 2), count: 2))
            // The header tells how much is needed, as soon as it is there.
            var reader = FrameReader()
            reader.receive(frame.prefix(frame.count - payload.count))
            #expect(payload.isEmpty || reader.wanted == frame.count)
        }
    }

    @Test func wantedBytesBeforeTheHeaderIsThere() {
        var decoder = FrameDecoder(messageBytesMax: 1 << 20)
        func wanted(_ bytes: [UInt8]) -> FrameDecoder.Step {
            var bytes = bytes
            return bytes.withUnsafeMutableBytes { decoder.next($0) }
        }
        #expect(wanted([]) == .needsMore(bytes: 2))
        #expect(wanted([0x81]) == .needsMore(bytes: 2))
        #expect(wanted([0x81, 126]) == .needsMore(bytes: 4))
        #expect(wanted([0x81, 127]) == .needsMore(bytes: 10))
        #expect(wanted([0x81, 126, 1]) == .needsMore(bytes: 4))
        #expect(wanted([0x81, 126, 1, 0]) == .needsMore(bytes: 260))
        #expect(wanted([0x89, 5]) == .needsMore(bytes: 7))
    }

    @Test func wholeTextIsLeftToTheScanner() {
        var decoder = FrameDecoder(messageBytesMax: 1 << 20)
        var frame = serverFrame(1, "é")
        let step = frame.withUnsafeMutableBytes { decoder.next($0) }
        #expect(step == .message(offset: 2, length: 2, consumed: 4, isValidUTF8: false, isBinary: false))
    }

    @Test func textThatWasSeenInPartIsChecked() {
        var decoder = FrameDecoder(messageBytesMax: 1 << 20)
        var frame = serverFrame(1, "aé")
        let first = frame.withUnsafeMutableBytes { decoder.next(UnsafeMutableRawBufferPointer(rebasing: $0[..<4])) }
        #expect(first == .needsMore(bytes: 5))
        let second = frame.withUnsafeMutableBytes { decoder.next($0) }
        #expect(second == .message(offset: 2, length: 3, consumed: 5, isValidUTF8: true, isBinary: false))
    }

    @Test func fragments() {
        let stream =
            serverFrame(1, "a", isFinal: false) + serverFrame(0, "", isFinal: false) + serverFrame(9, "p")
            + serverFrame(0, "b", isFinal: false) + serverFrame(10, "") + serverFrame(0, "c") + serverFrame(1, "d")
        #expect(read(stream) == [.ping(Array("p".utf8)), .pong([]), textMessage("abc"), textMessage("d")])
        #expect(read(serverFrame(1, "", isFinal: false) + serverFrame(0, "")) == [textMessage("")])
        #expect(read(serverFrame(1, "x", isFinal: false) + serverFrame(0, "")) == [textMessage("x")])
        #expect(
            read(serverFrame(2, [0xFF], isFinal: false) + serverFrame(0, [0x80])) == [
                .message([0xFF, 0x80], isBinary: true)
            ])
    }

    @Test func oneByteFragmentsInsideAnEmoji() {
        let bytes = Array("x😀é".utf8)
        var stream = serverFrame(1, [], isFinal: false)
        for byte in bytes {
            stream += serverFrame(0, [byte], isFinal: false)
        }
        #expect(read(stream + serverFrame(0, [])) == [textMessage("x😀é")])
        #expect(readBytewise(stream + serverFrame(0, [])) == [textMessage("x😀é")])
    }

    @Test func assemblyIsEmptiedByTheNextCall() {
        var decoder = FrameDecoder(messageBytesMax: 100)
        for _ in 0..<3 {
            var stream = serverFrame(1, String(repeating: "a", count: 60), isFinal: false)
            let first = stream.withUnsafeMutableBytes { decoder.next($0) }
            #expect(first == .fragment(consumed: 62))
            stream = serverFrame(0, String(repeating: "b", count: 40))
            let second = stream.withUnsafeMutableBytes { decoder.next($0) }
            #expect(second == .assembled(consumed: 42, isBinary: false))
            #expect(decoder.assembly.count == 100)
        }
        var whole = serverFrame(1, String(repeating: "c", count: 100))
        let step = whole.withUnsafeMutableBytes { decoder.next($0) }
        #expect(step == .message(offset: 2, length: 100, consumed: 102, isValidUTF8: false, isBinary: false))
        #expect(decoder.assembly.isEmpty)
    }

    /// Every stream gives the same events whole, byte by byte, cut in two and cut in three.
    @Test(arguments: [
        serverFrame(1, "hello") + serverFrame(1, "") + serverFrame(2, [0x80]) + serverFrame(8, [0x03, 0xE8, 0x61]),
        serverFrame(1, "é😀", isFinal: false) + serverFrame(9, "ping") + serverFrame(0, "안") + serverFrame(10, ""),
        serverFrame(1, String(repeating: "é", count: 65)) + serverFrame(1, "x"),
        serverFrame(1, [0xF0, 0x9F], isFinal: false) + serverFrame(0, [0x98, 0x80]) + serverFrame(1, [0x61, 0xFF]),
        serverFrame(1, "a", isFinal: false) + serverFrame(1, "b"),
        serverFrame(1, Array("fine then ".utf8) + [0xC0]) + serverFrame(1, "never"),
        serverFrame(9, "p") + [0x81, 0x80],
    ])
    func everySplit(_ stream: [UInt8]) {
        let expected = read(stream)
        #expect(!expected.isEmpty)
        #expect(readBytewise(stream) == expected)
        for first in 0...stream.count {
            for second in first...stream.count {
                var reader = FrameReader()
                reader.receive(stream[..<first])
                reader.receive(stream[first..<second])
                reader.receive(stream[second...])
                guard reader.events == expected else {
                    Issue.record("cut at \(first) and \(second): \(reader.events)")
                    return
                }
            }
        }
    }

    @Test func randomStreams() {
        var generator = SeededGenerator(seed: 7692)
        for round in 0..<300 {
            var stream: [UInt8] = []
            var expected: [FrameEvent] = []
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let size = [0, 1, 5, 125, 126, 300, 70_000].randomElement(using: &generator) ?? 0
                let text = String(repeating: "añ😀", count: size / 7) + String(repeating: "x", count: size % 7)
                let bytes = Array(text.utf8)
                var cuts = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
                    Int.random(in: 0...bytes.count, using: &generator)
                }
                cuts = [0] + cuts.sorted() + [bytes.count]
                for index in 0..<(cuts.count - 1) {
                    stream += serverFrame(
                        index == 0 ? 1 : 0, Array(bytes[cuts[index]..<cuts[index + 1]]),
                        isFinal: index == cuts.count - 2)
                    if Bool.random(using: &generator), index < cuts.count - 2 {
                        stream += serverFrame(9, "p")
                        expected.append(.ping(Array("p".utf8)))
                    }
                }
                expected.append(textMessage(text))
            }
            // Small pieces for small streams; a large one would be quadratic in this reader.
            let pieceMax = stream.count > 2_000 ? 40_000 : 9
            var reader = FrameReader()
            var rest = stream[...]
            while !rest.isEmpty {
                let size = Int.random(in: 1...pieceMax, using: &generator)
                reader.receive(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            guard reader.events == expected else {
                Issue.record("round \(round)")
                return
            }
        }
    }
}
