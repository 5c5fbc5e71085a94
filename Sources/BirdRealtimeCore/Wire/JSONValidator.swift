/// Whether bytes are JSON.
package enum JSONValidator {
    /// Exactly one value by RFC 8259, whitespace around it included, in valid UTF-8, at most 512 containers deep.
    package static func isValue(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard var reader = JSONReader(bytes), reader.skipValue(depth: 0) else { return false }
        reader.skipWhitespace()
        guard reader.isAtEnd else { return false }
        return !reader.sawNonASCII || UTF8Validator.isValid(bytes)
    }
}
