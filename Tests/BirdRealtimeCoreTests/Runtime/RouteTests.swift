import CCurl
import Glibc
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

    /// RFC 6761 section 6.3.
    @Test(arguments: ["localhost", "LocalHost", "localhost.", "edge.localhost", "a.b.localhost."])
    func nobodyIsAskedForLocalhost(_ host: String) throws {
        let route = try Route(
            host: host, port: 443, isSecure: true, verified: (host, ""), trust: TrustSettings(), proxy: nil)
        #expect(route.unknownNames.isEmpty)
        let other = try Route(
            host: "x\(host)x", port: 443, isSecure: true, verified: (host, ""), trust: TrustSettings(), proxy: nil)
        #expect(other.unknownNames.count == 1)
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.255.0.3", true), ("::1", true), ("128.0.0.1", false), ("0.0.0.0", false),
        ("::", false),
        ("::2", false), ("fe80::1", false), ("::ffff:127.0.0.1", false),
    ])
    func plaintextNeedsALoopbackAddress(_ address: String, _ isAllowed: Bool) throws {
        func route(_ isSecure: Bool) throws(Fault) -> Route {
            try Route(
                host: "localhost", port: 80, isSecure: isSecure, address: address, verified: ("localhost", ""),
                trust: TrustSettings(), proxy: ProxyChoice(option: nil))
        }
        if isAllowed {
            #expect(try route(false).addresses(resolved: []).count == 1)
        } else {
            #expect(throws: Fault.self) { try route(false) }
        }
        _ = try route(true)
        // Whatever was resolved.
        let plain = try Route(
            host: "localhost", port: 80, isSecure: false, verified: ("localhost", ""), trust: TrustSettings(),
            proxy: ProxyChoice(option: nil))
        let resolved = ResolvedName(host: "localhost", port: 80, addresses: [address])
        #expect(plain.addresses(resolved: [resolved]).count == (isAllowed ? 1 : 0))
    }

    /// The last line of defence for the POSTs, which libcurl connects: 0.0.0.0 leads to this machine too, and is no loopback address.
    @Test func libcurlConnectsPlaintextToLoopbackOnly() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) {
            try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try #require(
                    bind(listener, $0, size) == 0 && listen(listener, 4) == 0 && getsockname(listener, $0, &size) == 0)
            }
        }
        for (host, isRestricted, code) in [
            ("0.0.0.0", false, CURLE_OK), ("0.0.0.0", true, CURLE_COULDNT_CONNECT), ("127.0.0.1", true, CURLE_OK),
        ] {
            let easy = try #require(curl_easy_init())
            defer { curl_easy_cleanup(easy) }
            #expect(birdcurl_set_sockets(easy) == CURLE_OK)
            if isRestricted { #expect(birdcurl_allow_only_loopback(easy) == CURLE_OK) }
            _ = birdcurl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
            _ = birdcurl_set_string(easy, CURLOPT_PROXY, "")
            _ = birdcurl_set_string(easy, CURLOPT_URL, "http://\(host):\(UInt16(bigEndian: address.sin_port))/")
            #expect(curl_easy_perform(easy) == code, "\(host) \(isRestricted)")
        }
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
