import BirdRealtime
import Foundation
import Testing

@Suite struct JSONCodingTests {
    private struct Envelope: Codable, Equatable {
        var kind: String
        var body: JSONValue
        var note: JSONValue?
    }

    @Test func valuesAreMembersOfTypesOfTheProgramsOwn() throws {
        let text = #"{"kind":"k","body":{"":[1,-2,"x\n",true,null,{}],"big":18446744073709551615,"price":0.1}}"#
        let value = try #require(JSONValue(json: text))
        let envelope: Envelope = try value.decode()
        #expect(envelope.body == value["body"])
        #expect(envelope.note == nil)
        #expect(try JSONValue(encoding: envelope) == value)
    }

    @Test(arguments: ["null", "true", "\"é\"", "[]", "{}", "7", "-9223372036854775808", "18446744073709551615", "1.25"])
    func whatIsDecodedIsEncodedAgain(_ text: String) throws {
        let value = try #require(JSONValue(json: text))
        #expect(try value.decode(as: JSONValue.self) == value)
        #expect(try JSONValue(encoding: value) == value)
    }

    @Test func decimalsKeepTheDigitsThatTheyCanHold() throws {
        let digits = "0.12345678901234567890123456789"
        #expect(try JSONValue(json: digits)?.decode(as: JSONValue.self).number == digits)
        #expect(try JSONValue(json: "1e300")?.decode(as: JSONValue.self).double == 1e300)
    }

    @Test func whatNoCoderCanHoldIsRefused() throws {
        let value = try #require(JSONValue(json: "[1e400]"))
        #expect(throws: EncodingError.self) { try JSONValue(encoding: value) }
        #expect(throws: DecodingError.self) { try value.decode(as: JSONValue.self) }
    }
}
