internal import CBirdRealtimeABI

/// The server's half of the opening handshake (RFC 6455 section 4.2.2), read as it arrives.
package struct UpgradeResponse {
    package enum Step: Equatable {
        /// Not all there. Nothing is consumed: pass the same bytes again with more behind them.
        case incomplete
        /// Bytes behind the first `consumed` are frames.
        case accepted(consumed: Int)
        case refused(Fault)
    }

    package static let headerBytesMax = 16 * 1024

    /// What the body of an answer that refuses says so far, and whether more of it may come: parse again then.
    package private(set) var words: String?
    package private(set) var mayTellMore = false
    /// The server speaks TLS, or says that it wants to be spoken to so.
    package private(set) var wantsTLS = false

    private let acceptValue: String
    /// Of interim answers, which say nothing about the final one.
    private var skipped = 0
    /// Bytes in which no end of the headers was found.
    private var searched = 0
    /// With `.refused`: what the server asks for before the next attempt.
    package private(set) var retryAfter: RetryAfter?

    /// `key`: that of the request.
    package init(key: String) {
        acceptValue = UpgradeRequest.acceptValue(for: key)
    }

    /// `bytes`: everything that has come since the request was sent.
    package mutating func parse(_ bytes: UnsafeRawBufferPointer) -> Step {
        // Each turn but the last skips an interim answer, of at least one byte.
        while true {
            // Something that is not HTTP may never send an empty line.
            let begin = "HTTP/1.".utf8
            let rest = bytes.dropFirst(skipped)
            guard zip(rest, begin).allSatisfy({ $0 == $1 }) else {
                // An alert or a handshake record of TLS.
                wantsTLS = rest.prefix(2).elementsEqual([0x15, 3]) || rest.prefix(2).elementsEqual([0x16, 3])
                return .refused(Self.fault("The server does not speak HTTP, so it is no WebSocket server"))
            }
            let limit = min(bytes.count, Self.headerBytesMax)
            guard let end = Self.endOfHeaders(bytes, from: max(skipped, searched - 3), to: limit) else {
                searched = limit
                guard bytes.count < Self.headerBytesMax else {
                    return .refused(
                        Self.fault("The answer to the upgrade has more than \(Self.headerBytesMax) header bytes"))
                }
                return .incomplete
            }
            var body = Body()
            do throws(Fault) {
                guard try check(bytes[skipped..<(end - 4)], &body) else {
                    skipped = end
                    searched = end
                    continue
                }
                return .accepted(consumed: end)
            } catch {
                read(body, bytes[end...])
                wantsTLS = error.httpStatus == 400
                return .refused(error)
            }
        }
    }

    /// What is known of the body of an answer that refuses.
    private struct Body {
        /// 0: there is none that tells anything.
        var bytesExpected = 0
    }

    private mutating func read(_ body: Body, _ bytes: Slice<UnsafeRawBufferPointer>) {
        let bytesMax = min(body.bytesExpected, OutsideText.searchedBytesMax)
        mayTellMore = bytes.count < bytesMax
        if bytesMax > 0 { words = OutsideText.words(of: Self.withoutChunkSize(bytes.prefix(bytesMax))) }
    }

    /// The line before the first chunk (RFC 9112 section 7.1) is no text of the body's.
    private static func withoutChunkSize(_ body: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        let digits = body.prefix { ASCII.isHexDigit($0) }
        let rest = body[digits.endIndex...]
        return digits.isEmpty || !rest.starts(with: [0x0D, 0x0A]) ? body : rest.dropFirst(2)
    }

    /// The index behind the first empty line.
    private static func endOfHeaders(_ bytes: UnsafeRawBufferPointer, from start: Int, to limit: Int) -> Int? {
        var index = start
        while index + 4 <= limit {
            if bytes[index] == 0x0D, bytes[index + 1] == 0x0A, bytes[index + 2] == 0x0D, bytes[index + 3] == 0x0A {
                return index + 4
            }
            index += 1
        }
        return nil
    }

    /// `block`: status line and headers without the last line end. False: an interim answer (RFC 9110 section 15.2), and another one
    /// follows. 101 is the final answer to an upgrade.
    private mutating func check(_ block: Slice<UnsafeRawBufferPointer>, _ body: inout Body) throws(Fault) -> Bool {
        var lines = try Self.lines(block).makeIterator()
        let status = try Self.status(lines.next() ?? "")
        var fields = Fields()
        while let line = lines.next() {
            try fields.add(line)
        }
        if (100...199).contains(status), status != 101 { return false }
        guard status == 101 else {
            retryAfter = fields.retryAfter
            body.bytesExpected = fields.isCompressed ? 0 : fields.contentLength ?? .max
            let target = fields.location.map { " with Location \($0), which is not followed" } ?? ""
            throw Self.fault("The server answered the upgrade with HTTP status \(status)\(target)", status: status)
        }
        guard fields.upgrade.contains("websocket") else {
            throw Self.fault("The answer to the upgrade lacks Upgrade: websocket", status: status)
        }
        guard fields.connection.contains("upgrade") else {
            throw Self.fault("The answer to the upgrade lacks Connection: Upgrade", status: status)
        }
        guard fields.accept == [acceptValue] else {
            throw Self.fault("The answer to the upgrade has a missing or wrong Sec-WebSocket-Accept", status: status)
        }
        guard !fields.hasExtensions else {
            throw Self.fault("The server selected a WebSocket extension that was not offered", status: status)
        }
        guard !fields.hasSubprotocol else {
            throw Self.fault("The server selected a WebSocket subprotocol that was not offered", status: status)
        }
        return true
    }

    /// Lines end with CR LF; neither stands anywhere else, nor does NUL.
    private static func lines(_ block: Slice<UnsafeRawBufferPointer>) throws(Fault) -> [String] {
        var lines: [String] = []
        var rest = block
        while true {
            let end = rest.firstIndex { $0 == 0x0D || $0 == 0x0A || $0 == 0 } ?? rest.endIndex
            lines.append(String(decoding: rest[..<end], as: UTF8.self))
            guard end < rest.endIndex else { return lines }
            guard rest[end] == 0x0D, end + 1 < rest.endIndex, rest[end + 1] == 0x0A else {
                throw fault("The answer to the upgrade has a line that does not end with CR LF")
            }
            rest = rest[(end + 2)...]
        }
    }

    /// HTTP-version SP status-code [SP reason]; RFC 9112 section 4.
    private static func status(_ line: String) throws(Fault) -> Int32 {
        let bytes = Array(line.utf8)
        let digits = bytes.dropFirst(9).prefix(3)
        guard bytes.count >= 12, ASCII.isDigit(bytes[7]), bytes[8] == 0x20, digits.allSatisfy(ASCII.isDigit),
            bytes.count == 12 || bytes[12] == 0x20, bytes[9] != UInt8(ascii: "0")
        else {
            throw fault("The answer to the upgrade has no HTTP status line")
        }
        return digits.reduce(0) { $0 * 10 + Int32($1 - UInt8(ascii: "0")) }
    }

    fileprivate static func fault(_ message: String, status: Int32 = 0) -> Fault {
        Fault(
            BIRD_ERR_UPGRADE, .connection, field: "upgrade", "\(message).", httpStatus: status, isRetriable: true)
    }
}

