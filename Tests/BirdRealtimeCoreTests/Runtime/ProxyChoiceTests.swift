import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

@Suite struct ProxyTests {
    @Test(arguments: [
        ("http://proxy:8080", Proxy.Kind.http, "proxy", 8080), ("http://proxy", .http, "proxy", 1080),
        ("http://proxy/", .http, "proxy", 1080),
        ("socks5://[::1]:1081", .socks5, "::1", 1081), ("SOCKS5H://proxy", .socks5h, "proxy", 1080),
    ])
    func readsURLs(_ url: String, _ kind: Proxy.Kind, _ host: String, _ port: UInt16) throws {
        let proxy = try #require(Proxy(url: url))
        #expect(proxy.kind == kind)
        #expect(proxy.host == host)
        #expect(proxy.port == port)
        #expect(!proxy.hasCredentials)
    }

    @Test(arguments: [
        ("http://user:p%40ss@proxy", "user", "p@ss"), ("http://user@proxy", "user", ""),
        ("http://u:p:q@r@proxy", "u", "p:q@r"), ("socks5://%C3%A9:50%off@proxy", "é", "50%off"),
    ])
    func readsCredentials(_ url: String, _ user: String, _ password: String) throws {
        let proxy = try #require(Proxy(url: url))
        #expect(proxy.user == user)
        #expect(proxy.password == password)
        #expect(proxy.hasCredentials)
        #expect(proxy.name == "proxy:1080")
    }

    @Test(arguments: [
        "", "gopher://proxy", "https://proxy", "socks4://proxy", "http://", "http://pro xy", "http://proxy:0",
        "http://user:a%0D%0Ab@proxy", "http://user:%FF@proxy",
        "socks5://" + String(repeating: "u", count: 256) + "@proxy",
        "proxy:8080", "user:secret@proxy:8080", "http://proxy/path", "http://proxy?x", "http://proxy#x",
        "http://user:a/b@proxy",
        "http://proxy//",
    ])
    func refusesWhatItCannotUse(_ url: String) {
        #expect(Proxy(url: url) == nil)
        #expect(!Proxy.problem(url).contains("secret"))
    }

    @Test(arguments: [
        ("proxy:8080", "no scheme"), ("http://proxy/path", "has a path"), ("https://proxy", "scheme is not supported"),
        ("http://proxy:0", "malformed"),
    ])
    func saysWhatIsWrong(_ url: String, _ words: String) {
        #expect(Proxy.problem(url).contains(words))
    }
}

@Suite struct ProxyChoiceTests {
    private static func chosen(_ environment: [String: String], host: String = "edge.test") throws(Fault) -> String? {
        try ProxyChoice(environment: { environment[$0] }).proxy(to: host, port: 443)?.name
    }

    @Test(
        arguments: [
            ([:], nil), (["https_proxy": "a:1"], "a:1"), (["HTTPS_PROXY": "a:1"], "a:1"),
            (["https_proxy": "a:1", "HTTPS_PROXY": "b:1"], "a:1"), (["https_proxy": "", "HTTPS_PROXY": "b:1"], "b:1"),
            (["all_proxy": "c:1"], "c:1"), (["ALL_PROXY": "c:1"], "c:1"),
            (["all_proxy": "c:1", "HTTPS_PROXY": "b:1"], "b:1"), (["http_proxy": "d:1", "HTTP_PROXY": "d:1"], nil),
            (["https_proxy": "a:1", "no_proxy": "edge.test"], nil), (["https_proxy": "a:1", "NO_PROXY": "test"], nil),
            (["https_proxy": "a:1", "no_proxy": "other.test", "NO_PROXY": "*"], "a:1"),
        ] as [([String: String], String?)])
    func readsTheEnvironment(_ environment: [String: String], _ name: String?) throws {
        #expect(try Self.chosen(environment) == name)
    }

    @Test(arguments: ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
    func namesAVariableThatItCannotUse(_ variable: String) throws {
        let environment = [variable: "https://user:secret@proxy", "no_proxy": "exempt.test"]
        do throws(Fault) {
            _ = try Self.chosen(environment)
            Issue.record("it was taken")
        } catch {
            #expect(error.status == BIRD_ERR_VALUE)
            #expect(error.field == variable)
            #expect(!error.message.contains("secret"))
        }
        #expect(try Self.chosen(environment, host: "exempt.test") == nil)
    }

    @Test func optionIgnoresTheEnvironment() throws {
        #expect(try ProxyChoice(option: nil).proxy(to: "edge.test", port: 443) == nil)
        let proxy = Proxy(url: "proxy")
        #expect(try ProxyChoice(option: proxy).proxy(to: "edge.test", port: 443) == proxy)
    }
}

@Suite struct ProxyExceptionsTests {
    @Test(arguments: [
        ("example.com", "", false), ("example.com", "*", true), ("example.com", " , *", true),
        ("example.com", "*.com", true), ("example.com", "e*", false),
        ("edge.internal", ".internal", true), ("edge.internal", "internal", true), ("notinternal", "internal", false),
        ("internal", ".internal", true), ("a.b.internal", "*.internal", true), ("internal.evil", "internal", false),
        ("localhost", "a, localhost ,b", true), ("localhost", "a localhost\tb", true),
        ("EXAMPLE.com", "example.COM", true), ("example.com.", "example.com", true),
        ("example.com", "example.com.", true),
        ("example.com", "example.com:443", true), ("example.com", "example.com:8443", false),
        ("a.example.com", ".example.com:443", true), ("example.com", "example.com:0", false),
        ("127.0.0.1", "127.0.0.1", true), ("127.0.0.1", "127.0.0.1:443", true), ("127.0.0.1", "127.0.0.1:80", false),
        ("127.0.0.1", "0.0.1", false), ("127.0.0.1", ".1", false), ("1.example", "1", false),
        ("::1", "::1", true), ("::1", "[::1]", true), ("::1", "0:0::1", true), ("::1", "[::1]:443", true),
        ("::1", "[::1]:80", false), ("2001:DB8::1", "2001:db8:0::1", true),
        ("192.0.2.77", "192.0.2.0/24", true), ("192.0.3.77", "192.0.2.0/24", false), ("192.0.3.77", "0.0.0.0/0", true),
        ("192.0.2.130", "192.0.2.128/25", true), ("192.0.2.127", "192.0.2.128/25", false),
        ("192.0.2.1", "192.0.2.1/32", true), ("192.0.2.1", "192.0.2.1/33", false), ("192.0.2.1", "192.0.2.0/", false),
        ("2001:db8::5", "2001:db8::/32", true), ("2001:db9::5", "2001:db8::/32", false),
        ("192.0.2.1", "::/0", false), ("example.com", "0.0.0.0/0", false), ("example.com", "example.com/24", false),
    ])
    func exempts(_ host: String, _ list: String, _ isExempt: Bool) {
        #expect(ProxyExceptions(list).contains(host, port: 443) == isExempt)
    }
}
