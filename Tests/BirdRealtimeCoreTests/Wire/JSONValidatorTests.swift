import BirdRealtimeCore
import Testing

@Suite struct JSONValidatorTests {
    @Test func tableIsLargeEnough() {
        #expect(JSONCases.valid.count + JSONCases.invalid.count + JSONCases.invalidUTF8.count >= 150)
    }

    @Test(arguments: JSONCases.valid)
    func accepts(_ json: String) {
        #expect(isValue(Array(json.utf8)))
        #expect(ReferenceJSON.isValue(Array(json.utf8)))
        #expect(JSONDocument.parse(Array(json.utf8)) != nil)
    }

    @Test(arguments: JSONCases.invalid)
    func refuses(_ json: String) {
        #expect(!isValue(Array(json.utf8)))
        #expect(!ReferenceJSON.isValue(Array(json.utf8)))
        #expect(JSONDocument.parse(Array(json.utf8)) == nil)
    }

    @Test(arguments: JSONCases.invalidUTF8)
    func refusesInvalidUTF8(_ bytes: [UInt8]) {
        let json = Array("[\"".utf8) + bytes + Array("\"]".utf8)
        #expect(!isValue(json))
        #expect(JSONDocument.parse(json) == nil)
    }

    /// Whatever the alignment of a fault to the blocks that the scanner reads.
    @Test func findsFaultsAtEveryOffset() {
        for length in 0..<70 {
            let plain = [UInt8](repeating: UInt8(ascii: "x"), count: length)
            for tail in ["", "y", "yy zz", "0123456789abcdef0123456789abcdef"] {
                let rest = Array(tail.utf8) + [UInt8(ascii: "\"")]
                let quote: [UInt8] = [UInt8(ascii: "\"")]
                #expect(isValue(quote + plain + rest))
                #expect(isValue(quote + plain + Array(#"\""#.utf8) + rest))
                #expect(isValue(quote + plain + Array(#"\\\\\""#.utf8) + rest))
                #expect(isValue(quote + plain + Array(#"\ud83d\ude00"#.utf8) + rest))
                #expect(!isValue(quote + plain + [0x1F] + rest))
                #expect(!isValue(quote + plain + Array(#"\q"#.utf8) + rest))
                #expect(!isValue(quote + plain + Array(#"\ud83d"#.utf8) + rest))
                #expect(!isValue(quote + plain + [0xC3] + rest))
                #expect(!isValue(quote + plain + [UInt8(ascii: "\\")]))
                #expect(!isValue(quote + plain))
            }
        }
    }

    @Test func nestingEndsAt512() {
        #expect(isValue(Array(JSONCases.nested(512).utf8)))
        #expect(!isValue(Array(JSONCases.nested(513).utf8)))
        let objects = { (depth: Int) in
            Array((String(repeating: "{\"a\":", count: depth) + "1" + String(repeating: "}", count: depth)).utf8)
        }
        #expect(isValue(objects(512)))
        #expect(!isValue(objects(513)))
        #expect(!isValue([UInt8](repeating: UInt8(ascii: "["), count: 1_000_000)))
    }

    /// Every mixture of objects and arrays closes only in its own order.
    @Test func mixedNesting() {
        var generator = SeededGenerator(seed: 512)
        for _ in 0..<200 {
            let kinds = (0..<Int.random(in: 1...512, using: &generator)).map { _ in Bool.random(using: &generator) }
            let opening = kinds.map { $0 ? "{\"k\":" : "[" }.joined() + "0"
            let closing = kinds.reversed().map { $0 ? "}" : "]" }
            #expect(isValue(Array((opening + closing.joined()).utf8)))
            var wrong = closing
            let index = Int.random(in: 0..<wrong.count, using: &generator)
            wrong[index] = wrong[index] == "}" ? "]" : "}"
            #expect(!isValue(Array((opening + wrong.joined()).utf8)))
        }
    }
}
