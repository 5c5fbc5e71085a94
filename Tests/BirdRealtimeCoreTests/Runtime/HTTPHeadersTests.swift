import Testing

@testable import BirdRealtimeCore

@Suite struct HTTPHeadersTests {
    /// libcurl leaves out a header with nothing behind its colon.
    @Test(arguments: [
        ("", "X;"), (" \t ", "X;"), ("a", "X: a"), (" a b ", "X: a b"), ("a;", "X: a;"),
    ])
    func linesForLibcurl(_ value: String, _ line: String) {
        var headers = HTTPHeaders()
        #expect(headers.set("X", value) == nil)
        #expect(headers.lines == [line])
    }

    @Test(arguments: [
        "Content-Length", "Transfer-Encoding", "Host", "Connection", "Expect", "Upgrade", "TE", "Trailer", "Keep-Alive",
        "Proxy-Connection", "Proxy-Authorization", "HTTP2-Settings", "content-length", "HOST",
    ])
    func framingIsNotThePrograms(_ name: String) {
        var headers = HTTPHeaders()
        #expect(headers.set(name, "secret")?.contains("must not set \(name)") == true)
        #expect(headers.set(name, "secret")?.contains("secret") == false)
        #expect(headers.all.isEmpty)
        var options = ClientOptions()
        #expect(throws: Fault.self) { try options.setAuthHeader(name, "1") }
    }
}
