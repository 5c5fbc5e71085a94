import CBirdRealtimeABI
import CCurl
import Glibc

/// A client as JSON, for a bug report. Nothing is asked of the reactor: all that is here is kept for every thread to read.
extension Client {
    private static let dumpedChannelsMax = 100

    package var dump: String {
        var writer = ObjectWriter()
        writer.member("library", object: Self.libraryDump)
        writer.member("process", object: processDump)
        writer.member("client", object: clientDump)
        writer.member("options", object: optionsDump)
        let diary = diary.contents
        writer.member("connection", object: connectionDump(diary))
        writer.member("changes", array: diary.changes.map(Self.dump))
        writer.member("errors", array: diary.mistakes.map(Self.dump))
        let channels = lock.withLock { registeredChannelsLocked }.sorted { $0.name < $1.name }
        writer.member("channels", array: channels.prefix(Self.dumpedChannelsMax).map(Self.dump))
        writer.member("channels_left_out", max(0, channels.count - Self.dumpedChannelsMax))
        writer.member("statistics", object: statisticsDump)
        return String(decoding: writer.finish(), as: UTF8.self)
    }

    private static var libraryDump: ObjectWriter {
        var writer = ObjectWriter()
        writer.member("version", Library.version)
        writer.member("libcurl", String(cString: curl_version()))
        return writer
    }

    private var processDump: ObjectWriter {
        var writer = ObjectWriter()
        writer.member("pid", Int(getpid()))
        writer.member("time", LogEntry.format(System.wallClockMs()))
        writer.member("reactor", isHostDriven ? "loop of the host" : "thread")
        writer.member("delivery", "\(options.delivery)")
        return writer
    }

    private var clientDump: ObjectWriter {
        var writer = ObjectWriter()
        writer.member("number", Int(clamping: log.number))
        writer.member("tag", String(options.tag))
        writer.member("state", "\(state)")
        writer.member("is_closed", isClosed)
        writer.member("is_signed_in", !memberID.isEmpty)
        writer.member("bindings", lock.withLock { book.count })
        return writer
    }

    private var optionsDump: ObjectWriter {
        var writer = ObjectWriter()
        for (key, value) in currentOptions.given.sorted(by: { $0.key < $1.key }) {
            writer.member(key, EdgeText.cut(Self.masked(key, value)))
        }
        let headers = options.authHeaders.all.map { "\($0.name): \(Self.mask)" }
        if !headers.isEmpty { writer.member("auth_headers", EdgeText.cut(headers.joined(separator: ", "))) }
        return writer
    }

    private static let mask = "***"

    /// The value of an option without what may be secret in it.
    private static func masked(_ key: String, _ value: String) -> String {
        switch key {
        case "proxy":
            guard let proxy = Proxy(url: value) else { return value }
            return "\(proxy.kind.rawValue)://\(proxy.hasCredentials ? "\(mask)@" : "")\(proxy.name)"
        case "auth_endpoint", "member_auth_endpoint":
            let name = value.prefix { $0 != "?" && $0 != "#" }
            return name.endIndex == value.endIndex ? value : "\(name)?\(mask)"
        default: return value
        }
    }

    private func connectionDump(_ diary: Diary.Contents) -> ObjectWriter {
        var writer = ObjectWriter()
        writer.member("edge", "\(edge.hostHeader)")
        writer.member("uses_tls", edge.usesTLS)
        writer.member("proxy", route.proxyName)
        writer.member("id", connectionID)
        writer.member("peer", diary.way?.peer)
        writer.member("reached", diary.way.map { LogEntry.format($0.connectedAtMs) })
        writer.member("next_attempt", diary.attemptAtMs.map(LogEntry.format))
        return writer
    }

    private static func dump(_ change: Diary.Change) -> ObjectWriter {
        var writer = ObjectWriter()
        writer.member("time", LogEntry.format(change.timeMs))
        writer.member("previous", "\(change.change.previous)")
        writer.member("current", "\(change.change.current)")
        writer.member("reason", Int(change.change.reason))
        writer.member("reason_text", change.change.reasonText)
        writer.member("close_code", Int(change.change.closeCode))
        writer.member("attempt", Int(change.change.attempt))
        writer.member("delay_ms", Int(change.change.delayMs))
        return writer
    }

    private static func dump(_ mistake: Diary.Mistake) -> ObjectWriter {
        var writer = ObjectWriter()
        writer.member("time", LogEntry.format(mistake.timeMs))
        writer.member("status", Int(mistake.fault.status))
        writer.member("area", "\(mistake.fault.area)")
        writer.member("field", mistake.fault.field)
        writer.member("message", mistake.fault.message)
        writer.member("code", Int(mistake.fault.code))
        writer.member("http_status", Int(mistake.fault.httpStatus))
        writer.member("curl_code", Int(mistake.fault.curlCode))
        writer.member("is_retriable", mistake.fault.isRetriable)
        return writer
    }

    private static func dump(_ channel: Channel) -> ObjectWriter {
        var writer = ObjectWriter()
        writer.member("name", channel.name)
        writer.member("state", "\(channel.state)")
        if channel.kind == .presence { writer.member("members", channel.memberCount) }
        return writer
    }

    private var statisticsDump: ObjectWriter {
        var writer = ObjectWriter()
        for child in Mirror(reflecting: statistics).children {
            if let label = child.label, let value = child.value as? UInt64 {
                writer.member(label, Int(clamping: value))
            }
        }
        return writer
    }
}

extension ObjectWriter {
    mutating func member(_ key: String, _ number: Int) { member(key, json: Array("\(number)".utf8)) }
    mutating func member(_ key: String, _ flag: Bool) { member(key, json: Array("\(flag)".utf8)) }
    mutating func member(_ key: String, object: ObjectWriter) { member(key, json: object.finish()) }

    mutating func member(_ key: String, array: [ObjectWriter]) {
        member(key, json: [UInt8(ascii: "[")] + array.map { $0.finish() }.joined(separator: ",".utf8) + "]".utf8)
    }
}
