import BirdRealtimeCore
import CBirdRealtimeABI
import Testing

@Suite struct EdgeTests {
    private func edge(
        region: String? = nil, wsHost: String? = nil, allowInsecure: Bool = false, appKey: String = "pk_demo_7Qx2",
        dialect: Dialect = .bird
    ) throws -> Edge {
        try Edge(
            region: region, wsHost: wsHost, allowInsecure: allowInsecure, appKey: appKey, version: "0.1.0",
            dialect: dialect)
    }

    @Test func region() throws {
        let edge = try edge(region: "eu1")
        #expect(edge.usesTLS && edge.port == 443)
        #expect(edge.host == "ws-eu1.realtime.platform.bird.com")
        #expect(edge.hostHeader == "ws-eu1.realtime.platform.bird.com")
        #expect(edge.path == "/app/pk_demo_7Qx2?protocol=7&client=bird-realtime&version=0.1.0")
        #expect(try self.edge(region: "mt1", dialect: .pusher).host == "ws-mt1.pusher.com")
    }

    @Test func hostWinsOverRegion() throws {
        #expect(try edge(region: "eu1", wsHost: "edge.example:8443").hostHeader == "edge.example:8443")
        // The flag is not for regions.
        #expect(try edge(region: "us1", allowInsecure: true).usesTLS)
    }

    /// Bird protocol 2.2.
    @Test(arguments: [
        ("localhost:8080", true, false), ("localhost", true, false), ("127.0.0.1:1", true, false),
        ("127.0.0.1", true, false),
        ("[::1]:9000", true, false), ("[::1]", true, false), ("localhost", false, true),
        ("localhost:8080", false, true),
        ("[::1]:9000", false, true), ("example.com", true, true), ("localhost.evil.test", true, true),
        ("127.0.0.2", true, true),
        ("0.0.0.0", true, true), ("::1", true, true), ("LOCALHOST", true, true), ("Localhost:80", true, true),
        ("localhost.", true, true),
        ("[::1", true, true), ("[::2]", true, true), ("[0:0:0:0:0:0:0:1]", true, true), ("127.1", true, true),
        ("127.0.0.1.", true, true),
        ("", true, true), (":80", true, true), ("user@localhost", true, true), ("xlocalhost", true, true),
        ("[::1]x", true, false),
    ])
    func plaintextRule(_ host: String, _ allowInsecure: Bool, _ usesTLS: Bool) {
        #expect(Edge.allowsPlaintext(host, allowInsecure: allowInsecure) == !usesTLS)
        if let edge = try? edge(wsHost: host, allowInsecure: allowInsecure) {
            #expect(edge.usesTLS == usesTLS)
        }
    }

    @Test(
        arguments: [
            ("localhost:8080", true, "localhost", 8080, "localhost:8080"),
            ("localhost", true, "localhost", 80, "localhost"),
            ("localhost:80", true, "localhost", 80, "localhost"),
            ("localhost:443", true, "localhost", 443, "localhost:443"),
            ("localhost", false, "localhost", 443, "localhost"),
            ("example.com:443", false, "example.com", 443, "example.com"),
            ("example.com:80", false, "example.com", 80, "example.com:80"),
            ("[::1]:9000", true, "::1", 9000, "[::1]:9000"),
            ("[::1]", true, "::1", 80, "[::1]"),
            ("[2001:DB8::1.2.3.4]", false, "2001:DB8::1.2.3.4", 443, "[2001:DB8::1.2.3.4]"),
            ("a_b-c.example.", false, "a_b-c.example.", 443, "a_b-c.example."),
            ("10.0.0.1:65535", false, "10.0.0.1", 65535, "10.0.0.1:65535"),
            ("h:1", false, "h", 1, "h:1"), ("h:00443", false, "h", 443, "h"),
        ] as [(String, Bool, String, UInt16, String)])
    func hostAndPort(_ wsHost: String, _ allowInsecure: Bool, _ host: String, _ port: UInt16, _ header: String) throws {
        let edge = try edge(wsHost: wsHost, allowInsecure: allowInsecure)
        #expect(edge.host == host && edge.port == port && edge.hostHeader == header)
    }

    @Test(arguments: [
        ("", "host name"), (":80", "host name"), ("::1", "brackets"), ("a:1:2", "brackets"), ("[::1", "]"),
        ("[]", "IPv6"),
        ("[x]", "IPv6"), ("[1]", "IPv6"), ("[::1%eth0]", "IPv6"), ("[::1]80", "behind"), ("[::1]:", "port"),
        ("h:", "port"), ("h:0", "port"),
        ("h:65536", "port"), ("h:999999999999999999999", "port"), ("h:-1", "port"), ("h:+1", "port"), ("h:8o", "port"),
        ("h: 80", "port"),
        ("h:80 ", "port"), ("a b", "character"), ("a\r\nX: y", "character"), ("h\n", "character"),
        ("h:80\r\nX-Y: z", "more than one"),
        ("h:80\r\n", "port"), ("h/app", "character"), ("h?x", "character"), ("user@h", "character"),
        ("héllo", "character"),
        ("wss://h", "URL"), ("ws://h:80", "more than one"), ("h\u{0}", "character"), ("h%41", "character"),
        (String(repeating: "a", count: 254), "253"),
    ])
    func badHosts(_ wsHost: String, _ word: String) {
        let fault = #expect(throws: Fault.self) { try edge(wsHost: wsHost) }
        #expect(fault?.status == BIRD_ERR_VALUE && fault?.field == "ws_host")
        #expect(
            fault?.message.contains("ws_host") == true && fault?.message.contains(word) == true,
            "\(fault?.message ?? "")")
    }

    @Test(arguments: ["", "eu2", "EU1", "eu1.evil.example", "us1\r\n"])
    func badRegions(_ region: String) {
        let fault = #expect(throws: Fault.self) { try edge(region: region) }
        #expect(fault?.status == BIRD_ERR_VALUE && fault?.field == "region" && fault?.message.contains("us1") == true)
    }

    @Test(arguments: ["", "a.b", "a/b", "a\n", String(repeating: "a", count: 64)])
    func badClusters(_ cluster: String) {
        let fault = #expect(throws: Fault.self) { try edge(region: cluster, dialect: .pusher) }
        #expect(fault?.field == "region")
    }

    @Test func neitherRegionNorHost() {
        let fault = #expect(throws: Fault.self) { try edge() }
        #expect(fault?.field == "region" && fault?.message.contains("ws_host") == true)
    }

    @Test(arguments: [
        ("my key/é", "my%20key%2F%C3%A9"), ("a?b#c%d", "a%3Fb%23c%25d"), ("..", ".."), ("a\r\nb", "a%0D%0Ab"),
        ("-._~", "-._~"),
        ("a+b:c@d", "a%2Bb%3Ac%40d"), ("\u{0}", "%00"),
    ])
    func appKeyIsOneSegment(_ key: String, _ segment: String) throws {
        #expect(
            try edge(region: "us1", appKey: key).path
                == "/app/\(segment)?protocol=7&client=bird-realtime&version=0.1.0")
    }

    @Test(arguments: ["", String(repeating: "k", count: 257)])
    func badAppKeys(_ key: String) {
        let fault = #expect(throws: Fault.self) { try edge(region: "us1", appKey: key) }
        #expect(fault?.field == "app_key")
    }
}
