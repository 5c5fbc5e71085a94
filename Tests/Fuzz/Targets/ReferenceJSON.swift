/// A plain reading of RFC 8259, for comparison: one byte after another, into a tree.
package indirect enum ReferenceJSON: Equatable {
    case null
    case bool(Bool)
    case number(String)
    case string([UInt8])
    case array([ReferenceJSON])
    /// In the order of the text, duplicates included.
    case object([(name: [UInt8], value: ReferenceJSON)])

    package static let depthMax = 512

    /// nil: not one value, in valid UTF-8 and not too deep.
    package init?(_ bytes: [UInt8]) {
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        var parser = Parser(rest: bytes[...])
        guard let value = parser.value(depth: 0) else { return nil }
        parser.space()
        guard parser.rest.isEmpty else { return nil }
        self = value
    }

    package static func == (left: ReferenceJSON, right: ReferenceJSON) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): left == right
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)):
            left.elementsEqual(right) { $0.name == $1.name && $0.value == $1.value }
        default: false
        }
    }

    private struct Parser {
        var rest: ArraySlice<UInt8>

        mutating func space() { rest = rest.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) } }

        mutating func take(_ text: String) -> Bool {
            guard rest.starts(with: text.utf8) else { return false }
            rest = rest.dropFirst(text.utf8.count)
            return true
        }

        mutating func value(depth: Int) -> ReferenceJSON? {
            space()
            if take("null") { return .null }
            if take("true") { return .bool(true) }
            if take("false") { return .bool(false) }
            if take("\"") { return string().map { .string($0) } }
            if take("[") { return depth < depthMax ? array(depth: depth + 1) : nil }
            if take("{") { return depth < depthMax ? object(depth: depth + 1) : nil }
            return number()
        }

        mutating func array(depth: Int) -> ReferenceJSON? {
            var elements: [ReferenceJSON] = []
            space()
            if take("]") { return .array([]) }
            repeat {
                guard let element = value(depth: depth) else { return nil }
                elements.append(element)
                space()
            } while take(",")
            return take("]") ? .array(elements) : nil
        }

        mutating func object(depth: Int) -> ReferenceJSON? {
            var members: [(name: [UInt8], value: ReferenceJSON)] = []
            space()
            if take("}") { return .object([]) }
            repeat {
                space()
                guard take("\""), let name = string() else { return nil }
                space()
                guard take(":"), let value = value(depth: depth) else { return nil }
                members.append((name, value))
                space()
            } while take(",")
            return take("}") ? .object(members) : nil
        }

        mutating func number() -> ReferenceJSON? {
            let start = rest
            _ = take("-")
            if !take("0") { guard digits() else { return nil } }
            if take(".") { guard digits() else { return nil } }
            if take("e") || take("E") {
                if !take("+") { _ = take("-") }
                guard digits() else { return nil }
            }
            return .number(String(decoding: start[..<rest.startIndex], as: UTF8.self))
        }

        mutating func digits() -> Bool {
            let start = rest.startIndex
            rest = rest.drop { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            return rest.startIndex > start
        }

        /// Behind the opening quote.
        mutating func string() -> [UInt8]? {
            var text: [UInt8] = []
            while let byte = rest.popFirst() {
                switch byte {
                case UInt8(ascii: "\""): return text
                case 0..<0x20: return nil
                case UInt8(ascii: "\\"):
                    guard let scalar = escape() else { return nil }
                    text += Array(String(scalar).utf8)
                default: text.append(byte)
                }
            }
            return nil
        }

        mutating func escape() -> Unicode.Scalar? {
            let plain: [UInt8: Unicode.Scalar] = [
                0x22: "\"", 0x5C: "\\", 0x2F: "/", 0x62: "\u{8}", 0x66: "\u{C}", 0x6E: "\n", 0x72: "\r", 0x74: "\t",
            ]
            guard let byte = rest.popFirst() else { return nil }
            guard byte == UInt8(ascii: "u") else { return plain[byte] }
            guard let high = unit() else { return nil }
            guard high & 0xFC00 == 0xD800 else { return Unicode.Scalar(high) }
            guard take("\\u"), let low = unit(), low & 0xFC00 == 0xDC00 else { return nil }
            return Unicode.Scalar(0x10000 + (high & 0x3FF) << 10 + (low & 0x3FF))
        }

        mutating func unit() -> UInt32? {
            let digits = rest.prefix(4)
            rest = rest.dropFirst(4)
            guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
            return UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
        }
    }
}
