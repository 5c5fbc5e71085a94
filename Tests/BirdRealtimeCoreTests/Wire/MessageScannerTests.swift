import BirdRealtimeCore
import Testing

@Suite struct MessageScannerTests {
    private func message(
        _ event: String, channel: String? = nil, _ kind: DataKind = .none, _ data: String = ""
    ) -> DecodedOutcome {
        .message(
            DecodedMessage(
                event: Array(event.utf8), channel: channel.map { Array($0.utf8) }, dataKind: kind,
                data: Array(data.utf8)))
    }

    @Test func typicalFrames() {
        #expect(
            scan(#"{"event":"stock.moved","channel":"orders","data":"{\"sku\":\"A-19\",\"left\":4}"}"#)
                == message("stock.moved", channel: "orders", .string, #"{"sku":"A-19","left":4}"#))
        #expect(
            scan(#"{"event":"stock.moved","channel":"orders","data":{"sku":"A-19","left":[4,{}]}}"#)
                == message("stock.moved", channel: "orders", .value, #"{"sku":"A-19","left":[4,{}]}"#))
        #expect(scan(#"{"event":"bird:ping"}"#) == message("bird:ping"))
        #expect(scan(#"{"event":""}"#) == message(""))
        #expect(scan(#"{"event":"a","data":""}"#) == message("a", .string))
    }

    @Test(arguments: [
        "null", "true", "42", "-1.5e3", #"{"a":1}"#, "[]", "[1,2]", "1234567890123456789012345678901234567890",
    ])
    func valuesStayAsTheyStand(_ json: String) {
        #expect(scan("{\"data\": \(json) ,\"event\":\"a\"}") == message("a", .value, json))
        #expect(scan("{\"event\":\"a\",\"data\":\(json)}") == message("a", .value, json))
    }

    @Test func whitespaceAndOrder() {
        #expect(
            scan(" \t\r\n{ \"data\" : \"d\" ,\n\"channel\"\t:\r\"c\" , \"event\" : \"e\" } \n")
                == message("e", channel: "c", .string, "d"))
        #expect(scan(#"{"user_id":"u","x":[{"event":"no"}],"event":"e","y":null}"#) == message("e"))
    }

    private func sender(_ json: String) -> String? {
        Array(json.utf8).withUnsafeBytes { bytes in
            guard case .message(let message) = MessageScanner.scan(bytes, isValidUTF8: false), !message.sender.isNone
            else { return nil }
            return JSONString.decode(message.sender.span, in: bytes)
        }
    }

    @Test(
        "S15: who sent a client event stands beside channel and data",
        arguments: [
            (#"{"event":"client-x","channel":"presence-a","data":"1","user_id":"m_7"}"#, "m_7"),
            (#"{"event":"client-x","member_id":"m_7","channel":"presence-a","data":{"user_id":"no"}}"#, "m_7"),
            (#"{"event":"e","user_id":7}"#, "7"), (#"{"event":"e","user_id":-1.50 }"#, "-1.50"),
            (#"{"event":"e","\u0075ser_id":"\u006d\u0000\"é"}"#, "m\0\"é"),
            (#"{"event":"e","member_\u0069d":"m"}"#, "m"),
            (#"{"user_id":"a","event":"e","user_id":"b"}"#, "b"), (#"{"event":"e","user_id":"a","user_id":null}"#, nil),
            (#"{"event":"e","user_id":""}"#, nil), (#"{"event":"e","user_id":true}"#, nil),
            (#"{"event":"e","user_id":["m"]}"#, nil), (#"{"event":"e","user_ids":"m"}"#, nil),
            (#"{"event":"e","userid":"m"}"#, nil), (#"{"event":"e"}"#, nil),
        ] as [(String, String?)])
    func senders(_ json: String, _ wanted: String?) {
        #expect(sender(json) == wanted)
    }

    @Test func aSenderHasABound() {
        let longest = String(repeating: "m", count: 0x7FFF)
        #expect(sender("{\"event\":\"e\",\"user_id\":\"\(longest)\"}") == longest)
        #expect(sender("{\"event\":\"e\",\"user_id\":\"\(longest)m\"}") == nil)
    }

    @Test func lastDuplicateWins() {
        #expect(
            scan(#"{"event":"a","event":"b","channel":"x","channel":"y","data":"1","data":2}"#)
                == message("b", channel: "y", .value, "2"))
        #expect(scan(#"{"event":5,"event":"b"}"#) == message("b"))
        #expect(scan(#"{"event":"b","event":5}"#) == .malformed)
        #expect(scan(#"{"event":"b","channel":"x","channel":null}"#) == message("b"))
        #expect(scan(#"{"event":"b","data":{},"data":"s"}"#) == message("b", .string, "s"))
        #expect(scan(#"{"event":"a","\u0065vent":"b"}"#) == message("b"))
    }

    @Test func escapedKeysMatch() {
        #expect(
            scan(#"{"\u0065\u0076\u0065\u006e\u0074":"e","ch\u0061nnel":"c","dat\u0061":"d"}"#)
                == message("e", channel: "c", .string, "d"))
        #expect(scan(#"{"event\u0000":"e"}"#) == .malformed)
        #expect(scan(#"{"event\"":"x","event":"e"}"#) == message("e"))
        #expect(scan(#"{"events":"x","even":"y","Event":"z","event":"e"}"#) == message("e"))
        let long = String(repeating: #"\u0065"#, count: 100)
        #expect(scan("{\"\(long)\":1,\"event\":\"e\"}") == message("e"))
    }

    @Test func escapesInNames() {
        #expect(scan(#"{"event":"a\"b\u00e9","channel":"c\/d"}"#) == message("a\"bé", channel: "c/d"))
    }

    @Test(arguments: [#"{"event":5}"#, #"{"event":null}"#, #"{"event":["a"]}"#, #"{"event":{"event":"a"}}"#])
    func eventMustBeAString(_ json: String) {
        #expect(scan(json) == .malformed)
    }

    @Test(arguments: ["5", "null", "true", "[]", "{}", #"["c"]"#])
    func otherChannelIsAbsent(_ json: String) {
        #expect(scan("{\"event\":\"a\",\"channel\":\(json)}") == message("a"))
    }

    @Test(arguments: JSONCases.valid.filter { !$0.contains("event") })
    func onlyAnObjectWithEventIsAMessage(_ json: String) {
        #expect(scan(json) == .malformed)
    }

    @Test(arguments: JSONCases.valid)
    func anyValueIsData(_ json: String) {
        let outcome = scan("{\"event\":\"a\",\"data\":\(json)}")
        #expect(outcome == ReferenceJSON.scan(Array("{\"event\":\"a\",\"data\":\(json)}".utf8)))
        #expect(outcome.message != nil)
    }

    @Test(arguments: JSONCases.invalid)
    func anyFaultIsMalformed(_ json: String) {
        for frame in ["{\"event\":\"a\",\"data\":\(json)}", "{\"event\":\"a\",\"x\":\(json),\"data\":1}", json] {
            let outcome = scan(frame)
            #expect(outcome == ReferenceJSON.scan(Array(frame.utf8)), "\(frame)")
            #expect(outcome == .malformed, "\(frame)")
        }
    }

    @Test(arguments: [
        #"{"event":"a"}x"#, #"{"event":"a"}}"#, #"{"event":"a"}{"event":"b"}"#, #"{"event":"a","#, #"{"event":"a",}"#,
        #"{"event":"a""#, #"{"event""#, #"{"event":"#, #"{"event":"a" "channel":"b"}"#, #"["event","a"]"#,
        #"{event:"a"}"#,
        "{\"event\":\"a\nb\"}", "{\"event\":\"a\"}\u{0}", #"{"event":"a","data":"\ud800"}"#, #"{"event":"\q"}"#,
        #"{"event":"a","channel":"\ud83d"}"#, #"{"\ud83d":1,"event":"a"}"#, #"{,"event":"a"}"#,
        #"{"event":"a",,"data":1}"#,
    ])
    func malformed(_ json: String) {
        #expect(scan(json) == .malformed)
    }

    @Test(arguments: JSONCases.invalidUTF8)
    func invalidUTF8Anywhere(_ bytes: [UInt8]) {
        for (before, after) in [
            (#"{"event":"a"#, #""}"#), (#"{"event":"a","channel":""#, #""}"#),
            (#"{"event":"a","data":"long enough to cross blocks "#, #""}"#),
            (#"{"event":"a","data":{"k":[""#, #""]}}"#), (#"{"event":"a",""#, #"":1}"#), (#"{"event":"a"}"#, ""),
            ("", ""), ("[", "]"),
            (#"{"event":5,"x":""#, #""}"#), (#"{"event":"a","data":"\q"#, #""}"#),
        ] {
            let frame = Array(before.utf8) + bytes + Array(after.utf8)
            #expect(scan(frame) == .invalidUTF8, "\(before)…\(after)")
        }
    }

    @Test func checkedTextIsNotCheckedAgain() {
        let frame = Array("{\"event\":\"é😀\"}".utf8)
        #expect(scan(frame, isValidUTF8: true) == message("é😀"))
        #expect(scan(Array("é".utf8), isValidUTF8: true) == .malformed)
    }

    @Test func emptyTextIsMalformed() {
        #expect(scan("") == .malformed)
        #expect(MessageScanner.scan(UnsafeRawBufferPointer(start: nil, count: 0), isValidUTF8: false) == .malformed)
    }

    @Test func nestingCountsTheMessageItself() {
        #expect(scan("{\"event\":\"a\",\"data\":\(JSONCases.nested(511))}").message != nil)
        #expect(scan("{\"event\":\"a\",\"data\":\(JSONCases.nested(512))}") == .malformed)
    }

    @Test func everyPrefixIsMalformed() {
        let frame = Array(
            #"{"event":"stock.moved","channel":"orders","data":"{\"sku\":\"\ud83d\ude00\",\"left\":4}"}"#.utf8)
        for end in 0..<frame.count {
            #expect(scan(Array(frame[..<end])) == .malformed)
        }
    }

    @Test func differentialWithMutations() {
        var generator = SeededGenerator(seed: 6455)
        var accepted = 0
        for round in 0..<15_000 {
            var frame = FrameGenerator.frame(using: &generator)
            for _ in 0..<(round % 3) {
                FrameGenerator.mutate(&frame, using: &generator)
            }
            let outcome = scan(frame)
            let expected = ReferenceJSON.scan(frame)
            accepted += outcome.message == nil ? 0 : 1
            guard outcome == expected else {
                Issue.record("round \(round): \(outcome) but \(expected) for \(text(frame))")
                return
            }
            guard isValue(frame) == ReferenceJSON.isValue(frame) else {
                Issue.record("round \(round): the validator differs for \(text(frame))")
                return
            }
        }
        #expect(accepted > 5_000)
    }
}

/// Random messages with every feature of the grammar.
enum FrameGenerator {
    static func frame(using generator: inout SeededGenerator) -> [UInt8] {
        var members = [
            "\(key("event", &generator))\(blank(&generator)):\(blank(&generator))\(string(&generator))",
            "\(key("channel", &generator)):\(Bool.random(using: &generator) ? string(&generator) : value(2, &generator))",
            "\(key("data", &generator)):\(Bool.random(using: &generator) ? string(&generator) : value(3, &generator))",
            "\(string(&generator)):\(value(1, &generator))",
        ]
        members.shuffle(using: &generator)
        members.removeLast(Int.random(in: 0...2, using: &generator))
        let separator = blank(&generator) + "," + blank(&generator)
        return Array(
            (blank(&generator) + "{" + blank(&generator) + members.joined(separator: separator) + blank(&generator)
                + "}"
                + blank(&generator)).utf8)
    }

    /// Replaces, removes, inserts or doubles a few bytes.
    static func mutate(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
        guard let index = bytes.indices.randomElement(using: &generator) else { return }
        let interesting =
            Array("\"\\{}[]:,u0d8eE+-. \n/tfn".utf8) + [0x00, 0x1F, 0x7F, 0x80, 0xBF, 0xC3, 0xED, 0xF0, 0xFF]
        let byte = interesting.randomElement(using: &generator) ?? 0
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[index] = byte
        case 1: bytes.remove(at: index)
        case 2: bytes.insert(byte, at: index)
        default: bytes.insert(bytes[index], at: index)
        }
    }

    private static func key(_ name: String, _ generator: inout SeededGenerator) -> String {
        guard Int.random(in: 0..<4, using: &generator) == 0 else { return "\"\(name)\"" }
        let escaped = name.utf8.map { byte in
            Bool.random(using: &generator)
                ? String(Character(Unicode.Scalar(byte))) : #"\u00"# + String(byte, radix: 16)
        }
        return "\"\(escaped.joined())\""
    }

    static func string(_ generator: inout SeededGenerator) -> String {
        let pieces = [
            "a", "lorem ipsum ", #"\""#, #"\\"#, #"\/"#, #"\n"#, #"\t"#, #"\b\f\r"#, #"\u0000"#, #"\u00e9"#, #"\uFFFF"#,
            #"\ud83d\ude00"#,
            "é", "안녕", "😀", "0123456789abcdef", #"\"key\":\"value\","#, #"\\\""#, #"\\\\"#, "\u{7F}", "'", #"\\u0041"#,
        ]
        let count = Int.random(in: 0..<12, using: &generator)
        return "\"" + (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined() + "\""
    }

    private static func value(_ depth: Int, _ generator: inout SeededGenerator) -> String {
        let scalars = ["null", "true", "false", "0", "-1.5e+10", "12345678901234567890", "1E2", "0.001"]
        switch Int.random(in: 0..<(depth > 0 ? 4 : 2), using: &generator) {
        case 0: return scalars.randomElement(using: &generator) ?? "0"
        case 1: return string(&generator)
        case 2:
            let elements = (0..<Int.random(in: 0..<4, using: &generator)).map { _ in value(depth - 1, &generator) }
            return "[" + blank(&generator) + elements.joined(separator: "," + blank(&generator)) + blank(&generator)
                + "]"
        default:
            let members = (0..<Int.random(in: 0..<4, using: &generator)).map { _ in
                string(&generator) + blank(&generator) + ":" + blank(&generator) + value(depth - 1, &generator)
            }
            return "{" + blank(&generator) + members.joined(separator: blank(&generator) + ",") + blank(&generator)
                + "}"
        }
    }

    private static func blank(_ generator: inout SeededGenerator) -> String {
        ["", "", "", " ", "\n\t", "\r\n  "].randomElement(using: &generator) ?? ""
    }
}
