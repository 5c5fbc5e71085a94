// Says of each document on standard input (four bytes of length, big endian, and the document) in one line how the library reads it, and
// whether Foundation reads it alike. Driven by Tests/integration/conformance.py.
import BirdRealtimeCore
import Foundation

/// A value in one spelling: members in the order of their names' bytes, numbers as they stand in the document.
func rendering(_ node: JSONNode) -> [UInt8] {
    var text: [UInt8] = []
    switch node.kind {
    case .null: text = Array("null".utf8)
    case .bool: text = Array(node.bool == true ? "true".utf8 : "false".utf8)
    case .number: text = Array((node.numberText ?? "").utf8)
    case .string: JSONString.appendQuoted(node.string ?? "", to: &text)
    case .array: text = Array("[".utf8) + node.elements.map(rendering).joined(separator: ",".utf8) + Array("]".utf8)
    case .object:
        let members = node.dictionary.sorted { $0.key.text.utf8.lexicographicallyPrecedes($1.key.text.utf8) }
        let parts = members.map { name, value in
            var part: [UInt8] = []
            JSONString.appendQuoted(name.text, to: &part)
            return part + ":".utf8 + rendering(value)
        }
        text = Array("{".utf8) + parts.joined(separator: ",".utf8) + Array("}".utf8)
    }
    return text
}

/// Foundation makes numbers of numbers: as far as those go they are compared.
func isSame(_ node: JSONNode, _ value: Any) -> Bool {
    switch node.kind {
    case .null: return value is NSNull
    case .bool: return value as? Bool == node.bool
    case .number:
        guard let number = value as? NSNumber, let double = node.numberText.flatMap(Double.init) else { return false }
        // Foundation rounds long numbers twice.
        return abs(number.doubleValue - double) <= abs(double) * 1e-12
    case .string: return (value as? String).map { Array($0.utf8) } == node.string.map { Array($0.utf8) }
    case .array:
        guard let elements = value as? [Any], elements.count == node.elements.count else { return false }
        return zip(node.elements, elements).allSatisfy(isSame)
    case .object:
        guard let members = value as? [String: Any], members.count == node.dictionary.count else { return false }
        return node.dictionary.allSatisfy { name, value in members[name.text].map { isSame(value, $0) } ?? false }
    }
}

func foundation(_ document: [UInt8], _ node: JSONNode?) -> String {
    guard let value = try? JSONSerialization.jsonObject(with: Data(document), options: .fragmentsAllowed) else {
        return "refused"
    }
    guard let node else { return "accepted" }
    return isSame(node, value) ? "same" : "other"
}

var input = FileHandle.standardInput.readDataToEndOfFile()[...]
var output = Data()
while !input.isEmpty {
    let count = input.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    let document = Array(input.dropFirst(4).prefix(count))
    input = input.dropFirst(4 + count)
    let isValue = document.withUnsafeBytes { JSONValidator.isValue($0) }
    let isUTF8 = document.withUnsafeBytes { UTF8Validator.isValid($0) }
    let node = JSONDocument.parse(document)
    let value = node.map { rendering($0) } ?? Array("-".utf8)
    output += Data("\(isUTF8 ? 1 : 0)\t\(isValue ? 1 : 0)\t\(foundation(document, node))\t".utf8) + value + [0x0A]
}
FileHandle.standardOutput.write(output)
