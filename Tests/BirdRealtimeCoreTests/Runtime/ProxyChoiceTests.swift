import Testing

@testable import BirdRealtimeCore

@Suite struct ProxyChoiceTests {
    @Test(arguments: [
        ("http://proxy:8080", "proxy", 8080), ("proxy:8080", "proxy", 8080),
        ("http://user:p%40ss@proxy/", "proxy", 3128),
        ("socks5://[::1]:1081", "::1", 1081), ("SOCKS5H://proxy", "proxy", 1080),
    ])
    func readsURLs(_ url: String, _ host: String, _ port: UInt16) {
        #expect(ProxyChoice(url: url) == .proxy(url: url, host: host, port: port))
    }

    @Test func emptyIsDirect() {
        #expect(ProxyChoice(url: "") == .direct)
    }

    @Test(arguments: ["gopher://proxy", "http://", "http://pro xy", "http://proxy:0", "ftp://proxy:1"])
    func refusesWhatItCannotUse(_ url: String) {
        #expect(ProxyChoice(url: url) == nil)
    }

    @Test(arguments: [
        ("edge.internal", ".internal", true), ("edge.internal", "internal", true), ("notinternal", "internal", false),
        ("localhost", "a, localhost ,b", true), ("127.0.0.1", "127.0.0.1", true), ("[::1]", "::1", true),
        ("example.com", "*", true), ("example.com", "", false), ("EXAMPLE.com", "example.COM", true),
    ])
    func exemptsHosts(_ host: String, _ list: String, _ isExempt: Bool) {
        #expect(ProxyChoice.isExempt(host, list) == isExempt)
    }

    /// Plaintext is for loopback and never goes through a proxy.
    @Test func plaintextIsDirect() throws {
        var options = ClientOptions()
        try options.set("proxy", "http://proxy:1")
        #expect(ProxyChoice(options: options, host: "localhost", isSecure: false) == .direct)
        #expect(ProxyChoice(options: options, host: "edge", isSecure: true).isProxied)
    }
}
