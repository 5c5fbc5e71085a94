import BirdRealtimeCore
import Testing

@Suite struct UTF8ValidatorTests {
    private func isValid(_ bytes: [UInt8]) -> Bool {
        withGuarded(bytes) { UTF8Validator.isValid(UnsafeRawBufferPointer($0)) }
    }

    private func isValid(pieces: [ArraySlice<UInt8>]) -> Bool {
        var validator = UTF8Validator()
        for piece in pieces {
            guard withGuarded(Array(piece), { validator.append(UnsafeRawBufferPointer($0)) }) else { return false }
        }
        return validator.isComplete
    }

    @Test func everyScalarAtTheEdges() {
        for value in [
            0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x3FFFF, 0x40000,
            0x10FFFF,
        ] as [UInt32] {
            let bytes = Unicode.Scalar(value).map { Array(String(Character($0)).utf8) } ?? []
            for before in 0..<20 {
                let text = [UInt8](repeating: 0x61, count: before) + bytes
                #expect(isValid(text) && isValid(text + bytes) && isValid(text + [UInt8](repeating: 0x62, count: 20)))
            }
        }
    }

    @Test(arguments: JSONCases.invalidUTF8)
    func refuses(_ bytes: [UInt8]) {
        for before in 0..<20 {
            let text = [UInt8](repeating: 0x61, count: before) + bytes
            #expect(!isValid(text))
            #expect(!isValid(text + [0x61]))
            #expect(!isValid(text + [UInt8](repeating: 0x61, count: 20)))
            #expect(!isValid(pieces: text.indices.map { text[$0...$0] }))
        }
    }

    /// All pairs, and a spread of longer sequences, against the standard library.
    @Test func agreesWithTheStandardLibrary() {
        for first in UInt8(0x00)...0xFF {
            for second in UInt8(0x00)...0xFF {
                let bytes = [first, second]
                let expected = String(validating: bytes, as: UTF8.self) != nil
                guard bytes.withUnsafeBytes(UTF8Validator.isValid) == expected else {
                    Issue.record("\(bytes)")
                    return
                }
            }
        }
        var generator = SeededGenerator(seed: 10646)
        let leads: [UInt8] = [
            0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5,
        ]
        for round in 0..<200_000 {
            let bytes = (0..<Int.random(in: 1...9, using: &generator)).map { _ in
                leads.randomElement(using: &generator) ?? 0
            }
            guard bytes.withUnsafeBytes(UTF8Validator.isValid) == (String(validating: bytes, as: UTF8.self) != nil)
            else {
                Issue.record("round \(round): \(bytes)")
                return
            }
        }
    }

    @Test func everySplit() {
        let bytes = Array("añ안😀\u{10FFFF}z and sixteen more bytes of plain text 😀".utf8)
        for first in 0...bytes.count {
            for second in first...bytes.count {
                #expect(isValid(pieces: [bytes[..<first], bytes[first..<second], bytes[second...]]))
            }
        }
        #expect(isValid(pieces: bytes.indices.map { bytes[$0...$0] }))
    }

    /// The first byte that cannot be right is refused, not the end of its character.
    @Test(
        arguments: [
            ([0xF4], 0x90), ([0xF4, 0x8F], 0xC0), ([0xF0], 0x8F), ([0xE0], 0x9F), ([0xED], 0xA0), ([0xE1, 0x80], 0x41),
            ([0xC2], 0x41),
            ([], 0x80), ([], 0xC0), ([], 0xC1), ([], 0xF5), ([], 0xFF), ([0xF1, 0x80, 0x80], 0x7F),
        ] as [([UInt8], UInt8)])
    func failsAtOnce(_ good: [UInt8], _ bad: UInt8) {
        var validator = UTF8Validator()
        #expect(good.withUnsafeBytes { validator.append($0) })
        #expect(![bad].withUnsafeBytes { validator.append($0) })
    }

    @Test func incompleteIsNotInvalid() {
        var validator = UTF8Validator()
        #expect(([0x61, 0xF0, 0x9F] as [UInt8]).withUnsafeBytes { validator.append($0) })
        #expect(!validator.isComplete)
        #expect(([0x98, 0x80] as [UInt8]).withUnsafeBytes { validator.append($0) })
        #expect(validator.isComplete)
    }
}
