/// The frames of the client (Bird protocol 5.1) as compact JSON. `data` is a value, not a string of JSON; absent parts are left out.
package enum OutboundMessage {
    package static func subscribe(
        channel: String, auth: String? = nil, memberData: String? = nil, dialect: Dialect = .bird
    ) -> [UInt8] {
        message(dialect.subscribe) { writer in
            writer.member("channel", channel)
            writer.member("auth", auth ?? dialect.publicAuth)
            writer.member(dialect.channelDataKey, memberData)
        }
    }

    package static func unsubscribe(channel: String, dialect: Dialect = .bird) -> [UInt8] {
        message(dialect.unsubscribe) { $0.member("channel", channel) }
    }

    package static func signin(auth: String, memberData: String, dialect: Dialect = .bird) -> [UInt8] {
        message(dialect.signin) { writer in
            writer.member("auth", auth)
            writer.member(dialect.identityKey, memberData)
        }
    }

    package static func ping(dialect: Dialect = .bird) -> [UInt8] {
        message(event: dialect.ping, channel: nil, data: dialect.pingData.map { Array($0.utf8) })
    }

    package static func pong(dialect: Dialect = .bird) -> [UInt8] {
        message(event: dialect.pong, channel: nil, data: dialect.pingData.map { Array($0.utf8) })
    }

    /// `data` is JSON, checked by the caller; nil: none.
    package static func clientEvent(_ event: String, channel: String, data: [UInt8]?) -> [UInt8] {
        message(event: event, channel: channel, data: data)
    }

    private static func message(event: String, channel: String?, data: [UInt8]?) -> [UInt8] {
        var writer = ObjectWriter()
        writer.member("event", event)
        writer.member("channel", channel)
        if let data {
            writer.member("data", json: data)
        }
        return writer.finish()
    }

    private static func message(_ event: String, data: (inout ObjectWriter) -> Void) -> [UInt8] {
        var writer = ObjectWriter()
        data(&writer)
        return message(event: event, channel: nil, data: writer.finish())
    }
}

/// Writes one flat JSON object.
package struct ObjectWriter {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    package init() {}

    /// Nothing when `value` is nil.
    package mutating func member(_ key: String, _ value: String?) {
        guard let value else { return }
        appendKey(key)
        JSONString.appendQuoted(value, to: &bytes)
    }

    package mutating func member(_ key: String, json: [UInt8]) {
        appendKey(key)
        bytes += json
    }

    package consuming func finish() -> [UInt8] {
        bytes + [UInt8(ascii: "}")]
    }

    private mutating func appendKey(_ key: String) {
        if bytes.count > 1 {
            bytes.append(UInt8(ascii: ","))
        }
        JSONString.appendQuoted(key, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }
}
