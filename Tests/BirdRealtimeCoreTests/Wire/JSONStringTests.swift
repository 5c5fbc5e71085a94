import BirdRealtimeCore
import Testing

@Suite struct JSONStringTests {
    /// The text of a quoted string by all ways; they must agree.
    private func unescaped(_ quoted: String) -> [UInt8] {
        let source = Array(quoted.utf8.dropFirst().dropLast())
        let inPlace = withGuarded(source) { buffer -> [UInt8] in
            guard let base = buffer.baseAddress else { return [] }
            let length = JSONString.unescape(
                UnsafeRawBufferPointer(buffer), into: base.assumingMemoryBound(to: UInt8.self))
            return Array(buffer[..<length])
        }
        let copied = withGuarded(source) { buffer in
            withGuarded([UInt8](repeating: 0xEE, count: source.count)) { output -> [UInt8] in
                guard let base = output.baseAddress else { return [] }
                let length = JSONString.unescape(
                    UnsafeRawBufferPointer(buffer), into: base.assumingMemoryBound(to: UInt8.self))
                return Array(output[..<length])
            }
        }
        let decoded = source.withUnsafeBytes {
            JSONString.decode(Span(offset: 0, length: source.count, isEscaped: true), in: $0)
        }
        #expect(inPlace == copied, "\(quoted)")
        #expect(copied == Array(decoded.utf8), "\(quoted)")
        let found = unescapedWhereFound(quoted)
        #expect(found.inPlace == copied && found.copied == copied, "\(quoted)")
        return copied
    }

