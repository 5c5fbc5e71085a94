/// Headers that the program adds to authorization POSTs; a name occurs once, in any case. RFC 9110 section 5.
package struct HTTPHeaders: Sendable {
    package static let countMax = 64
    private static let nameBytesMax = 256
    private static let valueBytesMax = 8_192

    /// They say where a request ends and what becomes of its connection (RFC 9110 sections 7.2, 7.6.1, 7.8, 8.6, 10.1.1 and 10.1.4), or are a
    /// proxy's: a value of the program's would break the request, or the next one on the connection.
    private static let reserved: Set<String> = [
        "connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    private(set) var all: [(name: String, value: String)] = []

    package init() {}

    static func isReserved(_ name: String) -> Bool { reserved.contains(name.lowercased()) }

    /// The same name replaces. What is wrong with the header, never with its value in it; nil if it was taken.
    package mutating func set(_ name: String, _ value: String) -> String? {
        let isToken =
            !name.isEmpty && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"()<>@,;:\\\"/[]?={}".utf8.contains($0) }
        guard isToken, name.utf8.count <= Self.nameBytesMax else { return "has a name that HTTP does not allow" }
        guard !Self.isReserved(name) else {
            return "must not set \(name): libcurl sets the headers that frame the request"
        }
        guard value.utf8.count <= Self.valueBytesMax,
            !value.utf8.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F })
        else { return "has a value (of \(name)) that HTTP does not allow" }
        remove(name)
        guard all.count < Self.countMax else { return "has more than \(Self.countMax) headers" }
        all.append((name, Self.withoutBlanksAround(value)))
        return nil
    }

    /// Blanks around a value are no part of it (RFC 9110 section 5.5).
    private static func withoutBlanksAround(_ value: String) -> String {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        var bytes = value.utf8.drop(while: isBlank)
        while let last = bytes.last, isBlank(last) { bytes.removeLast() }
        return String(Substring(bytes))
    }

    /// As libcurl takes headers: one with an empty value ends with a semicolon, for behind a colon it would take it for one to leave out.
    var lines: [String] { all.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" } }

    /// The other ones win.
    func overlaid(by others: HTTPHeaders) -> HTTPHeaders {
        var both = self
        for header in others.all { both.remove(header.name) }
        both.all += others.all
        return both
    }

    private mutating func remove(_ name: String) {
        all.removeAll { $0.name.lowercased() == name.lowercased() }
    }
}
