import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

@Suite("Log")
struct LogTests {
    @Test(
        "a line's time is read as it was written",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_798_761_599_999, "2026-12-31T23:59:59.999Z"), (32_503_680_000_007, "3000-01-01T00:00:00.007Z"),
        ] as [(Int64, String)])
    func times(timeMs: Int64, text: String) {
        #expect(LogEntry.format(timeMs) == text)
        #expect(LogEntry.time(ofLine: "\(text) 1/1 info".utf8) == timeMs)
    }

    @Test(
        "other lines have no time",
        arguments: ["", "2026-12-31T23:59:59.999", "2026-12-31 23:59:59.999Z x", "+026-xx-31T23:59:59.999Z", "hello"])
    func foreignLines(text: String) {
        #expect(LogEntry.time(ofLine: text.utf8) == nil)
    }

    @Test("an entry is one printable line, and no longer than its bound")
    func lines() {
        func message(_ text: String) -> String {
            LogEntry(.info, .wire, clientTag: 0, clientNumber: 1, status: BIRD_OK, channel: "", text).message
        }
        #expect(message("a\nb\u{1B}[2Jc\u{9B}d\u{0}é") == "a b [2Jc d é")
        let long = message(String(repeating: "é", count: 3_000))
        #expect(long.utf8.count <= 2_048 + "…".utf8.count && long.hasSuffix("é…"))
    }

    @Test(
        "names of areas",
        arguments: [
            ("all", "all"), ("wire", "wire"), ("wire,connection", "connection,wire"),
            ("signin, channel", "channel,signin"),
        ])
    func areas(text: String, names: String) {
        #expect(LogAreas(names: text)?.names == names)
    }

    @Test("names that are none", arguments: ["", ",", "Wire", "wire;channel", "all,wire", "everything"])
    func noAreas(text: String) {
        #expect(LogAreas(names: text) == nil)
    }

    @Test("a text that no sink wants is not made")
    func laziness() throws {
        var options = ClientOptions()
        options.log.console = .warn
        let log = try Log(options, Monitor())
        var made = 0
        func text() -> String {
            made += 1
            return ""
        }
        #expect(log.wants(.warn, .wire) && !log.wants(.info, .wire))
        log.write(.info, .connection, text())
        #expect(made == 0)
        options.log.console = .off
        log.change(to: options.log)
        log.write(.error, .connection, text())
        #expect(made == 0 && !log.isOn)
    }

    @Test("levels and areas change while it lives")
    func changes() throws {
        let log = try Log(ClientOptions(), Monitor())
        #expect(!log.isOn)
        var changed = LogOptions()
        changed.level = .verbose
        changed.areas = try #require(LogAreas(names: "channel"))
        log.change(to: changed)
        #expect(log.wants(.verbose, .channel) && !log.wants(.error, .connection))
        log.write(.info, .channel, "told")
        #expect(log.takeRecords().map(\.message) == ["told"])
        log.end()
        log.write(.info, .channel, "too late")
        #expect(log.takeRecords().isEmpty)
    }
}
