import Foundation

/// As a part of types of the program's own: members and elements whose types are not known. Coders have no way to hand digits on, so
/// that a number goes through the first that can hold it of `Int64`, `UInt64`, `Decimal` and `Double`.
extension JSONValue: Codable {
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    public init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: Name.self) {
            self.init(
                members: try container.allKeys.map {
                    ($0.stringValue, try container.decode(JSONValue.self, forKey: $0))
                })
        } else if var container = try? decoder.unkeyedContainer() {
            var elements: [JSONValue] = []
            while !container.isAtEnd { elements.append(try container.decode(JSONValue.self)) }
            self.init(elements)
        } else {
            self = try Self.single(try decoder.singleValueContainer())
        }
    }

    private static func single(_ container: any SingleValueDecodingContainer) throws -> JSONValue {
        if container.decodeNil() { return .null }
        if let value = try? container.decode(Bool.self) { return JSONValue(value) }
        if let value = try? container.decode(String.self) { return JSONValue(value) }
        if let value = try? container.decode(Int64.self) { return JSONValue(value) }
        if let value = try? container.decode(UInt64.self) { return JSONValue(value) }
        if let value = try? container.decode(Decimal.self) { return JSONValue(json: Array(value.description.utf8)) }
        return JSONValue(try container.decode(Double.self))
    }

    public func encode(to encoder: any Encoder) throws {
        if let members = object {
            var container = encoder.container(keyedBy: Name.self)
            for (name, value) in members { try container.encode(value, forKey: Name(stringValue: name)) }
        } else if let elements = array {
            var container = encoder.unkeyedContainer()
            for element in elements { try container.encode(element) }
        } else {
            var container = encoder.singleValueContainer()
            try encode(to: &container)
        }
    }

    private func encode(to container: inout any SingleValueEncodingContainer) throws {
        if let bool { return try container.encode(bool) }
        if let string { return try container.encode(string) }
        guard let number else { return try container.encodeNil() }
        if let value = Int64(number) { return try container.encode(value) }
        if let value = UInt64(number) { return try container.encode(value) }
        if let value = Decimal(string: number) { return try container.encode(value) }
        guard let double else {
            throw EncodingError.invalidValue(
                self, .init(codingPath: container.codingPath, debugDescription: "\(number) is too large for a Double."))
        }
        try container.encode(double)
    }
}