    /// The same in a message, with what the scan has noticed.
    private func unescapedWhereFound(_ quoted: String) -> (inPlace: [UInt8], copied: [UInt8]) {
        let message = Array("{\"event\":\(quoted)}".utf8)
        return withGuarded(message) { buffer -> ([UInt8], [UInt8]) in
            guard let base = buffer.baseAddress,
                case .message(let scanned) = MessageScanner.scan(UnsafeRawBufferPointer(buffer), isValidUTF8: false)
            else { return ([], []) }
            let copied = withGuarded([UInt8](repeating: 0xEE, count: scanned.event.length)) { output -> [UInt8] in
                guard let target = output.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return [] }
                let length = JSONString.unescape(scanned.event, in: base, into: target)
                return Array(output[..<length])
            }
            let text = JSONString.unescapeInPlace(scanned.event, in: base)
            // Nothing but the string has changed.
            #expect(buffer.prefix(10).elementsEqual(message.prefix(10)))
            #expect(buffer.suffix(2).elementsEqual(message.suffix(2)))
            return (Array(text.bytes(in: UnsafeRawBufferPointer(buffer))), copied)
        }
    }

    /// What the slow reader makes of the same string.
    private func reference(_ quoted: String) -> [UInt8]? {
        ReferenceJSON.scan(Array("{\"event\":\(quoted)}".utf8)).message?.event
    }

    @Test(arguments: [
        (#""""#, ""), (#""a""#, "a"), (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"),
        (#""\u0041\u00e9\uac00""#, "Aé가"),
        (#""\ud83d\ude00""#, "😀"), (#""\u0000""#, "\0"), (#""{\"sku\":\"A-19\"}""#, #"{"sku":"A-19"}"#),
        (#""\\u0041""#, #"\u0041"#),
        (#""\\\\\"""#, #"\\""#), (#""\uDBFF\uDFFF""#, "\u{10FFFF}"),
        (#""\u007f\u0080\u07ff\u0800\uffff""#, "\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}"),
    ])
    func table(_ quoted: String, _ expected: String) {
        #expect(unescaped(quoted) == Array(expected.utf8))
    }

    @Test(arguments: [
        #"\""#, #"\\"#, #"\n"#, #"\u00e9"#, #"\ud83d\ude00"#, #"\\\\"#, #"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""#,
        #"\"a\"bc\"def\""#,
        #"\\\n\\\\\t\u0041\""#,
    ])
    func everyAlignment(_ escape: String) {
        for before in 0..<40 {
            for after in 0..<40 {
                let quoted =
                    "\"" + String("0123456789abcdefghijklmnopqrstuvwxyzABCD".prefix(before)) + escape
                    + String("zyxwvutsrqponmlkjihgfedcba9876543210ZYXW".prefix(after)) + "\""
                guard unescaped(quoted) == reference(quoted) else {
                    Issue.record("\(before) before and \(after) behind \(escape)")
                    return
                }
            }
        }
    }

    @Test func differential() {
        var generator = SeededGenerator(seed: 8259)
        for round in 0..<20_000 {
            let quoted = FrameGenerator.string(&generator)
            guard unescaped(quoted) == reference(quoted) else {
                Issue.record("round \(round): \(quoted)")
                return
            }
        }
    }

    /// All patterns of escapes in a block and a half, with what is before shifting the output or not.
    @Test func everyPatternOfEscapes() {
        for lead in ["", #"\""#, #"\"\"\"\"\"\"\"\""#] {
            for pattern in 0..<4096 {
                var quoted = "\"" + lead
                for bit in 0..<12 {
                    quoted += pattern >> bit & 1 == 1 ? [#"\""#, #"\\"#, #"\/"#][bit % 3] : String(bit % 10)
                }
                quoted += "0123456789abcdef0123456789\""
                guard unescaped(quoted) == reference(quoted) else {
                    Issue.record("pattern \(pattern) behind \(lead)")
                    return
                }
            }
        }
    }

    /// Stretches without escapes that are longer than a block, before, between and behind all kinds of escapes.
    @Test func longPlainStretches() {
        var generator = SeededGenerator(seed: 64)
        let escapes = [#"\""#, #"\\"#, #"\n"#, #"\u00e9"#, #"\ud83d\ude00"#, "", "é", #"\"\""#]
        for _ in 0..<2_000 {
            var quoted = "\""
            for _ in 0..<Int.random(in: 1...5, using: &generator) {
                quoted += String(repeating: "u", count: Int.random(in: 0...3, using: &generator) * 67)
                quoted += String(repeating: "x", count: Int.random(in: 0...130, using: &generator))
                quoted += escapes.randomElement(using: &generator) ?? ""
            }
            quoted += "\""
            guard unescaped(quoted) == reference(quoted) else {
                Issue.record("\(quoted)")
                return
            }
        }
    }

    @Test func decodesWithoutEscapes() {
        let bytes = Array("xx안녕yy".utf8)
        bytes.withUnsafeBytes {
            #expect(JSONString.decode(Span(offset: 2, length: 6, isEscaped: false), in: $0) == "안녕")
            #expect(JSONString.decode(Span(offset: 2, length: 0, isEscaped: false), in: $0) == "")
        }
    }

    @Test func quotesOnlyWhatMust() {
        var output: [UInt8] = []
        JSONString.appendQuoted("a/b \"\\ \u{8}\u{9}\u{A}\u{C}\u{D}\u{0}\u{1F}\u{7F}é😀\u{2028}", to: &output)
        #expect(text(output) == "\"a/b \\\"\\\\ \\b\\t\\n\\f\\r\\u0000\\u001f\u{7F}é😀\u{2028}\"")
        output = []
        JSONString.appendQuoted("", to: &output)
        #expect(text(output) == "\"\"")
    }

    @Test func quotingRoundTrips() {
        var generator = SeededGenerator(seed: 3629)
        for _ in 0..<5_000 {
            let scalars = (0..<Int.random(in: 0..<60, using: &generator)).compactMap { _ in
                Unicode.Scalar(
                    UInt32.random(in: 0...(Bool.random(using: &generator) ? 0x7F : 0x10FFFF), using: &generator))
            }
            var original = ""
            original.unicodeScalars.append(contentsOf: scalars)
            var quoted: [UInt8] = []
            JSONString.appendQuoted(original, to: &quoted)
            #expect(isValue(quoted))
            #expect(unescaped(text(quoted)) == Array(original.utf8))
        }
    }
}
