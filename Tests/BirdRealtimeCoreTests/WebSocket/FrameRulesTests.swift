import BirdRealtimeCore
import Testing

/// What a server must not send (RFC 6455 sections 5 and 7), and when it is found.
@Suite struct FrameRulesTests {
    @Test(arguments: [1, 2, 4, 3, 5, 6, 7] as [UInt8])
    func reservedBits(_ bits: UInt8) {
        for opcode in [0, 1, 2, 8, 9, 10] as [UInt8] {
            let frame = serverFrame(opcode, [], reserved: bits)
            #expect(read(frame) == [.failure(1002)])
            // From the first byte.
            #expect(read(Array(frame.prefix(1))) == [.failure(1002)])
            #expect(read(serverFrame(1, "fine") + frame) == [textMessage("fine"), .failure(1002)])
        }
    }

    @Test(arguments: [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] as [UInt8])
    func unknownOpcodes(_ opcode: UInt8) {
        #expect(read(Array(serverFrame(opcode, []).prefix(1))) == [.failure(1002)])
        #expect(read(serverFrame(1, "a", isFinal: false) + serverFrame(opcode, "x")) == [.failure(1002)])
    }

    @Test(arguments: [0, 1, 2, 8, 9, 10] as [UInt8])
    func maskedFrames(_ opcode: UInt8) {
        #expect(read(serverFrame(opcode, [], isMasked: true)) == [.failure(1002)])
        #expect(read(Array(serverFrame(opcode, [1, 2], isMasked: true).prefix(2))) == [.failure(1002)])
    }

    @Test(arguments: [8, 9, 10] as [UInt8])
    func controlFrames(_ opcode: UInt8) {
        #expect(read(serverFrame(opcode, [], isFinal: false)) == [.failure(1002)])
        #expect(read(serverFrame(opcode, [UInt8](repeating: 0x61, count: 126))) == [.failure(1002)])
        #expect(read([0x80 | opcode, 126]) == [.failure(1002)])
        #expect(read([0x80 | opcode, 127]) == [.failure(1002)])
        #expect(read(serverFrame(opcode, [0x03, 0xE8] + [UInt8](repeating: 0x61, count: 123))).first != .failure(1002))
    }

    @Test func lengthsMustBeMinimal() {
        for count in [0, 1, 125] {
            let payload = [UInt8](repeating: 0x61, count: count)
            #expect(read(serverFrame(1, payload, form: .sixteenBit)) == [.failure(1002)])
            #expect(read(serverFrame(1, payload, form: .sixtyFourBit)) == [.failure(1002)])
        }
        #expect(read(serverFrame(1, [UInt8](repeating: 0x61, count: 126), form: .sixtyFourBit)) == [.failure(1002)])
        #expect(read(serverFrame(1, [UInt8](repeating: 0x61, count: 65_535), form: .sixtyFourBit)) == [.failure(1002)])
        #expect(read(serverFrame(2, [], form: .sixteenBit)) == [.failure(1002)])
    }

    @Test func highestLengthBit() {
        for first in [0x80, 0xFF] as [UInt8] {
            #expect(read([0x81, 127, first, 0, 0, 0, 0, 0, 0, 0]) == [.failure(1002)])
            #expect(read([0x82, 127, first, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) == [.failure(1002)])
        }
        // The largest lawful length is only too big.
        #expect(read([0x82, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) == [.failure(1009)])
    }

