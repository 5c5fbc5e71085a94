import Foundation
import FuzzTargets
import Testing

@testable import BirdRealtime

/// The reading that takes values apart when they are asked for, against one that reads all of them at once.
@Suite struct JSONReadingTests {
    /// As the data of an event: JSON, or else the text of a string.
    private func payload(_ bytes: [UInt8]) -> JSONValue { bytes.withUnsafeBytes { JSONValue(payload: $0) } }

    /// Reads the whole of the value by every way there is.
    private func expect(_ value: JSONValue, is reference: ReferenceJSON) {
        #expect(value.isNull == (reference == .null))
        if case .bool(let bool) = reference { #expect(value.bool == bool) } else { #expect(value.bool == nil) }
        if case .number(let digits) = reference {
            #expect(value.number == digits && value.text == digits)
        } else {
            #expect(value.number == nil)
        }
        if case .string(let text) = reference {
            #expect(value.string.map { Array($0.utf8) } == text)
        } else {
            #expect(value.string == nil)
        }
        if case .array(let elements) = reference {
            #expect(value.array?.count == elements.count)
            for (index, element) in elements.enumerated() {
                if let one = value[index] { expect(one, is: element) } else { Issue.record("no element \(index)") }
                if let one = value.array?[index] { #expect(one == value[index]) }
            }
            #expect(value[elements.count] == nil && value[-1] == nil)
        } else {
            #expect(value.array == nil && value[0] == nil)
        }
        if case .object(let members) = reference {
            let last = members.reduce(into: [[UInt8]: ReferenceJSON]()) { $0[$1.name] = $1.value }
            #expect(value.object?.count == last.count)
            for (name, member) in last {
                let name = String(decoding: name, as: UTF8.self)
                if let one = value[name] { expect(one, is: member) } else { Issue.record("no member \(name)") }
                #expect(value.object?[name] == value[name])
            }
        } else {
            #expect(value.object == nil && value[""] == nil)
        }
        // What it says as text means the same.
        #expect(ReferenceJSON(Array(value.text.utf8)) == reference)
    }

    /// Bytes that are JSON are read alike, and all others are the text of a string.
    private func expectSameReading(_ bytes: [UInt8]) {
        let value = payload(bytes)
        if let reference = ReferenceJSON(bytes) {
            expect(value, is: reference)
        } else if String(validating: bytes, as: UTF8.self) != nil {
            expect(value, is: .string(bytes))
        } else {
            #expect(value.isNull && value.string == nil && value.text == "")
        }
        let isJSON = ReferenceJSON(bytes) != nil
        #expect((String(validating: bytes, as: UTF8.self).flatMap { JSONValue(json: $0) } != nil) == isJSON)
    }

    static let hardTexts = [
        "", " ", "null", " null ", "nul", "true", "false ", "tru", "\t[ ]\n", "{ }", "[,]", "[1,]", "{\"a\"}",
        #""""#, #"" ""#, #""\"\\\/\b\f\n\r\t""#, #""\u0000""#, "\"\u{0}\"", "\u{0}", "a\u{0}b", #""\u00e9\u20AC""#,
        #""\ud83d\ude00""#, #""\ud83d""#, #""\ude00""#, #""\ud83d\u0041""#, #""\uD83D\uDE00\uD83D\uDE01""#,
        #""\u00g0""#,
        #""\x""#, "\"tab\there\"", #""open"#, #""\"#, "hello", "hello \"you\"", "line\nbreak", "\u{FEFF}1", "\u{1F600}",
        "0", "-0", "01", "1.", ".1", "1e5", "1E+05", "-1.5e-07", "--1", "1e", "18446744073709551616",
        "0.1000000000000000055511151231257827021181583404541015625", "1e400", "-", "+1", "1 2", "NaN",
        #"{"":1}"#, #"{"":{"":[]}}"#, #"{"a":1,"a":2,"\u0061":3}"#, #"{"a":1,"b":[{"a":{"a":null}}],"a":{"c":"}"}}"#,
        #"{"a b":1, "\"":2 ,"\\":3,"\u0000":4, "é":5}"#, #" {"a" : [ 1 , "]" , {"x":"{"} ] } "#, #"{"a":1}x"#,
        #"["a\\","\\\\\"",",","]"]"#, #"[[],[[]],{},[{}],"",0]"#, #"{1:2}"#, #"{'a':1}"#, "[1\u{0}]",
    ]

    @Test(arguments: hardTexts)
    func hardTextsAreReadAlike(_ text: String) { expectSameReading(Array(text.utf8)) }

    @Test(arguments: [
        [0xFF], [0x22, 0xC3, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0x5B, 0xC0, 0x80, 0x5D], [0x61, 0x80],
    ])
    func bytesThatAreNoTextAreReadAlike(_ bytes: [UInt8]) { expectSameReading(bytes) }

    @Test(arguments: [1, 511, 512, 513, 600])
    func theDepthIsBoundedAlike(_ depth: Int) {
        for (open, close) in [("[", "]"), (#"{"a":"#, "}")] {
            let text = String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
            #expect((ReferenceJSON(Array(text.utf8)) == nil) == (JSONValue(json: text) == nil))
            #expect((payload(Array(text.utf8)).string == nil) == (depth <= 512))
        }
    }

    /// Strings that end, and are escaped, at every place in the blocks that the scanner goes by.
    @Test func stringsOfEveryLengthAreReadAlike() {
        for length in 0..<140 {
            let plain = String(repeating: "x", count: length)
            for text in [plain, plain + "\\n", "\\u20ac" + plain, plain + "é", plain + "\\"] {
                let reference = ReferenceJSON(Array("[\"\(text)\",7]".utf8))
                let value = JSONValue(json: "[\"\(text)\",7]")
                #expect((reference == nil) == (value == nil))
                if let reference, let value { expect(value, is: reference) }
                expectSameReading(Array("\"\(text)\"".utf8))
            }
        }
    }

    /// Documents with one byte changed, left out or put in: most of them are none any more.
    @Test func brokenDocumentsAreReadAlike() {
        let document = Array(#"{"a":[1.5e3,"x\u00e9\\",true,null,{"b":{}}],"\"":"é","a":[-0, ""]}"#.utf8)
        for position in document.indices {
            for byte in Array("\"\\{}[]:,0e.-u nt".utf8) + [0x00, 0x0A, 0x80, 0xC3] {
                var changed = document
                changed[position] = byte
                expectSameReading(changed)
                changed = document
                changed.insert(byte, at: position)
                expectSameReading(changed)
            }
            var shortened = document
            shortened.remove(at: position)
            expectSameReading(shortened)
            expectSameReading(Array(document[..<position]))
        }
    }

    @Test func manyThreadsLookAtOneValueFirst() async {
        for _ in 0..<200 {
            let value = payload(Array(#" {"a":["x\u0041",{"b":7}]} "#.utf8))
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<4 { group.addTask { value["a"]?[0] == "xA" && value["a"]?[1]?["b"]?.int == 7 } }
                for await isRight in group { #expect(isRight) }
            }
        }
    }

    /// A part of a value needs nothing but itself.
    @Test func partsOutliveTheWhole() {
        var part = JSONValue(json: #"{"list":["kept",[1,2]]}"#)?["list"]
        part = part?[1]
        #expect(part?.text == "[1,2]")
    }
}
