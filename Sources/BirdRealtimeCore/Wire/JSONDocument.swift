/// Strict JSON for control frames and authorizer answers, where nothing is hot.
package enum JSONDocument {
    /// nil: not one JSON value in valid UTF-8, or more than 512 containers deep.
    package static func parse(_ text: [UInt8]) -> JSONNode? {
        text.withUnsafeBytes { JSONText(json: $0) }.root
    }
}

/// Where a value is in its text.
package struct JSONPlace: Sendable {
    package let kind: JSONNode.Kind
    /// The whole value for all but strings, for which it is what stands between the quotes.
    let span: Span

    /// The value that begins at the reader's position; nil at a closing bracket, and where there is none.
    static func next(_ reader: inout JSONReader) -> JSONPlace? {
        reader.skipWhitespace()
        let start = reader.position
        let kind: JSONNode.Kind
        switch reader.current {
        case UInt8(ascii: "\""):
            guard let span = reader.string() else { return nil }
            return JSONPlace(kind: .string, span: span)
        case UInt8(ascii: "{"): kind = .object
        case UInt8(ascii: "["): kind = .array
        case UInt8(ascii: "t"), UInt8(ascii: "f"): kind = .bool
        case UInt8(ascii: "n"): kind = .null
        default: kind = .number
        }
        guard reader.skipValue(depth: 0) else { return nil }
        return JSONPlace(kind: kind, span: Span(offset: start, length: reader.position - start, isEscaped: false))
    }

    /// The one value of `bytes`, which are looked at where they lie; nil: they are not one JSON value in valid UTF-8.
    static func root(of bytes: UnsafeRawBufferPointer) -> JSONPlace? {
        guard var reader = JSONReader(bytes), let place = next(&reader) else { return nil }
        reader.skipWhitespace()
        guard reader.isAtEnd, !reader.sawNonASCII || UTF8Validator.isValid(bytes) else { return nil }
        return place
    }

    // The value is part of `bytes`, which have been validated.

    /// The value as it stands there, with the quotes of a string.
    func raw(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        guard kind == .string, span.offset > 0 else { return span.bytes(in: bytes) }
        return UnsafeRawBufferPointer(rebasing: bytes[(span.offset - 1)...(span.offset + span.length)])
    }

    /// The text of a string; nil for anything else.
    func string(in bytes: UnsafeRawBufferPointer) -> String? {
        kind == .string ? JSONString.decode(span, in: bytes) : nil
    }

    /// Goes over the elements of an array until `body` says that it has seen enough.
    func forEachElement(in bytes: UnsafeRawBufferPointer, _ body: (JSONPlace) -> Bool) {
        guard kind == .array, var reader = reader(bytes) else { return }
        while let element = Self.next(&reader), body(element) {
            reader.skipWhitespace()
            _ = reader.take(UInt8(ascii: ","))
        }
    }

    /// Goes over the members of an object until `body` says that it has seen enough.
    func forEachMember(in bytes: UnsafeRawBufferPointer, _ body: (Span, JSONPlace) -> Bool) {
        guard kind == .object, var reader = reader(bytes) else { return }
        reader.skipWhitespace()
        while let key = reader.string() {
            reader.skipWhitespace()
            _ = reader.take(UInt8(ascii: ":"))
            guard let value = Self.next(&reader), body(key, value) else { return }
            reader.skipWhitespace()
            _ = reader.take(UInt8(ascii: ","))
            reader.skipWhitespace()
        }
    }

    /// A member of an object, the last of duplicate keys.
    func member(_ name: String, in bytes: UnsafeRawBufferPointer) -> JSONPlace? {
        var name = name
        return name.withUTF8 { name in
            var found: JSONPlace?
            forEachMember(in: bytes) { key, value in
                let isName =
                    key.isEscaped
                    ? JSONString.decode(key, in: bytes).utf8.elementsEqual(name)
                    : key.length == name.count && key.bytes(in: bytes).elementsEqual(name)
                if isName { found = value }
                return true
            }
            return found
        }
    }

    /// A reader behind the opening bracket.
    private func reader(_ bytes: UnsafeRawBufferPointer) -> JSONReader? {
        guard var reader = JSONReader(bytes) else { return nil }
        reader.position = span.offset + 1
        return reader
    }
}

/// One value of a document: a part of its validated text that is taken apart when asked, so a document costs no memory beyond
/// its bytes. Access by key or element goes through the whole value: take all at once instead of in a loop.
package struct JSONNode: Sendable {
    package enum Kind: Sendable {
        case object
        case array
        case string
        case number
        case bool
        case null
    }

    package let text: JSONText
    package let place: JSONPlace

    package init(_ text: JSONText, _ place: JSONPlace) {
        self.text = text
        self.place = place
    }

    package var kind: Kind { place.kind }
    private var span: Span { place.span }

    /// The value as it stands in the text, byte for byte.
    package var raw: [UInt8] { withRaw { Array($0) } }

    package func withRaw<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        text.withBytes { bytes in
            guard kind == .string else { return body(span.bytes(in: bytes)) }
            // A string that is a whole payload has no quotes around it.
            guard span.offset > 0 else {
                var quoted: [UInt8] = []
                JSONString.appendQuoted(bytes, to: &quoted)
                return quoted.withUnsafeBytes(body)
            }
            return body(UnsafeRawBufferPointer(rebasing: bytes[(span.offset - 1)...(span.offset + span.length)]))
        }
    }

    package var isNull: Bool { kind == .null }

    package var bool: Bool? {
        kind == .bool ? text.withBytes { $0[span.offset] == UInt8(ascii: "t") } : nil
    }

    package var string: String? {
        kind == .string ? text.withBytes { JSONString.decode(span, in: $0) } : nil
    }

    /// The digits of a number as they stand in the text: no conversion, no rounding.
    package var numberText: String? {
        kind == .number ? text.withBytes { JSONString.decode(span, in: $0) } : nil
    }

    /// Ids are strings, whether they were sent as strings or as numbers.
    package var stringOrNumberText: String? {
        string ?? numberText
    }

    /// An element of an array.
    package subscript(index: Int) -> JSONNode? {
        var left = index
        var found: JSONNode?
        guard index >= 0 else { return nil }
        forEachElement { element in
            if left == 0 { found = element }
            left -= 1
            return left >= 0
        }
        return found
    }

    /// Goes over the elements of an array until `body` says that it has seen enough.
    package func forEachElement(_ body: (JSONNode) -> Bool) {
        text.withBytes { bytes in place.forEachElement(in: bytes) { body(JSONNode(text, $0)) } }
    }

    /// The elements of an array; empty for anything else.
    package var elements: [JSONNode] {
        var elements: [JSONNode] = []
        forEachElement {
            elements.append($0)
            return true
        }
        return elements
    }

    package var dictionary: [ExactText: JSONNode] { members(ExactText.init) { $0 } }

    /// The members of an object, the last of duplicate keys; empty for anything else.
    package func members<Key: Hashable, Value>(
        _ makeKey: (String) -> Key, _ make: (JSONNode) -> Value
    ) -> [Key: Value] {
        var members: [Key: Value] = [:]
        text.withBytes { bytes in
            place.forEachMember(in: bytes) { key, value in
                members[makeKey(JSONString.decode(key, in: bytes))] = make(JSONNode(text, value))
                return true
            }
        }
        return members
    }

    /// A member of an object, the last of duplicate keys.
    package subscript(name: String) -> JSONNode? {
        text.withBytes { place.member(name, in: $0) }.map { JSONNode(text, $0) }
    }
}
