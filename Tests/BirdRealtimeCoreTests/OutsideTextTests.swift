import Testing

@testable import BirdRealtimeCore

@Suite struct OutsideTextTests {
    /// What breaks a line or changes its direction, at both ends of each range.
    private static let unfit: [UInt32] = [
        0, 0x09, 0x0A, 0x0D, 0x1B, 0x1F, 0x7F, 0x80, 0x85, 0x9F, 0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202B,
        0x202C,
        0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069, 0x206A, 0x206F, 0xFFF9, 0xFFFB,
    ]

    @Test(arguments: unfit)
    func unfitCharactersBecomeBlanks(_ value: UInt32) throws {
        let character = try #require(Unicode.Scalar(value))
        let text = "a\(String(character))b"
        #expect(OutsideText.line(text) == "a b")
        // Everywhere at one place: messages of faults, however they come about, and log entries.
        var fault = Fault(0, .connection, text)
        #expect(fault.message == "a b")
        fault.message = "x" + text
        #expect(fault.message == "xa b")
        let entry = LogEntry(.info, .connection, clientTag: 0, clientNumber: 0, status: 0, channel: text, text)
        #expect(entry.message == "a b" && entry.channel == "a b")
    }

    @Test(arguments: ["", "plain", "é ü 漢字", "👩‍👩‍👧 אבג", "a\u{200B}b\u{200D}c"])
    func othersStay(_ text: String) {
        #expect(OutsideText.line(text) == text)
    }

    @Test(arguments: [
        ("https://user:pass@h/p?token=s#f", "https://h/p"), ("https://h", "https://h"), ("/p?q", "/p"),
        ("//u@h/p", "//h/p"),
        ("https://u@@h:1/a@b", "https://h:1/a@b"), ("https://h?u:p@x", "https://h"), ("", ""), ("?x", ""),
        ("a@b", "a@b"),
    ])
    func placeHasNoSecrets(_ location: String, _ place: String) {
        #expect(OutsideText.place(location) == place)
    }

    @Test(
        arguments: [
            ("Not here.\nmore", "\"Not here.\""), ("  \r\n text \r\n", "\"text\""),
            ("<html><head><title>\n 400 Plain\tHTTP </title>", "\"400 Plain HTTP\""),
            ("<HTML><TITLE lang=en>x</TITLE>", "\"x\""),
            ("<h1></h1>\n<p>no</p>", "\"no\""), ("<", nil), ("", nil), ("\u{0}\u{1}", nil),
            ("{\"error\":\"no\"}", "\"no\""),
            ("{\"error\":{\"message\":\"m\"}}", "\"m\""), ("{\"auth\":\"secret\"}", nil), ("{\"auth\":\"secr", nil),
            ("[1]", nil),
            ("\u{FEFF}text", "\"text\""),
        ] as [(String, String?)])
    func wordsOfABody(_ body: String, _ words: String?) {
        #expect(OutsideText.words(of: body.utf8) == words)
    }

    @Test func wordsAreCut() {
        let words = OutsideText.words(of: [UInt8](repeating: 0x61, count: 1_000_000))
        #expect(words == "\"\(String(repeating: "a", count: 200))…\"")
        // Half a character at the end of what is searched.
        #expect(OutsideText.words(of: Array("<title>".utf8) + [UInt8](repeating: 0xC3, count: 5_000)) == nil)
    }
}
