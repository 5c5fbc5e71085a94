import BirdRealtimeCore

/// Bytes that may be JSON, by every reader there is. Several documents are separated by NUL, which no document has.
enum JSONTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        let documents = input.split(separator: 0, omittingEmptySubsequences: false).map(Array.init)
        for bytes in documents {
            try checkUTF8(bytes)
            try checkDocument(bytes)
            try checkMessage(bytes)
            try checkQuoting(bytes)
        }
        for (first, second) in zip(documents, documents.dropFirst()) { try checkTemplate(first, second) }
    }

    // MARK: - UTF-8

    private static func checkUTF8(_ bytes: [UInt8]) throws {
        let isValid = String(validating: bytes, as: UTF8.self) != nil
        try require(
            withCopy(bytes) { UTF8Validator.isValid(UnsafeRawBufferPointer($0)) } == isValid, "UTF-8 is \(isValid)")
        for piece in [1, 3, 17] {
            var validator = UTF8Validator()
            var rest = bytes[...]
            var isRefused = false
            while !rest.isEmpty, !isRefused {
                isRefused = !withCopy(rest.prefix(piece)) { validator.append(UnsafeRawBufferPointer($0)) }
                rest = rest.dropFirst(piece)
            }
            try require((!isRefused && validator.isComplete) == isValid, "UTF-8 in pieces is not \(isValid)")
        }
    }

    // MARK: - Documents

    private static func checkDocument(_ bytes: [UInt8]) throws {
        let reference = ReferenceJSON(bytes)
        let isValue = withCopy(bytes) { JSONValidator.isValue(UnsafeRawBufferPointer($0)) }
        try require(isValue == (reference != nil), "is \(isValue ? "" : "not ")a value")
        let root = JSONDocument.parse(bytes)
        try require((root != nil) == isValue, "the document is \(root == nil ? "" : "not ")refused")
        if let root, let reference { try compare(root, reference) }

        // A payload is the text of a string if it is no value.
        let payload = bytes.withUnsafeBytes { JSONText(payload: $0) }.root
        if let reference {
            try payload.map { try compare($0, reference) } ?? require(false, "the payload is nothing")
        } else if String(validating: bytes, as: UTF8.self) != nil {
            try payload.map { try compare($0, .string(bytes)) } ?? require(false, "the payload is no text")
        } else {
            try require(payload == nil, "the payload is something")
        }
    }

    private static func compare(_ node: JSONNode, _ reference: ReferenceJSON) throws {
        switch reference {
        case .null: try require(node.isNull, "no null")
        case .bool(let bool): try require(node.bool == bool, "not \(bool)")
        case .number(let digits): try require(node.numberText == digits, "not \(digits)")
        case .string(let text): try require(node.string.map { Array($0.utf8) } == text, "another string")
        case .array(let elements):
            let nodes = node.elements
            try require(node.kind == .array && nodes.count == elements.count, "no array of \(elements.count)")
            for (node, element) in zip(nodes, elements) { try compare(node, element) }
            try require(node[elements.count] == nil && node[-1] == nil, "elements beyond the end")
        case .object(let members):
            var last: [[UInt8]: ReferenceJSON] = [:]
            for member in members { last[member.name] = member.value }
            let dictionary = node.dictionary
            try require(node.kind == .object && dictionary.count == last.count, "other members")
            for (name, value) in last {
                let name = String(decoding: name, as: UTF8.self)
                guard let member = node[name], let entry = dictionary[ExactText(name)] else {
                    throw Difference(description: "a member is missing")
                }
                try compare(member, value)
                try compare(entry, value)
            }
        }
        guard case .array = reference else {
            try require(node[0] == nil, "elements of what is no array")
            // What a part says as text means the same.
            try require(ReferenceJSON(node.raw) == reference, "means another thing as text")
            return
        }
    }

    // MARK: - Messages

    private static func scan(_ bytes: [UInt8], isValidUTF8: Bool = false) throws -> ScanOutcome {
        try withCopy(bytes) { copy in
            let outcome = MessageScanner.scan(UnsafeRawBufferPointer(copy), isValidUTF8: isValidUTF8)
            try require(copy.elementsEqual(bytes), "the scanner changes its bytes")
            return outcome
        }
    }

    private static func checkMessage(_ bytes: [UInt8]) throws {
        let outcome = try scan(bytes)
        guard String(validating: bytes, as: UTF8.self) != nil else {
            return try require(outcome == .invalidUTF8, "\(outcome) though it is not UTF-8")
        }
        try require(try scan(bytes, isValidUTF8: true) == outcome, "not \(outcome) when told that it is UTF-8")
        var parts: [[UInt8]: ReferenceJSON] = [:]
        if case .object(let members) = ReferenceJSON(bytes) {
            for member in members { parts[member.name] = member.value }
        }
        guard case .string(let event) = parts[Array("event".utf8)] else {
            return try require(outcome == .malformed, "a message without an event")
        }
        guard case .message(let message) = outcome else { throw Difference(description: "\(outcome), and no message") }
        try require(try unescaped(message.event, bytes) == event, "another event")
        if case .string(let channel) = parts[Array("channel".utf8)] {
            try require(try message.channel.map { try unescaped($0, bytes) } == channel, "another channel")
        } else {
            try require(message.channel == nil, "a channel out of nothing")
        }
        switch parts[Array("data".utf8)] {
        case nil: try require(message.dataKind == .none, "data out of nothing")
        case .string(let text):
            try require(message.dataKind == .string, "the data is no string")
            try require(try unescaped(message.data, bytes) == text, "another string as data")
        case let value?:
            try require(message.dataKind == .value, "the data is a string")
            try require(ReferenceJSON(try part(message.data, bytes)) == value, "another value as data")
        }
    }

    private static func part(_ span: Span, _ bytes: [UInt8]) throws -> [UInt8] {
        try require(
            span.offset >= 0 && span.length >= 0 && span.offset + span.length <= bytes.count, "\(span) is outside")
        return Array(bytes[span.offset..<(span.offset + span.length)])
    }

    /// The text of a string by all the ways there are.
    private static func unescaped(_ span: Span, _ bytes: [UInt8]) throws -> [UInt8] {
        let raw = try part(span, bytes)
        try require(span.isEscaped || !raw.contains(UInt8(ascii: "\\")), "an escape is not seen")
        let plainEnd = span.plainOffset + span.plainLength
        try require(
            span.plainOffset >= span.offset && span.plainLength >= 0 && plainEnd <= span.offset + span.length
                && !bytes[span.plainOffset..<plainEnd].contains(UInt8(ascii: "\\")),
            "\(span) is not plain where it says")
        let apart = withCopy(raw) { source in
            withCopy(raw) { destination -> [UInt8] in
                guard let base = destination.bindMemory(to: UInt8.self).baseAddress else { return [] }
                return Array(destination.prefix(JSONString.unescape(UnsafeRawBufferPointer(source), into: base)))
            }
        }
        let inPlace = withCopy(raw) { copy -> [UInt8] in
            guard let base = copy.bindMemory(to: UInt8.self).baseAddress else { return [] }
            return Array(copy.prefix(JSONString.unescape(UnsafeRawBufferPointer(copy), into: base)))
        }
        let around = withCopy(bytes) { message -> [UInt8] in
            withCopy(raw) { destination in
                guard let base = destination.bindMemory(to: UInt8.self).baseAddress, let start = message.baseAddress
                else { return [] }
                return Array(destination.prefix(JSONString.unescape(span, in: UnsafeRawPointer(start), into: base)))
            }
        }
        let aroundInPlace = withCopy(bytes) { message -> [UInt8] in
            guard let start = message.baseAddress else { return [] }
            let text = JSONString.unescapeInPlace(span, in: start)
            return Array(message[text.offset..<(text.offset + text.length)])
        }
        let decoded = withCopy(bytes) { JSONString.decode(span, in: UnsafeRawBufferPointer($0)) }
        try require(apart == inPlace, "in place another text")
        try require(apart == around, "around the plain stretch another text")
        try require(apart == aroundInPlace, "around the plain stretch in place another text")
        try require(apart == Array(decoded.utf8), "as a string another text")
        return apart
    }

    /// What is learnt of one message gives of the next what the scanner gives.
    private static func checkTemplate(_ first: [UInt8], _ second: [UInt8]) throws {
        guard case .message(let scanned) = try scan(first) else { return }
        var template = MessageTemplate()
        first.withUnsafeBytes { template.learn($0, scanned) }
        // Whoever knows the beginning has been told that it is UTF-8.
        guard let message = withCopy(second, { template.match(UnsafeRawBufferPointer($0)) }) else { return }
        try require(try scan(second) == .message(message), "the template gives \(message)")
    }

    // MARK: - Writing

    private static func checkQuoting(_ bytes: [UInt8]) throws {
        guard String(validating: bytes, as: UTF8.self) != nil else { return }
        var quoted: [UInt8] = []
        withCopy(bytes) { JSONString.appendQuoted(UnsafeRawBufferPointer($0), to: &quoted) }
        try require(ReferenceJSON(quoted) == .string(bytes), "quoted, it says another thing")
    }
}
