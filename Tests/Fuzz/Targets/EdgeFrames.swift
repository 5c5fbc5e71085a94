import BirdRealtimeCore

/// What an edge sends.
enum EdgeFrames {
    /// The payload in one frame.
    static func text(_ payload: [UInt8]) -> [UInt8] {
        let count = payload.count
        let length = count < 126 ? [UInt8(count)] : [126, UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
        return [0x81] + length + payload
    }

    /// The accepted upgrade, for the key that the request has.
    static func upgrade(_ request: [UInt8]) -> [UInt8] {
        let name = "Sec-WebSocket-Key: "
        let lines = String(decoding: request, as: UTF8.self).split(separator: "\r\n")
        let key = lines.first { $0.hasPrefix(name) }?.dropFirst(name.count) ?? ""
        let accept = UpgradeRequest.acceptValue(for: String(key))
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        return Array("\(head)Sec-WebSocket-Accept: \(accept)\r\n\r\n".utf8)
    }

    /// A message as the protocol has it, with parts of the input in it.
    static func message(_ choices: inout Choices, _ dialect: Dialect, _ names: [String]) -> [UInt8] {
        let channel = choices.bool() ? choices.pick(names) : choices.text()
        let id = choices.bool() ? "\"\(choices.byte() % 4)\"" : "\(choices.byte())"
        let member = #"{"\#(dialect.memberIDKey)":\#(id),"\#(dialect.memberInfoKey)":{"a":[1]}}"#
        let event: String
        var isOnChannel = true
        let data: String
        switch choices.byte() % 16 {
        case 0, 1, 2:
            event = dialect.connectionEstablished
            isOnChannel = false
            data = #"{"\#(dialect.connectionIDKey)":"1.\#(choices.byte())","activity_timeout":\#(choices.number())}"#
        case 3, 4, 5:
            event = dialect.internalSubscriptionSucceeded
            data = #"{"presence":{"count":2,"ids":["1",\#(id)],"hash":{"1":{"b":2}}}}"#
        case 6:
            event = dialect.internalMemberAdded
            data = member
        case 7:
            event = dialect.internalMemberRemoved
            data = member
        case 8:
            event = dialect.signinSuccess
            isOnChannel = false
            data = #"{"\#(dialect.identityKey)":"{\"\#(dialect.identityIDKey)\":\"1\"}"}"#
        case 9:
            event = dialect.watchlistEvents
            isOnChannel = false
            data = #"{"events":[{"name":"online","\#(dialect.watchlistIDsKey)":["1",\#(id)]},{"name":7}]}"#
        case 10:
            event = dialect.error
            isOnChannel = false
            data = #"{"code":\#(choices.number()),"message":"no"}"#
        case 11:
            event = dialect.internalSubscriptionError
            data = #"{"code":1}"#
        case 12:
            event = dialect.internalConnectionCount
            data = #"{"\#(dialect.connectionCountKey)":\#(choices.byte())}"#
        case 13:
            event = choices.pick([dialect.ping, dialect.pong, dialect.cacheMiss])
            isOnChannel = choices.bool()
            data = "{}"
        default:
            event = choices.text()
            data = choices.text()
        }
        var writer = ObjectWriter()
        writer.member("event", event)
        if isOnChannel { writer.member("channel", channel) }
        writer.member("data", data)
        return writer.finish()
    }
}
