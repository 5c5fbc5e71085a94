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
