import BirdRealtime
import Foundation
import Testing

@Suite struct JSONValueTests {
    @Test func literalsBecomeJSON() throws {
        let value: JSONValue = [
            "on": true, "left": 4, "price": 1.5, "sku": "A-\"19\"", "none": nil, "list": [1, "x", []],
        ]
        #expect(
            value.text == #"{"on":true,"left":4,"price":1.5,"sku":"A-\"19\"","none":null,"list":[1,"x",[]]}"#)
        #expect(value["on"]?.bool == true)
        #expect(value["left"]?.int == 4)
        #expect(value["price"]?.double == 1.5)
        #expect(value["sku"]?.string == "A-\"19\"")
        #expect(value["none"]?.isNull == true)
        #expect(value["list"]?[1] == "x")
        #expect(value["list"]?[3] == nil)
        #expect(value["list"]?[-1] == nil)
        #expect(value["absent"] == nil)
        #expect(value.object?.count == 6)
        #expect(value["list"]?.array?.count == 3)
    }

    @Test(arguments: [
        "18446744073709551616", "-0", "0.1000000000000000055511151231257827", "1e400", "12345678901234567890.5",
    ])
    func numbersAreNeverRounded(_ digits: String) throws {
        let value = try #require(JSONValue(json: "{\"n\": \(digits) }"))
        #expect(value["n"]?.number == digits)
        #expect(value["n"]?.text == digits)
        #expect(value["n"]?.description == digits)
    }

    @Test func conversionsSayNoInsteadOfRounding() throws {
        #expect(JSONValue(json: "9223372036854775808")?.int == nil)
        #expect(JSONValue(json: "1.5")?.int == nil)
        #expect(JSONValue(json: "1e400")?.double == nil)
        #expect(JSONValue(json: "\"4\"")?.int == nil)
        #expect(JSONValue(json: "4")?.string == nil)
        #expect(JSONValue(json: "4")?["a"] == nil)
        #expect(JSONValue(json: "{}")?[0] == nil)
        #expect(JSONValue(json: "{}")?.array == nil)
        #expect(JSONValue(json: "[]")?.object == nil)
    }

    @Test func whatIsNoJSONIsRefused() {
        for text in ["", "{", "[1,]", "nul", "1 2", "'a'", "\u{FEFF}1", String(repeating: "[", count: 600)] {
            #expect(JSONValue(json: text) == nil, "\(text)")
        }
    }

    @Test func aStringPrintsAsItIs() throws {
        let string: JSONValue = "line\none"
        #expect("\(string)" == "line\none")
        #expect(string.debugDescription == #""line\none""#)
        #expect("\(try #require(JSONValue(json: #"{"a": [1, 2]}"#)))" == #"{"a": [1, 2]}"#)
    }

    @Test func equalityIsOfMeaning() throws {
        #expect(JSONValue(json: #"{"a":1,"b":"\u0041"}"#) == JSONValue(json: #" { "b" : "A", "a" : 1 } "#))
        #expect(JSONValue(json: #"{"a":1,"a":2}"#) == ["a": 2])
        #expect(JSONValue(json: "1.0") != JSONValue(json: "1"))
        #expect(JSONValue(json: "[1,2]") != JSONValue(json: "[2,1]"))
        #expect(JSONValue(json: "true") != "true")
        let values: Set<JSONValue> = [1, "1", true, nil, [1], ["a": 1], ["a": 2], 1]
        #expect(values.count == 7)
    }

    @Test func doublesThatJSONLacksAreNull() {
        #expect(JSONValue(Double.nan).isNull)
        #expect(JSONValue(-Double.infinity).isNull)
        #expect(JSONValue(Int64.min).text == "-9223372036854775808")
        #expect(JSONValue(UInt64.max).text == "18446744073709551615")
    }

    @Test func anyDepthCanBeBuiltWithoutATrap() {
        var value: JSONValue = 1
        for _ in 0..<600 { value = [value] }
        #expect(value[0] == nil)
        #expect(value.text.count == 1_201)
    }

    struct Order: Codable, Equatable {
        var sku: String
        var left: Int
        var price: Decimal
        var note: String?
    }

    @Test func decodingTakesTheBytesThatCame() throws {
        let text = #"{"sku": "A-\u00e9", "left": 4, "price": 0.12345678901234567890123456789, "other": [1e400]}"#
        let value = try #require(JSONValue(json: text))
        let price = try #require(Decimal(string: "0.12345678901234567890123456789"))
        #expect(try value.decode(as: Order.self) == Order(sku: "A-é", left: 4, price: price))
        #expect(try #require(value["left"]).decode() as Int == 4)
        #expect(try JSONValue("ready").decode() as String == "ready")
        #expect(try JSONValue.null.decode() as Int? == nil)
        #expect(throws: DecodingError.self) { try value.decode(as: [Int].self) }
        #expect(throws: DecodingError.self) { try #require(value["other"]).decode(as: [Double].self) }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let snake: JSONValue = ["member_id": "m_7"]
        struct Who: Decodable { var memberId: String }
        #expect(try snake.decode(as: Who.self, using: decoder).memberId == "m_7")
    }

    @Test func encodingGivesBackWhatDecodes() throws {
        let order = Order(sku: "A\n\"19\"", left: .max, price: 1.5, note: nil)
        let value = try JSONValue(encoding: order)
        #expect(value["left"]?.number == "9223372036854775807")
        #expect(value["note"] == nil)
        #expect(try value.decode() == order)
        #expect(try JSONValue(encoding: ["b", "a"]) == ["b", "a"])
        #expect(throws: EncodingError.self) { try JSONValue(encoding: Double.nan) }
    }
}
