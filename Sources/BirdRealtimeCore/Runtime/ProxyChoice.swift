import CCurl
import Glibc

/// Which proxy a connection takes: the option, else the environment (https_proxy, all_proxy, no_proxy, in both cases). Plaintext is for
/// loopback only and never goes through one.
enum ProxyChoice: Equatable {
    case direct
    case proxy(url: String, host: String, port: UInt16)

    var isProxied: Bool { self != .direct }

    init(options: ClientOptions, host: String, isSecure: Bool) {
        guard isSecure else {
            self = .direct
            return
        }
        if let explicit = options.proxy {
            self = Self.parse(explicit)
            return
        }
        let chosen = Self.environment("https_proxy") ?? Self.environment("all_proxy") ?? ""
        let exceptions = Self.environment("no_proxy") ?? ""
        self = Self.isExempt(host, exceptions) ? .direct : Self.parse(chosen)
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

    static func parse(_ text: String) -> ProxyChoice {
        guard !text.isEmpty else { return .direct }
        var rest = text[...]
        var scheme = "http"
        if let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") {
            scheme = text[..<colon].lowercased()
            rest = text[colon...].dropFirst(3)
        }
        if let slash = rest.firstIndex(of: "/") { rest = rest[..<slash] }
        if let at = rest.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
        var port: UInt16 = scheme.hasPrefix("socks") ? 1080 : 3128
        var host = rest
        if let colon = rest.lastIndex(of: ":"), !rest.hasSuffix("]"), let number = UInt16(rest[rest.index(after: colon)...]) {
            port = number
            host = rest[..<colon]
        }
        return .proxy(url: text, host: String(host), port: port)
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
