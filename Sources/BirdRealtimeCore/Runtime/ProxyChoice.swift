import CCurl
import Glibc

/// Which proxy a connection takes: the option, else the environment (https_proxy, all_proxy, no_proxy, in both cases). Plaintext is for
/// loopback only and never goes through one.
enum ProxyChoice: Equatable, Sendable {
    case direct
    case proxy(url: String, host: String, port: UInt16)

    var isProxied: Bool { self != .direct }

    init(options: ClientOptions, host: String, isSecure: Bool) {
        guard isSecure else {
            self = .direct
            return
        }
        if let explicit = options.proxy {
            self = explicit
            return
        }
        let chosen = Self.environment("https_proxy") ?? Self.environment("all_proxy") ?? ""
        let exceptions = Self.environment("no_proxy") ?? ""
        // What the environment says wrongly is left to libcurl to complain about, by name.
        self =
            Self.isExempt(host, exceptions)
            ? .direct : Self(url: chosen) ?? .proxy(url: chosen, host: chosen, port: 1080)
    }

    /// A suffix matches at a dot only; "*" matches everything.
    static func isExempt(_ host: String, _ list: String) -> Bool {
        let name = host.lowercased()
        let bare = name.hasPrefix("[") ? String(name.dropFirst().dropLast()) : name
        return list.split(whereSeparator: { $0 == "," || $0 == " " }).contains { entry in
            var suffix = entry.lowercased()
            if suffix == "*" { return true }
            if suffix.hasPrefix(".") { suffix.removeFirst() }
            return bare == suffix || bare.hasSuffix("." + suffix)
        }
    }

    /// nil: not a proxy that is supported.
    init?(url text: String) {
        guard !text.isEmpty else {
            self = .direct
            return
        }
        var rest = text[...]
        var scheme = "http"
        if let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") {
            scheme = text[..<colon].lowercased()
            rest = text[colon...].dropFirst(3)
        }
        guard ["http", "socks5", "socks5h"].contains(scheme), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return nil
        }
        rest = rest.prefix { $0 != "/" }
        if let at = rest.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        guard let authority = try? Authority(String(rest), field: "proxy") else { return nil }
        self = .proxy(url: text, host: authority.host, port: authority.port ?? (scheme == "http" ? 3128 : 1080))
    }

    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name) ?? getenv(name.uppercased()) else { return nil }
        return String(cString: value)
    }

    func apply(to transfer: CurlTransfer) {
        switch self {
        case .direct: transfer.set(CURLOPT_PROXY, "")
        case .proxy(let url, _, _):
            transfer.set(CURLOPT_PROXY, url)
            transfer.set(CURLOPT_NOPROXY, "")
            transfer.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        }
    }
}

extension ProxyChoice {
    /// What libcurl must know so that it never resolves a name itself: entries for CURLOPT_RESOLVE, none for a literal address. For a
    /// proxied connection it is the proxy that is looked up. `address` is used instead of looking `host` up. The answer comes at once, or
    /// later on the reactor thread.
    func resolve(
        host: String, port: UInt16, address: String?, on reactor: Reactor,
        _ answer: @escaping (Result<[String], Fault>) -> Void
    ) -> Resolver.Ticket? {
        let (name, namePort) =
            switch self {
            case .direct: (host, port)
            case .proxy(_, let proxyHost, let proxyPort): (proxyHost, proxyPort)
            }
        if self == .direct, let address {
            answer(.success([Self.entry(name, namePort, [address])]))
            return nil
        }
        if Resolver.isLiteral(name) {
            answer(.success([]))
            return nil
        }
        return Resolver.resolve(name, on: reactor) { result in
            answer(result.map { [Self.entry(name, namePort, $0)] })
        }
    }

    private static func entry(_ host: String, _ port: UInt16, _ addresses: [String]) -> String {
        let bracketed = addresses.map { $0.contains(":") && !$0.hasPrefix("[") ? "[\($0)]" : $0 }
        return "\(host):\(port):\(bracketed.joined(separator: ","))"
    }
}
