import CBirdRealtimeABI

/// The URL of an authorizer, checked.
struct HTTPEndpoint: Sendable {
    private static let charactersMax = 2_048

    let text: String
    /// For messages: without the query, which may hold a secret.
    let name: String
    let route: Route

    /// Plaintext goes to the own machine only, and only when asked for (Bird protocol 2.2).
    init(_ text: String, option: String, _ options: ClientOptions, _ trust: TrustSettings) throws(Fault) {
        let lowered = text.prefix(8).lowercased()
        guard lowered.hasPrefix("https://") || lowered.hasPrefix("http://") else {
            throw Self.fault(option, "must be a URL that begins with https://")
        }
        guard text.utf8.count <= Self.charactersMax, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw Self.fault(option, "must be a URL of at most \(Self.charactersMax) ASCII characters without spaces")
        }
        let isSecure = lowered.hasPrefix("https://")
        let rest = text.dropFirst(isSecure ? 8 : 7)
        let authorityText = String(rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" })
        guard !authorityText.contains("@") else {
            throw Self.fault(option, "must not contain a user or password; use a header instead")
        }
        let authority = try Authority(authorityText, field: option)
        guard isSecure || Edge.allowsPlaintext(authorityText, allowInsecure: options.allowInsecure) else {
            throw Self.fault(
                option, "must be https://; http:// is for localhost, 127.0.0.1 and [::1] with allow_insecure only")
        }
        self.text = text
        name = String(text.prefix { $0 != "?" && $0 != "#" })
        route = try Route(
            host: authority.host, port: authority.port ?? (isSecure ? 443 : 80), isSecure: isSecure,
            verified: (authority.host, option), authorizer: name, trust: trust, proxy: options.proxy)
    }

    private static func fault(_ option: String, _ what: String) -> Fault {
        Fault(BIRD_ERR_VALUE, .argument, field: option, "Option \(option) \(what).")
    }
}
