import CBirdRealtimeABI
import Glibc

/// One thing that happened, in words. It holds no secret: who writes it takes care of that.
package struct LogEntry: Sendable {
    /// Longer texts are cut.
    private static let messageBytesMax = 2_048

    package let level: LogLevel
    package let area: LogArea
    /// Since 1970.
    package let timeMs: Int64
    package let clientTag: UInt64
    package let clientNumber: UInt64
    /// What went wrong, or BIRD_OK.
    package let status: Int32
    /// "" if it is about none.
    package let channel: String
    package let message: String

    init(
        _ level: LogLevel, _ area: LogArea, clientTag: UInt64, clientNumber: UInt64, status: Int32, channel: String,
        _ message: String
    ) {
        self.level = level
        self.area = area
        timeMs = System.wallClockMs()
        self.clientTag = clientTag
        self.clientNumber = clientNumber
        self.status = status
        self.channel = Self.printable(channel)
        self.message = Self.printable(message)
    }

    /// Texts of the edge may contain what would end a line or command a terminal.
    private static func printable(_ text: String) -> String {
        var bytes: [UInt8] = []
        for character in OutsideText.line(text).unicodeScalars {
            guard let encoded = UTF8.encode(character), bytes.count + encoded.count <= messageBytesMax else {
                bytes += "…".utf8
                break
            }
            bytes += encoded
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// What a program sees, valid during the call.
    func withABI(_ body: (UnsafePointer<bird_log_entry>) -> Void) {
        message.withCString { message in
            channel.withCString { channel in
                var entry = bird_log_entry(message: message, channel: channel, self)
                body(&entry)
            }
        }
    }

    /// One line: time in UTC, process/client, level, area, text.
    var line: [UInt8] {
        Array("\(Self.format(timeMs)) \(getpid())/\(clientNumber) \(level.name) \(area.name): \(message)\n".utf8)
    }

    // MARK: Times

    /// Of the time at the beginning of a line.
    static let timeBytes = 24

    /// 2026-01-31T23:59:59.999Z
    package static func format(_ timeMs: Int64) -> String {
        var seconds = time_t(timeMs / 1_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ value: Int, _ count: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let date = [(Int(parts.tm_year) + 1900, 4), (Int(parts.tm_mon) + 1, 2), (Int(parts.tm_mday), 2)]
        let time = [(Int(parts.tm_hour), 2), (Int(parts.tm_min), 2), (Int(parts.tm_sec), 2)]
        return date.map(digits).joined(separator: "-") + "T" + time.map(digits).joined(separator: ":") + "."
            + digits(Int(timeMs % 1_000), 3) + "Z"
    }

    /// The time at which the line that begins with these bytes was written; nil: it is none of ours.
    static func time(ofLine bytes: some Collection<UInt8>) -> Int64? {
        let text = Array(bytes.prefix(timeBytes))
        guard text.count == timeBytes else { return nil }
        func number(_ start: Int, _ count: Int) -> Int32? {
            Int32(String(decoding: text[start..<start + count], as: UTF8.self))
        }
        guard let year = number(0, 4), let month = number(5, 2), let day = number(8, 2), let hour = number(11, 2),
            let minute = number(14, 2), let second = number(17, 2), let millisecond = number(20, 3),
            text[10] == UInt8(ascii: "T"), text[23] == UInt8(ascii: "Z")
        else { return nil }
        var parts = tm()
        parts.tm_year = year - 1900
        parts.tm_mon = month - 1
        parts.tm_mday = day
        parts.tm_hour = hour
        parts.tm_min = minute
        parts.tm_sec = second
        return Int64(timegm(&parts)) * 1_000 + Int64(millisecond)
    }
}

extension bird_log_entry {
    /// The pointers live as long as their owner.
    init(message: UnsafePointer<CChar>, channel: UnsafePointer<CChar>, _ entry: LogEntry) {
        self.init(
            struct_size: UInt32(MemoryLayout<bird_log_entry>.size), level: entry.level.rawValue,
            area: entry.area.rawValue, status: entry.status, time_ms: entry.timeMs, client_tag: entry.clientTag,
            client_number: entry.clientNumber, message: message, message_length: entry.message.utf8.count,
            channel_name: channel)
    }
}
