import BirdRealtimeCore
public import Foundation

/// A JSON value: what events carry, and what client events send. It keeps the text it came as and takes it apart when asked,
/// so that an untouched payload costs nothing and no number is ever rounded.
///
///     let left = data["left"]?.int
///     try room.trigger("client-typing", data: ["on": true])
public struct JSONValue: Sendable {
    /// Room that saves most arrays from being moved while they grow.
    private static let elementsUsual = 8

    private let source: JSONText
    /// nil: the whole text.
    private let place: JSONPlace?

    private init(_ node: JSONNode) {
        source = node.text
        place = node.place
    }

    private init(_ source: JSONText) {
        self.source = source
        place = nil
    }

    /// Bytes that are one JSON value.
    init(json: [UInt8]) {
        self.init(json.withUnsafeBytes { JSONText(json: $0) })
    }

    /// The same.
    init(json: UnsafeRawBufferPointer) {
        self.init(JSONText(json: json))
    }

    /// The payload of an event: JSON, or else the text of a string.
    init(payload: UnsafeRawBufferPointer) {
        self.init(JSONText(payload: payload))
    }

    /// nil only for a value that is nested too deep to be sent, and for a payload that is no text at all.
    private var node: JSONNode? {
        place.map { JSONNode(source, $0) } ?? source.root
    }

    /// The value as JSON.
    var bytes: [UInt8] { withBytes { Array($0) } }

    private func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        if place == nil, !source.isPayload { return source.withBytes(body) }
        return node?.withRaw(body) ?? body(UnsafeRawBufferPointer(start: nil, count: 0))
    }

    // MARK: Making one

    /// One JSON value as text (RFC 8259); nil if it is none, or is nested more than 512 deep.
    public init?(json text: String) {
        guard let node = JSONDocument.parse(Array(text.utf8)) else { return nil }
        self.init(node)
    }

    public static let null = JSONValue(json: Array("null".utf8))

    public init(_ value: Bool) {
        self.init(json: Array((value ? "true" : "false").utf8))
    }

    public init(_ value: some FixedWidthInteger) {
        self.init(json: Array(String(value).utf8))
    }

    /// JSON has no infinity and no NaN: they become null.
    public init(_ value: Double) {
        self.init(json: Array((value.isFinite ? "\(value)" : "null").utf8))
    }

    public init(_ value: String) {
        var text: [UInt8] = []
        JSONString.appendQuoted(value, to: &text)
        self.init(json: text)
    }

    public init(_ elements: [JSONValue]) {
        self.init(json: Array("[".utf8) + elements.map(\.bytes).joined(separator: ",".utf8) + Array("]".utf8))
    }

    public init(_ members: [String: JSONValue]) {
        self.init(members: members.map { ($0.key, $0.value) })
    }

    /// What a value of the program's own is encoded as.
    ///
    /// - Throws: `EncodingError`, as the encoder does.
    public init(encoding value: some Encodable, using encoder: JSONEncoder = JSONEncoder()) throws {
        self.init(json: try Array(encoder.encode(value)))
    }

    init(members: [(name: String, value: JSONValue)]) {
        var writer = ObjectWriter()
        for (name, value) in members { writer.member(name, json: value.bytes) }
        self.init(json: writer.finish())
    }

    // MARK: Taking it apart

    /// The value as JSON text, exactly as it was received.
    public var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }

    /// A value of the program's own, decoded from exactly the bytes that were received: a `Decimal` gets every digit that it
    /// can hold.
    ///
    /// - Throws: `DecodingError`, as the decoder does.
    public func decode<Value: Decodable>(
        as type: Value.Type = Value.self, using decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value {
        try decoder.decode(type, from: withBytes { Data($0) })
    }

    public var isNull: Bool { node?.isNull ?? true }

    /// nil unless true or false.
    public var bool: Bool? { node?.bool }

    /// nil unless a string.
    public var string: String? { node?.string }

    /// The digits of a number as they were sent, for decimals and integers of any size; nil unless a number.
    public var number: String? { node?.numberText }

    /// nil unless a number that is written as an integer and fits.
    public var int: Int? { number.flatMap { Int($0) } }

    /// The nearest Double; nil unless a number that a finite Double can be near to.
    public var double: Double? { number.flatMap { Double($0) }.flatMap { $0.isFinite ? $0 : nil } }

    /// The elements; nil unless an array.
    public var array: [JSONValue]? {
        guard let node, node.kind == .array else { return nil }
        var elements: [JSONValue] = []
        elements.reserveCapacity(Self.elementsUsual)
        node.forEachElement {
            elements.append(JSONValue($0))
            return true
        }
        return elements
    }

    /// The members, the last of those with the same name; nil unless an object.
    public var object: [String: JSONValue]? {
        guard let node, node.kind == .object else { return nil }
        return node.members({ $0 }, { JSONValue($0) })
    }

    /// A member of an object; nil if there is none, or if this is no object. Each call searches the text: take `object`
    /// to look up many.
    public subscript(name: String) -> JSONValue? { node?[name].map { JSONValue($0) } }

    /// An element of an array; nil if there is none, or if this is no array. Take `array` to visit them all.
    public subscript(index: Int) -> JSONValue? { node?[index].map { JSONValue($0) } }
}

/// Prints a string as it is and everything else as JSON.
extension JSONValue: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { string ?? text }
    public var debugDescription: String { text }
}

/// Values are equal if they mean the same, whatever the order of members and the whitespace; numbers if they are written alike
/// (1 and 1.0 differ).
extension JSONValue: Hashable {
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        guard let leftNode = left.node, let rightNode = right.node else { return left.bytes == right.bytes }
        guard leftNode.kind == rightNode.kind else { return false }
        return switch leftNode.kind {
        case .null: true
        case .bool: leftNode.bool == rightNode.bool
        case .number: leftNode.numberText == rightNode.numberText
        case .string: leftNode.string == rightNode.string
        case .array: left.array == right.array
        case .object: left.object == right.object
        }
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(bool)
        hasher.combine(number)
        hasher.combine(string)
    }
}

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    public init(nilLiteral: ()) { self = .null }
    public init(booleanLiteral value: Bool) { self.init(value) }
    public init(integerLiteral value: Int) { self.init(value) }
    public init(floatLiteral value: Double) { self.init(value) }
    public init(stringLiteral value: String) { self.init(value) }
    public init(arrayLiteral elements: JSONValue...) { self.init(elements) }
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self.init(members: members.map { (name: $0.0, value: $0.1) })
    }
}
