import BirdRealtimeCore
import CBirdRealtimeABI
import Testing

@Suite struct SHA1Tests {
    private func hex(_ text: String) -> String {
        SHA1.digest(Array(text.utf8)).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }

    /// FIPS 180 and RFC 3174.
    @Test func publishedVectors() {
        #expect(hex("") == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
        #expect(hex("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d")
        #expect(
            hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
                == "84983e441c3bd26ebaae4aa1f95129e5e54670f1")
        #expect(hex(String(repeating: "a", count: 1_000_000)) == "34aa973cd4c4daa4f61eeb2bdbad27316534016f")
        #expect(
            hex(String(repeating: "01234567", count: 80)) == "dea356a2cddd90c7a7ecedc5ebb563934f460452")
    }

    /// Lengths around the padding's block border, computed with another implementation.
    @Test(arguments: [
        (54, "b05d71c64979cb95fa74a33cdb31a40d258ae02e"), (55, "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
        (56, "c2db330f6083854c99d4b5bfb6e8f29f201be699"), (63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5"),
        (64, "0098ba824b5c16427bd7a1122a5a442a25ec644d"), (65, "11655326c708d70319be2610e8a57d9a5b959d3b"),
    ])
    func padding(_ length: Int, _ digest: String) {
        #expect(hex(String(repeating: "a", count: length)) == digest)
    }
}

@Suite struct UpgradeRequestTests {
    @Test func exactBytes() {
        let request = UpgradeRequest.bytes(
            host: "ws-eu1.realtime.platform.bird.com", path: "/app/k?protocol=7", key: "dGhlIHNhbXBsZSBub25jZQ==",
            userAgent: "bird-realtime/0.1.0")
        #expect(
            text(request)
                == "GET /app/k?protocol=7 HTTP/1.1\r\nHost: ws-eu1.realtime.platform.bird.com\r\nUpgrade: websocket\r\n"
                + "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                + "User-Agent: bird-realtime/0.1.0\r\n\r\n")
    }

    @Test func noValueEndsItsLine() {
        let request = text(
            UpgradeRequest.bytes(host: "h\r\nX: 1", path: "/\r\n\r\nGET /", key: "k\nY: 2", userAgent: "a\u{0}\rb"))
        #expect(request.split(separator: "\r\n", omittingEmptySubsequences: false).count == 9)
        #expect(!request.contains("\nX:") && !request.contains("\nY:") && !request.contains("\u{0}"))
    }

    @Test func keyIsSixteenBytesInBase64() {
        #expect(UpgradeRequest.key(random: (0, 0)) == "AAAAAAAAAAAAAAAAAAAAAA==")
        #expect(UpgradeRequest.key(random: (.max, .max)) == "/////////////////////w==")
        let sample = Array("the sample nonce".utf8).withUnsafeBytes { $0.loadUnaligned(as: (UInt64, UInt64).self) }
        #expect(UpgradeRequest.key(random: sample) == "dGhlIHNhbXBsZSBub25jZQ==")
    }

    @Test func acceptValueOfTheRFC() {
        #expect(UpgradeRequest.acceptValue(for: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }
}

@Suite struct UpgradeResponseTests {
    private static let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    private static let good = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", accept]

    private func parse(_ bytes: [UInt8]) -> UpgradeResponse.Step {
        var response = UpgradeResponse(key: "dGhlIHNhbXBsZSBub25jZQ==")
        return withGuarded(bytes) { response.parse(UnsafeRawBufferPointer($0)) }
    }

    private func parse(lines: [String]) -> UpgradeResponse.Step {
        parse(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8))
    }

    private func fault(_ step: UpgradeResponse.Step) -> Fault? {
        guard case .refused(let fault) = step else { return nil }
        #expect(fault.status == BIRD_ERR_UPGRADE && fault.field == "upgrade" && fault.isRetriable)
        #expect(fault.area == .connection)
        return fault
    }

    @Test func accepted() {
        let bytes = Array((Self.good.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        #expect(parse(bytes) == .accepted(consumed: bytes.count))
        #expect(parse(bytes + [0x81, 0x00]) == .accepted(consumed: bytes.count))
    }

    @Test func everyCut() {
        let bytes = Array((Self.good.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        var response = UpgradeResponse(key: "dGhlIHNhbXBsZSBub25jZQ==")
        for end in 0..<bytes.count {
            #expect(parse(Array(bytes[..<end])) == .incomplete)
            #expect(bytes[..<end].withUnsafeBytes { response.parse($0) } == .incomplete)
        }
        #expect(bytes.withUnsafeBytes { response.parse($0) } == .accepted(consumed: bytes.count))
    }

    @Test(arguments: [
        ["HTTP/1.1 101 ", "UPGRADE: WebSocket", "connection: keep-alive, upgrade", accept],
        ["HTTP/1.1 101", "Upgrade:websocket", "Connection:\tUpgrade \t", accept],
        ["HTTP/1.0 101 x", "Upgrade: h2c, websocket", "Connection: keep-alive", "Connection: Upgrade", accept],
        [
            "HTTP/1.1 101 ü", "Server: x:y", "X-Empty:", "Upgrade: websocket", "Connection: Upgrade",
            "sec-websocket-accept:s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        ],
        good + ["Sec-WebSocket-Extensions:", "Sec-WebSocket-Protocol: "],
    ])
    func liberalAsTheRulesAre(_ lines: [String]) {
        guard case .accepted = parse(lines: lines) else {
            Issue.record("\(lines)")
            return
        }
    }

    @Test(arguments: [
        ([good[0], good[2], accept], "Upgrade: websocket"),
        ([good[0], "Upgrade: websockets", good[2], accept], "Upgrade: websocket"),
        ([good[0], good[1], accept], "Connection"), ([good[0], good[1], "Connection: close", accept], "Connection"),
        ([good[0], good[1], good[2]], "Accept"), ([good[0], good[1], good[2], "Sec-WebSocket-Accept: AAAA"], "Accept"),
        ([good[0], good[1], good[2], "Sec-WebSocket-Accept: S3PPLMBiTxaQ9kYGzzhZRbK+xOo="], "Accept"),
        (good + [accept], "Accept"),
        (good + ["Sec-WebSocket-Extensions: permessage-deflate"], "extension"),
        (good + ["Sec-WebSocket-Protocol: chat"], "subprotocol"),
    ])
    func brokenPromises(_ lines: [String], _ word: String) {
        let fault = fault(parse(lines: lines))
        #expect(fault?.httpStatus == 101 && fault?.message.contains(word) == true, "\(fault?.message ?? "accepted")")
    }

    @Test(arguments: [
        good + [" folded"], good + ["\tfolded"], good + ["no colon"], good + ["Name : x"], good + [": x"],
        good + ["N\u{E4}me: x"],
        good + ["A: b\u{0}c"], good + ["A: b\rc"], good + ["A: b\nc"], good + ["A(: b"],
    ])
    func malformedHeaders(_ lines: [String]) {
        #expect(fault(parse(lines: lines))?.message.isEmpty == false)
    }

    @Test(arguments: [
        "HTTP/1.1 1o1 x", "HTTP/1.1 10", "HTTP/1.1  101 x", "HTTP/1.1 1011", "HTTP/1.x 101 x", "HTTP/1.1\t101 x",
        "HTTP/1.1", "HTTP/1.1 001 x",
    ])
    func malformedStatusLines(_ line: String) {
        #expect(fault(parse(lines: [line] + Self.good.dropFirst()))?.message.contains("status line") == true)
    }

    @Test(arguments: [200, 301, 400, 401, 403, 404, 426, 429, 500, 502, 503] as [Int32])
    func otherStatuses(_ status: Int32) {
        let fault = fault(parse(lines: ["HTTP/1.1 \(status) Some Reason", "Content-Length: 3"]))
        #expect(fault?.httpStatus == status && fault?.message.contains("\(status)") == true)
    }

    /// RFC 9110 section 15.2.
    @Test(arguments: [
        ["HTTP/1.1 100 Continue"], ["HTTP/1.1 103 Early Hints", "Link: </x>; rel=preload", "Upgrade: h2c"],
        ["HTTP/1.1 102", "", "HTTP/1.1 100 Continue", "Retry-After: 9", "", "HTTP/1.0 199 x", "Connection: close"],
    ])
    func interimAnswersAreSkipped(_ interim: [String]) {
        let bytes = Array(((interim + [""] + Self.good).joined(separator: "\r\n") + "\r\n\r\n").utf8)
        #expect(parse(bytes) == .accepted(consumed: bytes.count))
        #expect(parse(bytes + [0x81, 0x00]) == .accepted(consumed: bytes.count))
        var response = UpgradeResponse(key: "dGhlIHNhbXBsZSBub25jZQ==")
        for end in 0..<bytes.count {
            #expect(parse(Array(bytes[..<end])) == .incomplete)
            #expect(bytes[..<end].withUnsafeBytes { response.parse($0) } == .incomplete)
        }
        #expect(bytes.withUnsafeBytes { response.parse($0) } == .accepted(consumed: bytes.count))
        #expect(fault(parse(lines: interim + ["", "HTTP/1.1 403 No"]))?.httpStatus == 403)
    }

    @Test func interimAnswersKeepTheRules() {
        #expect(fault(parse(lines: ["HTTP/1.1 100 Continue", " folded", ""] + Self.good)) != nil)
        #expect(
            fault(parse(lines: ["HTTP/1.1 100 Continue", "", "SSH-2.0-OpenSSH_9.2"]))?.message.contains("HTTP") == true)
        let first = fault(parse(lines: ["HTTP/1.1 101 Switching Protocols", ""] + Self.good))
        #expect(first?.httpStatus == 101, "the first 101 is the answer")
        let endless = Array(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 1_000).utf8)
        #expect(fault(parse(endless))?.message.contains("16384") == true)
    }

    @Test func retryAfterOfARefusal() {
        func retryAfter(_ lines: [String]) -> RetryAfter? {
            var response = UpgradeResponse(key: "dGhlIHNhbXBsZSBub25jZQ==")
            let bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
            _ = bytes.withUnsafeBytes { response.parse($0) }
            return response.retryAfter
        }
        #expect(retryAfter(["HTTP/1.1 503 Busy", "retry-after:  7 "]) == .seconds(7))
        #expect(
            retryAfter(["HTTP/1.1 429 Busy", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"]) == .moment(784_111_777))
        #expect(retryAfter(["HTTP/1.1 503 Busy", "Retry-After: soon"]) == nil)
        #expect(retryAfter(["HTTP/1.1 503 Busy"]) == nil)
        #expect(retryAfter(["HTTP/1.1 103 Early Hints", "Retry-After: 7", "", "HTTP/1.1 503 Busy"]) == nil)
    }

    @Test func redirectNamesItsLocation() {
        let fault = fault(parse(lines: ["HTTP/1.1 302 Found", "Location: https://other.example/\u{7}x"]))
        #expect(fault?.httpStatus == 302 && fault?.message.contains("https://other.example/x") == true)
    }

    @Test func locationHasNoSecrets() {
        let fault = fault(
            parse(lines: ["HTTP/1.1 302 Found", "Location: https://user:pass@h.example/p?token=secret#more"]))
        #expect(fault?.message.contains("https://h.example/p,") == true, "\(fault?.message ?? "")")
        for secret in ["user", "pass", "token", "secret", "more"] {
            #expect(fault?.message.contains(secret) == false)
        }
    }

    @Test(
        arguments: [
            ("Content-Length: 9\r\n\r\nNo access", "\"No access\"", false),
            ("Content-Length: 9\r\n\r\nNo acc", "\"No acc\"", true),
            ("Content-Length: 2\r\n\r\nNo access", "\"No\"", false),
            ("Content-Length: 0\r\n\r\n", nil, false), ("X: y\r\n\r\n", nil, true),
            ("X: y\r\n\r\n<html><title>Sign in</title>", "\"Sign in\"", true),
            ("Transfer-Encoding: chunked\r\n\r\n1a\r\n<html><title>Sign in</title>", "\"Sign in\"", true),
            ("Content-Encoding: gzip\r\n\r\nabc", nil, false),
            ("X: y\r\n\r\n" + String(repeating: " ", count: 4_096), nil, false),
        ] as [(String, String?, Bool)])
    func wordsOfARefusal(_ rest: String, _ words: String?, _ mayTellMore: Bool) {
        var response = UpgradeResponse(key: "dGhlIHNhbXBsZSBub25jZQ==")
        let bytes = Array("HTTP/1.1 403 Forbidden\r\n\(rest)".utf8)
        #expect(fault(bytes.withUnsafeBytes { response.parse($0) })?.httpStatus == 403)
        #expect(response.words == words && response.mayTellMore == mayTellMore && !response.wantsTLS)
    }

    @Test(arguments: [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", true), ("HTTP/1.1 403 No\r\n\r\n", false), ("\u{15}\u{3}\u{3}", true),
        ("\u{16}\u{3}\u{1}", true), ("\u{15}", false), ("SSH", false),
    ])
    func serverThatWantsTLS(_ answer: String, _ wantsTLS: Bool) {
        var response = UpgradeResponse(key: "dGhlIHNhbXBsZSBub25jZQ==")
        _ = Array(answer.utf8).withUnsafeBytes { response.parse($0) }
        #expect(response.wantsTLS == wantsTLS)
    }

    @Test func bodyOfARefusalDoesNotMatter() {
        let bytes = Array("HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\n<html>\u{0}\n\n".utf8)
        #expect(fault(parse(bytes))?.httpStatus == 403)
    }

    @Test(arguments: [
        "SSH-2.0-OpenSSH_9.2\r\n", "\u{15}\u{3}\u{3}", "<html>", "\r\n", "HTTP/2 101", "http/1.1 101", "ICY 200 OK",
        "H2", "\u{0}",
    ])
    func notHTTP(_ garbage: String) {
        #expect(fault(parse(Array(garbage.utf8)))?.message.contains("HTTP") == true)
    }

    @Test func headersAreBounded() {
        let filler = "X: " + String(repeating: "x", count: UpgradeResponse.headerBytesMax)
        let start = Array((Self.good + [filler]).joined(separator: "\r\n").utf8)
        #expect(fault(parse(start))?.message.contains("16384") == true)
        #expect(
            fault(parse(Array((Self.good + [filler]).joined(separator: "\r\n").utf8) + Array("\r\n\r\n".utf8))) != nil)
        let head = Self.good.joined(separator: "\r\n").utf8.count
        let fitting = "X: " + String(repeating: "x", count: UpgradeResponse.headerBytesMax - head - 9)
        #expect(parse(lines: Self.good + [fitting]) == .accepted(consumed: UpgradeResponse.headerBytesMax))
        #expect(fault(parse(lines: Self.good + [fitting + "x"])) != nil)
    }
}
