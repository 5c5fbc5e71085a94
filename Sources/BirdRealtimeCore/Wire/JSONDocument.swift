/// Strict JSON for control frames and authorizer answers, where nothing is hot.
package enum JSONDocument {
    /// nil: not one JSON value in valid UTF-8, or more than 512 containers deep.
    package static func parse(_ text: [UInt8]) -> JSONNode? {
        text.withUnsafeBytes { bytes in
            guard JSONValidator.isValue(bytes), var reader = JSONReader(bytes) else { return nil }
            return JSONNode.next(&reader, text: text)
        }
    }
}

/// One value of a document: a slice of its validated text that is taken apart when asked, so a document costs no memory beyond
/// its bytes. Access by key or element goes through the whole value: take `elements` or `dictionary` once instead of in a loop.
package struct JSONNode: Sendable {
    package enum Kind: Sendable {
        case object
        case array
        case string
        case number
        case bool
        case null
    }

    package let kind: Kind
    private let text: [UInt8]
    /// The whole value for all but strings, for which it is what stands between the quotes.
    private let span: Span

    /// The value as it stands in the text, byte for byte.
    package var raw: [UInt8] {
        let quote = kind == .string ? 1 : 0
        return Array(text[(span.offset - quote)..<(span.offset + span.length + quote)])
    }

    package var isNull: Bool { kind == .null }

    package var bool: Bool? {
        kind == .bool ? text[span.offset] == UInt8(ascii: "t") : nil
    }

    package var string: String? {
        guard kind == .string else { return nil }
        return text.withUnsafeBytes { JSONString.decode(span, in: $0) }
    }

    /// The digits of a number as they stand in the text: no conversion, no rounding.
    package var numberText: String? {
        guard kind == .number else { return nil }
        return text.withUnsafeBytes { JSONString.decode(span, in: $0) }
    }

    /// Ids are strings, whether they were sent as strings or as numbers.
    package var stringOrNumberText: String? {
        string ?? numberText
    }

    /// The elements of an array; empty for anything else.
    package var elements: [JSONNode] {
        guard kind == .array else { return [] }
        var elements: [JSONNode] = []
        read { reader in
            while let element = JSONNode.next(&reader, text: text) {
                elements.append(element)
                reader.skipWhitespace()
                _ = reader.take(UInt8(ascii: ","))
            }
        }
        return elements
    }

    /// The members of an object, the last of duplicate keys; empty for anything else.
    package var dictionary: [String: JSONNode] {
        var members: [String: JSONNode] = [:]
        forEachMember { key, value in
            members[text.withUnsafeBytes { JSONString.decode(key, in: $0) }] = value
        }
        return members
    }

    /// A member of an object, the last of duplicate keys.
    package subscript(name: String) -> JSONNode? {
        var found: JSONNode?
        text.withUnsafeBytes { bytes in
            forEachMember { key, value in
                let isName =
                    key.isEscaped
                    ? JSONString.decode(key, in: bytes).utf8.elementsEqual(name.utf8)
                    : key.bytes(in: bytes).elementsEqual(name.utf8)
                if isName {
                    found = value
                }
            }
        }
        return found
    }

    private func forEachMember(_ body: (Span, JSONNode) -> Void) {
        guard kind == .object else { return }
        read { reader in
            reader.skipWhitespace()
            while let key = reader.string() {
                reader.skipWhitespace()
                _ = reader.take(UInt8(ascii: ":"))
                guard let value = JSONNode.next(&reader, text: text) else { return }
                body(key, value)
                reader.skipWhitespace()
                _ = reader.take(UInt8(ascii: ","))
                reader.skipWhitespace()
            }
        }
    }

    /// A reader behind the opening bracket.
    private func read(_ body: (inout JSONReader) -> Void) {
        text.withUnsafeBytes { bytes in
            guard var reader = JSONReader(bytes) else { return }
            reader.position = span.offset + 1
            body(&reader)
        }
    }

    /// The value that begins at the reader's position; nil at a closing bracket.
    fileprivate static func next(_ reader: inout JSONReader, text: [UInt8]) -> JSONNode? {
        reader.skipWhitespace()
        let start = reader.position
        let kind: Kind
        switch reader.current {
        case UInt8(ascii: "\""):
            guard let span = reader.string() else { return nil }
            return JSONNode(kind: .string, text: text, span: span)
        case UInt8(ascii: "{"): kind = .object
        case UInt8(ascii: "["): kind = .array
        case UInt8(ascii: "t"), UInt8(ascii: "f"): kind = .bool
        case UInt8(ascii: "n"): kind = .null
        default: kind = .number
        }
        guard reader.skipValue(depth: 0) else { return nil }
        return JSONNode(
            kind: kind, text: text, span: Span(offset: start, length: reader.position - start, isEscaped: false))
    }
}