/// The header fields that matter.
private struct Fields {
    /// Lowercased tokens of all fields of the name.
    var upgrade: [String] = []
    var connection: [String] = []
    var accept: [String] = []
    var hasExtensions = false
    var hasSubprotocol = false
    /// For messages.
    var location: String?
    var retryAfter: RetryAfter?
    var contentLength: Int?
    var isCompressed = false

    /// field-name ":" OWS field-value OWS; RFC 9112 section 5. A folded line begins with a blank, which no name has.
    mutating func add(_ line: String) throws(Fault) {
        let bytes = line.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > bytes.startIndex,
            bytes[..<colon].allSatisfy(Self.isTokenCharacter)
        else {
            throw UpgradeResponse.fault("The answer to the upgrade has a malformed or folded header line")
        }
        let value = Self.trimmed(bytes[bytes.index(after: colon)...])
        switch Self.lowercased(bytes[..<colon]) {
        case "upgrade": upgrade += Self.tokens(value)
        case "connection": connection += Self.tokens(value)
        case "retry-after": retryAfter = RetryAfter(value)
        case "sec-websocket-accept": accept.append(String(decoding: value, as: UTF8.self))
        case "sec-websocket-extensions": hasExtensions = hasExtensions || !value.isEmpty
        case "sec-websocket-protocol": hasSubprotocol = hasSubprotocol || !value.isEmpty
        case "location":
            location = OutsideText.place(String(decoding: value.filter { $0 > 0x20 && $0 < 0x7F }, as: UTF8.self))
        case "content-length": contentLength = Int(String(decoding: value, as: UTF8.self))
        case "content-encoding": isCompressed = !value.isEmpty && Self.lowercased(value) != "identity"
        default: break
        }
    }

    private static func tokens(_ value: Substring.UTF8View) -> [String] {
        value.split(separator: UInt8(ascii: ",")).map { lowercased(trimmed($0)) }
    }

    private static func trimmed(_ value: Substring.UTF8View) -> Substring.UTF8View {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        var value = value.drop(while: isBlank)
        while let last = value.last, isBlank(last) {
            value.removeLast()
        }
        return value
    }

    private static func lowercased(_ bytes: Substring.UTF8View) -> String {
        String(decoding: bytes.map(ASCII.lowercased), as: UTF8.self)
    }

    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
