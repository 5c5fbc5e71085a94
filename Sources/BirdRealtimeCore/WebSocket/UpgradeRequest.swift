internal import CSodium

/// The client's half of the opening handshake (RFC 6455 section 4.1).
package enum UpgradeRequest {
    /// `key` comes from `key(random:)`, host and path from `Edge`.
    package static func bytes(host: String, path: String, key: String, userAgent: String) -> [UInt8] {
        let request =
            "GET \(headerSafe(path)) HTTP/1.1\r\n" + "Host: \(headerSafe(host))\r\n" + "Upgrade: websocket\r\n"
            + "Connection: Upgrade\r\n" + "Sec-WebSocket-Key: \(headerSafe(key))\r\n"
            + "Sec-WebSocket-Version: 13\r\n" + "User-Agent: \(headerSafe(userAgent))\r\n\r\n"
        return Array(request.utf8)
    }

    /// 16 random bytes as the value of Sec-WebSocket-Key.
    package static func key(random: (UInt64, UInt64)) -> String {
        base64(withUnsafeBytes(of: random, Array.init))
    }

    /// What the server must answer to `key` (section 4.2.2).
    package static func acceptValue(for key: String) -> String {
        base64(SHA1.digest(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    }

    /// Whatever else went wrong, no value ends its line.
    private static func headerSafe(_ value: String) -> String {
        String(decoding: value.utf8.filter { $0 >= 0x20 && $0 != 0x7F }, as: UTF8.self)
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        let size = (bytes.count + 2) / 3 * 4 + 1
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) { buffer in
            guard let text = buffer.baseAddress else { return "" }
            _ = sodium_bin2base64(text, size, bytes, bytes.count, sodium_base64_VARIANT_ORIGINAL)
            return String(cString: text)
        }
    }
}
