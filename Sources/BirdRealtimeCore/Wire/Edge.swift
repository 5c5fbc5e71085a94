internal import CBirdRealtimeABI

/// Where the WebSocket server is (Bird protocol 2). Every part is checked, so nothing in it can end a header line.
package struct Edge: Equatable, Sendable {
    package static let hostCharactersMax = 253
    package static let appKeyBytesMax = 256

    package let usesTLS: Bool
    /// A name or an address, without the brackets of IPv6.
    package let host: String
    package let port: UInt16
    private let appKey: String
    private let version: String

    /// The value of the Host header.
    package var hostHeader: String {
        let bracketed = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return port == Self.standardPort(usesTLS) ? bracketed : "\(bracketed):\(port)"
    }

    /// Path and query of the upgrade request.
    package var path: String {
        "/app/\(Percent.encoded(appKey))?protocol=7&client=bird-realtime&version=\(Percent.encoded(version))"
    }

    private static func standardPort(_ usesTLS: Bool) -> UInt16 { usesTLS ? 443 : 80 }

    /// One of `region` and `wsHost` is needed; `wsHost` wins.
    package init(
        region: String?, wsHost: String?, allowInsecure: Bool, appKey: String, version: String,
        dialect: Dialect = .bird
    ) throws(Fault) {
        let authority: Authority
        if let wsHost {
            authority = try Authority(wsHost, field: "ws_host")
            usesTLS = !Self.allowsPlaintext(wsHost, allowInsecure: allowInsecure)
        } else if let region {
            try Self.checkRegion(region, dialect: dialect)
            authority = try Authority(dialect.hostPrefix + region + dialect.hostSuffix, field: "region")
            usesTLS = true
        } else {
            let example = dialect.regions?.first ?? "a cluster"
            throw Fault(
                BIRD_ERR_VALUE, .argument, field: "region",
                "Set region (such as \(example)) or ws_host (host or host:port of an edge).")
        }
        host = authority.host
        port = authority.port ?? Self.standardPort(usesTLS)
        try Self.checkAppKey(appKey)
        self.appKey = appKey
        self.version = version
    }

    /// Plaintext is for exactly these spellings of the own machine, and only when asked for (Bird protocol 2.2). `authority` is
    /// host or host:port.
    package static func allowsPlaintext(_ authority: String, allowInsecure: Bool) -> Bool {
        guard allowInsecure else { return false }
        let bytes = authority.utf8
        let name =
            if bytes.first == UInt8(ascii: "["), let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) {
                authority[...bracket]
            } else {
                authority[..<(bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex)]
            }
        return ["localhost", "127.0.0.1", "[::1]"].contains { name.utf8.elementsEqual($0.utf8) }
    }

    private static func checkRegion(_ region: String, dialect: Dialect) throws(Fault) {
        if let regions = dialect.regions {
            guard !regions.contains(region) else { return }
            throw Fault(
                BIRD_ERR_VALUE, .argument, field: "region",
                "The regions are \(regions.joined(separator: " and ")); for another edge set ws_host instead.")
        }
        guard
            !(1...63).contains(region.utf8.count)
                || !region.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || $0 == UInt8(ascii: "-") })
        else { return }
        throw Fault(
            BIRD_ERR_VALUE, .argument, field: "region",
            "A cluster has 1 to 63 characters out of A-Z a-z 0-9 -; for another edge set ws_host instead.")
    }

    private static func checkAppKey(_ appKey: String) throws(Fault) {
        guard !(1...appKeyBytesMax).contains(appKey.utf8.count) else { return }
        throw Fault(
            BIRD_ERR_VALUE, .argument, field: "app_key",
            "Set app_key to the public key of the app, 1 to \(appKeyBytesMax) bytes.")
    }
}

