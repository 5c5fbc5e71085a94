import CCurl

/// A proxy as its URL describes it. Nothing but `apply` uses the credentials, so no message can show them.
struct Proxy: Equatable, Sendable {
    enum Kind: String, Sendable {
        case http
        /// The name of the server is resolved here.
        case socks5
        /// The proxy resolves the name of the server.
        case socks5h
    }

    static let isWhat = "an http://, socks5:// or socks5h:// URL with a host"
    /// As for curl, whose environment variables these are.
    private static let standardPort: UInt16 = 1080
    /// Both have a length of one byte in SOCKS (RFC 1929).
    private static let socksCredentialBytesMax = 255

    let kind: Kind
    let host: String
    let port: UInt16
    let user: String
    let password: String

    /// nil: not a proxy that is supported. Without a scheme it is http.
    init?(url text: String) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        var rest = text[...]
        var scheme = "http"
        if let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") {
            scheme = text[..<colon].lowercased()
            rest = text[colon...].dropFirst(3)
        }
        guard let kind = Kind(rawValue: scheme) else { return nil }
        rest = rest.prefix { $0 != "/" }
        var credentials: Substring = ""
        if let at = rest.lastIndex(of: "@") {
            credentials = rest[..<at]
            rest = rest[rest.index(after: at)...]
        }
        let userEnd = credentials.firstIndex(of: ":") ?? credentials.endIndex
        guard let authority = try? Authority(String(rest), field: "proxy"),
            let user = Percent.decoded(credentials[..<userEnd]),
            let password = Percent.decoded(credentials[userEnd...].dropFirst())
        else { return nil }
        if kind != .http {
            guard max(user.utf8.count, password.utf8.count) <= Self.socksCredentialBytesMax else { return nil }
        }
        self.kind = kind
        self.user = user
        self.password = password
        host = authority.host
        port = authority.port ?? Self.standardPort
    }

    var hasCredentials: Bool { !user.isEmpty || !password.isEmpty }

    /// Whom messages name.
    var name: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    /// Without a proxy libcurl would read the environment. A proxied stream is tunnelled whatever it carries.
    static func apply(_ proxy: Proxy?, to transfer: CurlTransfer) {
        transfer.set(CURLOPT_NOPROXY, "")
        guard let proxy else {
            transfer.set(CURLOPT_PROXY, "")
            return
        }
        transfer.set(CURLOPT_PROXY, "\(proxy.kind.rawValue)://\(proxy.name)")
        transfer.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        // What the proxy says of its own is no part of the server's answer.
        transfer.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // The other method, GSSAPI, makes libcurl wait inside a call.
        transfer.set(CURLOPT_SOCKS5_AUTH, Int(birdcurl_auth_basic))
        guard proxy.hasCredentials else { return }
        transfer.set(CURLOPT_PROXYUSERNAME, proxy.user)
        transfer.set(CURLOPT_PROXYPASSWORD, proxy.password)
    }
}
