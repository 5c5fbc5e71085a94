import Testing

@testable import BirdRealtimeCore

@Suite struct HalfPairsTests {
    private func replaced(_ json: String) -> String? {
        Array(json.utf8).withUnsafeBytes { HalfPairs.replaced(in: $0) }.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [
        (#""\ud83d""#, #""\ufffd""#), (#""\uDE00""#, #""\ufffd""#), (#""a\uD83Dx\ude00b""#, #""a\ufffdx\ufffdb""#),
        (#""\ude00\ud83d""#, #""\ufffd\ufffd""#), (#""\ud83d\ud83d\ude00""#, #""\ufffd\ud83d\ude00""#),
        (#""\\\ud83d""#, #""\\\ufffd""#), (#""\ud83d\n""#, #""\ufffd\n""#), (#""\ud83d\u12""#, #""\ufffd\u12""#),
    ])
    func halves(_ json: String, _ wanted: String) {
        #expect(replaced(json) == wanted)
    }

    @Test(arguments: [
        "", "\\", #"\u"#, #"\ud83"#, #""\ud83d\ude00""#, #""\\ud83d""#, #""\u00e9\ud7ff\ue000""#, #""ud83d""#,
        "\u{1F600}",
        #""\ud83g""#, #""\\\\ude00""#,
    ])
    func nothingToReplace(_ json: String) {
        #expect(replaced(json) == nil)
    }

    @Test func whatIsReplacedIsReadAgain() {
        let frame = Array(#"{"event":"moved","channel":"orders","data":"{\"a\":\"\ud83d\"}"}"#.utf8)
        frame.withUnsafeBytes { #expect(MessageScanner.scan($0, isValidUTF8: false) == .malformed) }
        frame.withUnsafeBytes({ HalfPairs.replaced(in: $0) })?.withUnsafeBytes { bytes in
            guard case .message(let message) = MessageScanner.scan(bytes, isValidUTF8: false) else {
                Issue.record("malformed")
                return
            }
            #expect(message.channel.map { JSONString.decode($0, in: bytes) } == "orders")
        }
    }
}
