@testable import BirdRealtimeCore

/// What the edge makes of a client's bytes. It takes only what a client may send.
struct ClientFrames {
    enum Message {
        /// The value of Sec-WebSocket-Key.
        case upgrade(key: String)
        case text([UInt8])
        case pong
        case close(code: UInt16?)
    }

    private var bytes: [UInt8] = []
    private var isUpgraded = false
    private var isClosed = false

    mutating func append(_ more: [UInt8]) { bytes += more }

    /// nil: nothing complete.
    mutating func next() throws -> Message? {
        try require(!isClosed || bytes.isEmpty, "sends something behind its close frame")
        return isUpgraded ? try nextFrame() : try nextRequest()
    }

    private mutating func nextRequest() throws -> Message? {
        guard bytes.count > 4, bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return nil }
        let header = Array("Sec-WebSocket-Key: ".utf8)
        let start = bytes.indices.first { bytes[$0...].starts(with: header) }.map { $0 + header.count }
        let key = start.map { String(decoding: bytes[$0...].prefix { $0 != 0x0D }, as: UTF8.self) } ?? ""
        try require(bytes.starts(with: "GET / HTTP/1.1\r\n".utf8) && key.utf8.count == 24, "asks for no upgrade")
        bytes = []
        isUpgraded = true
        return .upgrade(key: key)
    }

    private mutating func nextFrame() throws -> Message? {
        guard bytes.count >= 2 else { return nil }
        let (first, second) = (bytes[0], bytes[1])
        try require(first & 0xF0 == 0x80 && second & 0x80 != 0, "sends a frame that is fragmented or not masked")
        var size = 2
        var length = Int(second & 0x7F)
        if length == 126 {
            guard bytes.count >= 4 else { return nil }
            (size, length) = (4, Int(bytes[2]) << 8 | Int(bytes[3]))
        }
        try require(length < 126 || size == 4, "sends a frame that is too large")
        guard bytes.count >= size + 4 + length else { return nil }
        let mask = bytes[size..<size + 4]
        let payload = (0..<length).map { bytes[size + 4 + $0] ^ mask[size + $0 % 4] }
        bytes.removeFirst(size + 4 + length)
        switch Opcode(rawValue: first & 0x0F) {
        case .text: return .text(payload)
        case .pong: return .pong
        case .close:
            isClosed = true
            return .close(code: payload.count < 2 ? nil : UInt16(payload[0]) << 8 | UInt16(payload[1]))
        default: throw Wrong(message: "sends a frame with opcode \(first & 0x0F)")
        }
    }
}
