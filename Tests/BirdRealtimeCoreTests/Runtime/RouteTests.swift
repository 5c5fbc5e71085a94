import Testing

@testable import BirdRealtimeCore

/// Whose names are looked up here: whatever is missing from this list libcurl would resolve itself.
@Suite struct RouteTests {
    @Test(
        arguments: [
            ("edge.test", "", nil, ["edge.test:443"]), ("192.0.2.1", "", nil, []), ("2001:db8::1", "", nil, []),
            ("edge.test", "", "192.0.2.1", []),
            ("edge.test", "http://proxy", nil, ["proxy:1080"]), ("edge.test", "http://192.0.2.9", nil, []),
            ("edge.test", "socks5h://proxy", nil, ["proxy:1080"]),
            ("edge.test", "socks5://proxy", nil, ["proxy:1080", "edge.test:443"]),
            ("192.0.2.1", "socks5://proxy", nil, ["proxy:1080"]),
            ("edge.test", "socks5://[::1]", nil, ["edge.test:443"]),
            ("edge.test", "socks5://proxy", "192.0.2.1", ["proxy:1080"]),
        ] as [(String, String, String?, [String])])
    func names(_ host: String, _ proxy: String, _ address: String?, _ expected: [String]) throws {
        var options = ClientOptions()
        try options.set("proxy", proxy)
        let route = try Route(
            host: host, port: 443, isSecure: true, address: address, verified: (host, ""),
            trust: TrustSettings(), proxy: options.proxy)
        #expect(route.names.map { "\($0.host):\($0.port)" } == expected)
    }

    /// Plaintext is for loopback and never goes through a proxy; what the environment says does not matter then.
    @Test(arguments: ["http://proxy:1", "https://proxy"])
    func plaintextIsDirect(_ url: String) throws {
        let route = try Route(
            host: "localhost", port: 80, isSecure: false, verified: ("localhost", ""), trust: TrustSettings(),
            proxy: ProxyChoice(environment: { _ in url }))
        #expect(route.proxyName == nil)
    }

    @Test func entriesAreForgotten() {
        let name = ResolvedName(host: "edge.test", port: 443, addresses: ["192.0.2.1", "2001:db8::1"])
        #expect(name.entry == "+edge.test:443:192.0.2.1,[2001:db8::1]")
    }
}
