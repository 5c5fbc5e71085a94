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

    static let isWhat = "an http://, socks5:// or socks5h:// URL with a host and without a path"
    /// As for curl, whose environment variables these are.
    private static let standardPort: UInt16 = 1080
    /// Both have a length of one byte in SOCKS (RFC 1929).
    private static let socksCredentialBytesMax = 255

    let kind: Kind
    let host: String
    let port: UInt16
    let user: String
    let password: String

    /// nil: not a proxy that is supported. `standardScheme`: of a text without one; nil: it must have one.
    init?(url text: String, standardScheme: String? = nil) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        let parts = Self.parts(text)
        var rest = parts?.rest ?? text[...]
        guard let kind = (parts?.scheme ?? standardScheme).flatMap(Kind.init) else { return nil }
        if rest.hasSuffix("/") { rest.removeLast() }
        guard !rest.contains(where: { $0 == "/" || $0 == "?" || $0 == "#" }) else { return nil }
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

    /// nil: without a scheme.
    private static func parts(_ text: String) -> (scheme: String, rest: Substring)? {
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { return nil }
        return (text[..<colon].lowercased(), text[colon...].dropFirst(3))
    }

    /// What is wrong with a URL, without anything of it, since it may hold a password.
    static func problem(_ text: String) -> String {
        guard let (scheme, rest) = parts(text) else { return "it has no scheme, as in http://proxy.example.com:3128" }
        guard Kind(rawValue: scheme) != nil else { return "its scheme is not supported" }
        let hasPath = rest.contains { $0 == "/" || $0 == "?" || $0 == "#" }
        return hasPath
            ? "it has a path, or a / ? or # that is not percent-encoded"
            : "its host, port, user or password is malformed"
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
        // Of both parts of this option every libcurl undoes percent-encoding once; of CURLOPT_PROXYUSERNAME only the older ones do.
        let credentials = [proxy.user, proxy.password].map(Percent.encoded).joined(separator: ":")
        transfer.set(CURLOPT_PROXYUSERPWD, credentials)
    }
}