    @Test func continuations() {
        #expect(read(serverFrame(0, "x")) == [.failure(1002)])
        #expect(read(serverFrame(0, "x", isFinal: false)) == [.failure(1002)])
        #expect(read(serverFrame(1, "a") + serverFrame(0, "x")) == [textMessage("a"), .failure(1002)])
        for opcode in [1, 2] as [UInt8] {
            #expect(read(serverFrame(1, "a", isFinal: false) + serverFrame(opcode, "b")) == [.failure(1002)])
            #expect(
                read(serverFrame(2, "a", isFinal: false) + serverFrame(opcode, "b", isFinal: false)) == [.failure(1002)]
            )
        }
        let twice = serverFrame(1, "a", isFinal: false) + serverFrame(0, "b") + serverFrame(0, "c")
        #expect(read(twice) == [textMessage("ab"), .failure(1002)])
        #expect(readBytewise(twice) == [textMessage("ab"), .failure(1002)])
    }

    @Test func closeCodes() {
        for code in UInt16.min...UInt16.max {
            let isLawful =
                (1000...1003).contains(code) || (1007...1014).contains(code) || (3000...4999).contains(code)
            let events = read(serverFrame(8, [UInt8(code >> 8), UInt8(code & 0xFF)]))
            guard events == [isLawful ? .close(code, "") : .failure(1002)] else {
                Issue.record("\(code): \(events)")
                return
            }
        }
    }

    @Test func closePayloads() {
        #expect(read(serverFrame(8, [0x03])) == [.failure(1002)])
        #expect(read(serverFrame(8, [0x03, 0xE8, 0xFF])) == [.failure(1007)])
        #expect(read(serverFrame(8, [0x03, 0xE8, 0xF0, 0x9F, 0x98])) == [.failure(1007)])
        #expect(
            read(serverFrame(8, [0x0F, 0xA9] + Array("Member connections terminated".utf8)))
                == [.close(4009, "Member connections terminated")])
        // Between fragments, and nothing after it.
        #expect(
            read(serverFrame(1, "a", isFinal: false) + serverFrame(8, []) + serverFrame(0, "b")) == [.close(1005, "")])
    }

    @Test func tooBigIsKnownFromTheHeader() {
        #expect(read(serverFrame(1, String(repeating: "a", count: 100)), messageBytesMax: 100).count == 1)
        for size in [101, 126, 70_000] {
            let frame = serverFrame(1, [UInt8](repeating: 0x61, count: size))
            #expect(read(frame, messageBytesMax: 100) == [.failure(1009)])
            #expect(read(Array(frame.prefix(frame.count - size)), messageBytesMax: 100) == [.failure(1009)])
        }
        // Control frames do not count, fragments add up.
        let first = serverFrame(1, String(repeating: "a", count: 60), isFinal: false)
        #expect(read(first + serverFrame(9, "p") + [0x80, 41], messageBytesMax: 100).last == .failure(1009))
        #expect(read(first + serverFrame(0, String(repeating: "b", count: 40)), messageBytesMax: 100).count == 1)
        #expect(read(serverFrame(9, [UInt8](repeating: 0x61, count: 125)), messageBytesMax: 10).count == 1)
        var reader = FrameReader(messageBytesMax: 10)
        for _ in 0..<10 {
            reader.receive(serverFrame(1, "12345", isFinal: false) + serverFrame(0, "67890"))
        }
        #expect(reader.events.count == 10)
    }

    @Test(arguments: JSONCases.invalidUTF8)
    func invalidUTF8(_ bytes: [UInt8]) {
        #expect(read(serverFrame(1, bytes)) == [.failure(1007)])
        #expect(readBytewise(serverFrame(1, bytes)) == [.failure(1007)])
        #expect(read(serverFrame(1, bytes, isFinal: false) + serverFrame(0, [])) == [.failure(1007)])
        for cut in 0...bytes.count {
            let stream =
                serverFrame(1, Array("κόσμε".utf8) + bytes[..<cut], isFinal: false)
                + serverFrame(0, Array(bytes[cut...]))
            #expect(read(stream) == [.failure(1007)])
            #expect(readBytewise(stream) == [.failure(1007)])
        }
        #expect(read(serverFrame(2, bytes)) == [.message(bytes, isBinary: true)])
    }

    /// Autobahn 6.4: the octet that spoils the text is enough, whatever is still to come.
    @Test func failsFast() {
        let good = Array("κόσμε".utf8)
        let bad: [UInt8] = [0xF4, 0x90]
        let tail = Array("edited".utf8)
        // In the middle of an unfragmented frame.
        let frame = serverFrame(1, good + bad + [0x80, 0x80] + tail)
        #expect(read(Array(frame.prefix(2 + good.count + 1))) == [])
        #expect(read(Array(frame.prefix(2 + good.count + 2))) == [.failure(1007)])
        // In the first of several fragments.
        #expect(read(serverFrame(1, good + bad, isFinal: false)) == [.failure(1007)])
        // In the middle of a continuation.
        var reader = FrameReader()
        reader.receive(serverFrame(1, good + [0xF4], isFinal: false))
        #expect(reader.events == [])
        reader.receive(serverFrame(0, [0x90, 0x80, 0x80] + tail).prefix(3))
        #expect(reader.events == [.failure(1007)])
        // A frame whose tail has not come is judged once, however it dribbles in.
        var dribble = FrameReader()
        for byte in frame.prefix(2 + good.count + 2) {
            dribble.receive(CollectionOfOne(byte))
        }
        #expect(dribble.events == [.failure(1007)])
    }

    @Test func incompleteTextAtTheEnd() {
        #expect(read(serverFrame(1, [0x61, 0xE2, 0x82])) == [.failure(1007)])
        #expect(read(serverFrame(1, [0xE2], isFinal: false) + serverFrame(0, [0x82], isFinal: false)) == [])
        #expect(read(serverFrame(1, [0xE2, 0x82], isFinal: false) + serverFrame(0, [])) == [.failure(1007)])
        #expect(
            read(serverFrame(1, [0xE2, 0x82], isFinal: false) + serverFrame(9, "") + serverFrame(0, [0xAC])) == [
                .ping([]), textMessage("€"),
            ])
    }
}
