import BirdRealtimeCore

/// JSON as slowly and plainly as it can be read: the other opinion in the differential tests.
struct ReferenceJSON {
    private struct Malformed: Error {}

    private enum Value {
        case string([UInt8])
        case other(raw: [UInt8])
    }

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    private init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    static func isValue(_ bytes: [UInt8]) -> Bool {
        guard String(validating: bytes, as: UTF8.self) != nil else { return false }
        var reference = ReferenceJSON(bytes)
        do {
            _ = try reference.value()
            reference.whitespace()
            return reference.position == bytes.count
        } catch {
            return false
        }
    }

    static func scan(_ bytes: [UInt8]) -> DecodedOutcome {
        guard String(validating: bytes, as: UTF8.self) != nil else { return .invalidUTF8 }
        var reference = ReferenceJSON(bytes)
        do {
            return .message(try reference.message())
        } catch {
            return .malformed
        }
    }

    private mutating func message() throws -> DecodedMessage {
        var members: [[UInt8]: Value] = [:]
        whitespace()
        try object { key, value in members[key] = value }
        whitespace()
        guard position == bytes.count, case .string(let event) = members[Array("event".utf8)] else { throw Malformed() }
        var message = DecodedMessage(event: event, channel: nil, dataKind: .none, data: [])
        if case .string(let channel) = members[Array("channel".utf8)] {
            message.channel = channel
        }
        switch members[Array("data".utf8)] {
        case .string(let text):
            message.dataKind = .string
            message.data = text
        case .other(let raw):
            message.dataKind = .value
            message.data = raw
        case nil: break
        }
        return message
    }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func expect(_ character: Unicode.Scalar) throws {
        guard current == UInt8(ascii: character) else { throw Malformed() }
        position += 1
    }

    private mutating func whitespace() {
        while let byte = current, [0x20, 0x09, 0x0A, 0x0D].contains(byte) {
            position += 1
        }
    }

    private mutating func value() throws -> Value {
        whitespace()
        let start = position
        switch current.map(Unicode.Scalar.init) {
        case "\"": return .string(try string())
        case "{": try object { _, _ in }
        case "[": try array()
        case "t": for character in "true".unicodeScalars { try expect(character) }
        case "f": for character in "false".unicodeScalars { try expect(character) }
        case "n": for character in "null".unicodeScalars { try expect(character) }
        default: try number()
        }
        return .other(raw: Array(bytes[start..<position]))
    }

    private mutating func object(_ member: ([UInt8], Value) -> Void) throws {
        try expect("{")
        depth += 1
        guard depth <= 512 else { throw Malformed() }
        whitespace()
        if current != UInt8(ascii: "}") {
            while true {
                whitespace()
                let key = try string()
                whitespace()
                try expect(":")
                member(key, try value())
                whitespace()
                guard current == UInt8(ascii: ",") else { break }
                position += 1
            }
        }
        try expect("}")
        depth -= 1
    }

    private mutating func array() throws {
        try expect("[")
        depth += 1
        guard depth <= 512 else { throw Malformed() }
        whitespace()
        if current != UInt8(ascii: "]") {
            while true {
                _ = try value()
                whitespace()
                guard current == UInt8(ascii: ",") else { break }
                position += 1
            }
        }
        try expect("]")
        depth -= 1
    }

    private mutating func number() throws {
        if current == UInt8(ascii: "-") { position += 1 }
        if current == UInt8(ascii: "0") {
            position += 1
        } else {
            try digits()
        }
        if current == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            position += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
    }

    private mutating func digits() throws {
        let start = position
        while let byte = current, (0x30...0x39).contains(byte) { position += 1 }
        guard position > start else { throw Malformed() }
    }

    private mutating func string() throws -> [UInt8] {
        try expect("\"")
        var units: [UInt16] = []
        var plain: [UInt8] = []
        func text() -> [UInt16] { Array(String(decoding: plain, as: UTF8.self).utf16) }
        while let byte = current, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw Malformed() }
            position += 1
            guard byte == UInt8(ascii: "\\") else {
                plain.append(byte)
                continue
            }
            units += text()
            plain = []
            units.append(try escape())
        }
        try expect("\"")
        units += text()
        // Escaped halves must pair with each other; text between them is never a surrogate.
        var decoder = UTF16()
        var iterator = units.makeIterator()
        var result: [UInt8] = []
        while true {
            switch decoder.decode(&iterator) {
            case .scalarValue(let scalar): result += Array(String(Character(scalar)).utf8)
            case .emptyInput: return result
            case .error: throw Malformed()
            }
        }
    }

    private mutating func escape() throws -> UInt16 {
        guard let byte = current else { throw Malformed() }
        position += 1
        switch Unicode.Scalar(byte) {
        case "\"", "\\", "/": return UInt16(byte)
        case "b": return 8
        case "f": return 12
        case "n": return 10
        case "r": return 13
        case "t": return 9
        case "u":
            guard position + 4 <= bytes.count else { throw Malformed() }
            var unit: UInt16 = 0
            for _ in 0..<4 {
                guard let digit = Character(Unicode.Scalar(bytes[position])).hexDigitValue, bytes[position] < 0x80
                else { throw Malformed() }
                unit = unit << 4 | UInt16(digit)
                position += 1
            }
            return unit
        default: throw Malformed()
        }
    }
}
