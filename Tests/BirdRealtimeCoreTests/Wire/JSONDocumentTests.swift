import BirdRealtimeCore
import Testing

@Suite struct JSONDocumentTests {
    private func parse(_ json: String) throws -> JSONNode {
        try #require(JSONDocument.parse(Array(json.utf8)))
    }

    @Test func kindsAndValues() throws {
        #expect(try parse(" null ").isNull)
        #expect(try parse("true").bool == true)
        #expect(try parse("false").bool == false)
        #expect(try parse(#""a\u00e9\n""#).string == "aé\n")
        #expect(try parse("-1.50e+3").numberText == "-1.50e+3")
        #expect(try parse("[]").elements.isEmpty)
        #expect(try parse("{}").dictionary.isEmpty)
        #expect(try parse("[]").kind == .array)
        #expect(try parse("{}").kind == .object)
    }

    @Test func wrongKindIsNil() throws {
        let number = try parse("5")
        #expect(number.string == nil && number.bool == nil && !number.isNull && number["a"] == nil)
        #expect(number.elements.isEmpty && number.dictionary.isEmpty)
        #expect(try parse("\"5\"").numberText == nil)
        #expect(try parse("[{\"a\":1}]")["a"] == nil)
    }

    @Test func handshake() throws {
        let data = try parse(#"{"connection_id":"4242.1357","activity_timeout":120}"#)
        #expect(data["connection_id"]?.string == "4242.1357")
        #expect(data["activity_timeout"]?.numberText == "120")
        #expect(data["absent"] == nil)
    }

    @Test func idsFromNumbersKeepTheirDigits() throws {
        let ids = try parse(#"[7,"7",12345678901234567890123, 1.0 ,null]"#).elements.map(\.stringOrNumberText)
        #expect(ids == ["7", "7", "12345678901234567890123", "1.0", nil])
    }

    @Test func rawIsByteExact() throws {
        let json = "{ \"s\" : \"a\\u0041\" ,\"n\":1.00, \"o\":{ \"x\" : [ 1 ,2 ] } , \"z\":null}"
        let node = try parse(json)
        #expect(node["s"].map { text($0.raw) } == #""a\u0041""#)
        #expect(node["n"].map { text($0.raw) } == "1.00")
        #expect(node["o"].map { text($0.raw) } == "{ \"x\" : [ 1 ,2 ] }")
        #expect(node["z"].map { text($0.raw) } == "null")
        #expect(text(node.raw) == json)
        #expect(try text(parse(" [1] ").raw) == "[1]")
    }

    @Test func lastDuplicateWins() throws {
        let node = try parse(#"{"a":1,"b":2,"a":"x","\u0061":null}"#)
        #expect(node["a"]?.isNull == true)
        #expect(node.dictionary[ExactText("a")]?.isNull == true)
        #expect(node.dictionary.count == 2)
    }

    @Test func escapedAndLookAlikeKeys() throws {
        let node = try parse("{\"\\u0061\\n\":1,\"e\u{301}\":2,\"\u{E9}\":3}")
        #expect(node["a\n"]?.numberText == "1")
        // Keys are compared as bytes: composed and decomposed letters differ.
        #expect(node["e\u{301}"]?.numberText == "2")
        #expect(node["\u{E9}"]?.numberText == "3")
    }

    @Test func nestedAccess() throws {
        let node = try parse(#"{"events":[{"name":"online","member_ids":["m_8",9]},{"name":"offline"}]}"#)
        let events = node["events"]?.elements ?? []
        #expect(events.map { $0["name"]?.string } == ["online", "offline"])
        #expect(events.first?["member_ids"]?.elements.map(\.stringOrNumberText) == ["m_8", "9"])
        #expect(events.last?["member_ids"] == nil)
    }

    @Test func rosterOfTenThousand() throws {
        let ids = (0..<10_000).map { "m_\($0)" }
        let json =
            #"{"presence":{"ids":["# + ids.map { "\"\($0)\"" }.joined(separator: ",") + #"],"hash":{"#
            + ids.map { "\"\($0)\":{\"name\":\"N \($0)\"}" }.joined(separator: ",") + #"},"count":10000}}"#
        let presence = try #require(try parse(json)["presence"])
        let hash = try #require(presence["hash"]).dictionary
        #expect(presence["ids"]?.elements.compactMap(\.string) == ids)
        #expect(hash.count == 10_000)
        #expect(ids.allSatisfy { hash[ExactText($0)]?["name"]?.string == "N \($0)" })
    }

    @Test func depthIsBounded() {
        #expect(JSONDocument.parse(Array(JSONCases.nested(512).utf8)) != nil)
        #expect(JSONDocument.parse(Array(JSONCases.nested(513).utf8)) == nil)
    }
}
