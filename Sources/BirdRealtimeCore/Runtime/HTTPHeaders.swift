/// Headers that the program adds to authorization POSTs; a name occurs once, in any case. RFC 9110 section 5.
package struct HTTPHeaders: Sendable {
    package static let countMax = 64
    private static let nameBytesMax = 256
    private static let valueBytesMax = 8_192

    private(set) var all: [(name: String, value: String)] = []

    package init() {}

    /// The same name replaces. What is wrong with the header, never with its value in it; nil if it was taken.
    package mutating func set(_ name: String, _ value: String) -> String? {
        let isToken =
            !name.isEmpty && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"()<>@,;:\\\"/[]?={}".utf8.contains($0) }
        guard isToken, name.utf8.count <= Self.nameBytesMax else { return "has a name that HTTP does not allow" }
        guard value.utf8.count <= Self.valueBytesMax,
            !value.utf8.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F })
        else { return "has a value (of \(name)) that HTTP does not allow" }
        remove(name)
        guard all.count < Self.countMax else { return "has more than \(Self.countMax) headers" }
        all.append((name, value))
        return nil
    }

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
