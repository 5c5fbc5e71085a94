@testable import BirdRealtimeCore

/// What servers answer to an upgrade.
enum UpgradeAnswer {
    static func accepted(_ key: String) -> [UInt8] {
        head("101 Switching Protocols", accept: UpgradeRequest.acceptValue(for: key))
    }

    static func refused(_ status: Int32) -> [UInt8] {
        Array("HTTP/1.1 \(status) No\r\nLocation: https://elsewhere.example/\r\nContent-Length: 2\r\n\r\nno".utf8)
    }

    static func refused(_ status: Int32, retryAfter: String) -> [UInt8] {
        Array("HTTP/1.1 \(status) Busy\r\nRetry-After: \(retryAfter)\r\nContent-Length: 2\r\n\r\nno".utf8)
    }

    /// Says nothing about the answer behind it.
    static let interim = Array("HTTP/1.1 103 Early Hints\r\nRetry-After: 50\r\nLink: </x>; rel=preload\r\n\r\n".utf8)

    /// None of these is an acceptance.
    static func garbled(_ key: String) -> [[UInt8]] {
        [
            head("101 Switching Protocols", accept: UpgradeRequest.acceptValue(for: key + "x")),
            head("101 Switching Protocols", accept: UpgradeRequest.acceptValue(for: key), "Sec-WebSocket-Protocol: x"),
            head("200 OK", accept: UpgradeRequest.acceptValue(for: key)),
            Array("SSH-2.0-OpenSSH\r\n\r\n".utf8),
            Array("HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\n\n\r\n\r\n".utf8),
            Array("HTTP/1.1 101 X\r\n".utf8) + [UInt8](repeating: 0x61, count: UpgradeResponse.headerBytesMax),
        ]
    }

    private static func head(_ status: String, accept: String, _ more: String...) -> [UInt8] {
        let lines =
            ["HTTP/1.1 \(status)", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: \(accept)"]
            + more
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }
}