/// host, host:port, [v6] or [v6]:port.
package struct Authority: Equatable, Sendable {
    /// Without brackets.
    package let host: String
    package let port: UInt16?
    package let isIPv6: Bool

    /// `field` is the option that faults name.
    package init(_ text: String, field: String) throws(Fault) {
        let bytes = text.utf8
        let hostEnd: String.Index
        let rest: Substring.UTF8View
        if bytes.first == UInt8(ascii: "[") {
            guard let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) else {
                throw Self.fault(field, "has no ] behind its IPv6 address")
            }
            hostEnd = bytes.index(after: bracket)
            let address = bytes[bytes.index(after: bytes.startIndex)..<bracket]
            guard address.count >= 2, address.count <= 45, address.contains(UInt8(ascii: ":")),
                address.allSatisfy(Self.isIPv6Character)
            else {
                throw Self.fault(field, "has no IPv6 address between its brackets")
            }
            host = String(decoding: address, as: UTF8.self)
            isIPv6 = true
            rest = bytes[hostEnd...]
            guard rest.isEmpty || rest.first == UInt8(ascii: ":") else {
                throw Self.fault(field, "has something other than :port behind its IPv6 address")
            }
        } else {
            hostEnd = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
            let name = bytes[..<hostEnd]
            rest = bytes[hostEnd...]
            guard !rest.dropFirst().contains(UInt8(ascii: ":")) else {
                throw Self.fault(field, "has more than one colon; put an IPv6 address in brackets, as in [::1]:443")
            }
            guard !rest.starts(with: "://".utf8) else {
                throw Self.fault(field, "is a URL; give only host or host:port")
            }
            guard !name.isEmpty else { throw Self.fault(field, "has no host name") }
            guard name.count <= Edge.hostCharactersMax else {
                throw Self.fault(field, "has a host name of more than \(Edge.hostCharactersMax) characters")
            }
            guard name.allSatisfy(Self.isNameCharacter) else {
                throw Self.fault(
                    field,
                    "has a character that no host name has; give only host or host:port, names outside ASCII as xn--")
            }
            host = String(decoding: name, as: UTF8.self)
            isIPv6 = false
        }
        guard !rest.isEmpty else {
            port = nil
            return
        }
        let digits = rest.dropFirst()
        var number = 0
        for digit in digits.prefix(6) {
            guard ASCII.isDigit(digit) else { throw Self.fault(field, "has a port that is not a number") }
            number = number * 10 + Int(digit - UInt8(ascii: "0"))
        }
        guard digits.count <= 5, let value = UInt16(exactly: number), value > 0 else {
            throw Self.fault(field, "has a port that is not in 1 to 65535")
        }
        port = value
    }

    /// A name or an address alone; an IPv6 address with or without brackets.
    package init?(name: String) {
        let isBareIPv6 = name.utf8.first != UInt8(ascii: "[") && name.utf8.count { $0 == UInt8(ascii: ":") } > 1
        guard let authority = try? Authority(isBareIPv6 ? "[\(name)]" : name, field: ""), authority.port == nil else {
            return nil
        }
        self = authority
    }

    /// Why `name` is none, for a message.
    package static func problem(ofName name: String) -> String {
        if !name.utf8.allSatisfy({ $0 < 0x80 }) { return "write a name outside ASCII in its xn-- form" }
        do throws(Fault) {
            return try Authority(name, field: "it").port == nil ? "it is no host name" : "leave out the port"
        } catch {
            return error.message.hasSuffix(".") ? String(error.message.dropLast()) : error.message
        }
    }

    private static func isNameCharacter(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || "-._".utf8.contains(byte)
    }

    private static func isIPv6Character(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || ASCII.lowercased(byte) &- UInt8(ascii: "a") < 6 || ":.".utf8.contains(byte)
    }

    private static func fault(_ field: String, _ problem: String) -> Fault {
        Fault(BIRD_ERR_VALUE, .argument, field: field, "\(field) \(problem).")
    }
}

package enum Percent {
    /// Everything but the unreserved characters of RFC 3986 encoded: one path segment, or one value of a query or form.
    package static func encoded(_ text: String) -> String {
        var bytes: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in text.utf8 {
            if ASCII.isAlphanumeric(byte) || "-._~".utf8.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Escapes undone; a % that begins none stays. nil: the result is not UTF-8 or has control characters.
    package static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2).compactMap(hexValue)
            if byte == UInt8(ascii: "%"), digits.count == 2 {
                bytes.append(digits[0] << 4 | digits[1])
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        if ASCII.isDigit(byte) { return byte - UInt8(ascii: "0") }
        let letter = ASCII.lowercased(byte) &- UInt8(ascii: "a")
        return letter < 6 ? letter + 10 : nil
    }
}
