import Testing

@testable import BirdRealtimeCore

@Suite struct MessageTemplateTests {
    private static let head = #"{"event":"tick","channel":"orders","data":""#

    private func scan(_ text: String) -> ScanOutcome {
        Array(text.utf8).withUnsafeBytes { MessageScanner.scan($0, isValidUTF8: false) }
    }

    /// A template that has learnt `text`.
    private func learnt(_ text: String) -> MessageTemplate {
        var template = MessageTemplate()
        Array(text.utf8).withUnsafeBytes { bytes in
            if case .message(let message) = MessageScanner.scan(bytes, isValidUTF8: false) {
                template.learn(bytes, message)
            }
        }
        return template
    }

    private func match(_ template: borrowing MessageTemplate, _ text: String) -> ScannedMessage? {
        Array(text.utf8).withUnsafeBytes { template.match($0) }
    }

    @Test(arguments: [
        "", "x", #"{\"a\":1}"#, #"\u00e9\n"#, String(repeating: "long ", count: 100), #"\\"#, #"ends with \""#,
    ])
    func aMatchIsWhatTheScannerSays(_ data: String) throws {
        let template = learnt(Self.head + #"first"}"#)
        let text = Self.head + data + #""}"#
        let found = match(template, text)
        let matched = try #require(found)
        #expect(scan(text) == .message(matched))
    }

    /// Whatever matches is what the scanner finds; what the scanner refuses never matches.
    @Test func neverDisagreesWithTheScanner() {
        let template = learnt(Self.head + #"first"}"#)
        let alphabet: [String] = [
            "\"", "\\", "}", "{", ",", "a", "\u{1F}", "é", "\\u12", "\\ud800", "\"}", " ", ":", "\\\"",
        ]
        var random = SystemRandomNumberGenerator()
        var matches = 0
        for _ in 0..<20_000 {
            let tail = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                alphabet.randomElement(using: &random) ?? ""
            }.joined()
            let text = Self.head + tail + (Bool.random(using: &random) ? "\"}" : "")
            guard let matched = match(template, text) else { continue }
            matches += 1
            #expect(scan(text) == .message(matched), "\(text)")
        }
        #expect(matches > 100)
    }

    @Test(arguments: [
        #"{"event":"tock","channel":"orders","data":"1"}"#, #"{"event":"tick","channel":"orders","data":1}"#,
        #"{"event":"tick","channel":"orders","data":"1","more":2}"#,
        #"{"event":"tick","channel":"orders","data":"1" }"#,
        #"{"event":"tick","channel":"orders","data":"é"}"#, #"{"event":"tick","channel":"orders","data":"1"}}"#, "",
    ])
    func otherMessagesAreLeftToTheScanner(_ text: String) {
        let found = match(learnt(Self.head + #"first"}"#), text)
        #expect(found == nil)
    }

    /// What follows the data could say something else the next time.
    @Test(arguments: [
        #"{"event":"tick","data":"1","channel":"orders"}"#, #"{"event":"tick","channel":"orders","data":"1" }"#,
        #"{"event":"tick","channel":"orders","data":{}}"#, #"{"event":"tick","channel":"orders"}"#,
        #"{"data":"1","event":"tick","channel":"\#(String(repeating: "c", count: 600))"}"#,
    ])
    func onlyMessagesThatEndWithTheirDataAreLearnt(_ text: String) {
        let found = match(learnt(text), text)
        #expect(found == nil)
    }
}
