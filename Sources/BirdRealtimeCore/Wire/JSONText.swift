import Glibc
import Synchronization

/// The bytes of one JSON value, or of what is one unless it turns out to be none, in one block of memory. They are taken apart when
/// somebody looks at them.
///
/// `@unchecked Sendable`: the bytes never change, and what is found out about them, by whichever thread, is always the same.
package struct JSONText: @unchecked Sendable {
    private struct Header {
        let count: Int
        let isPayload: Bool
    }

    private enum Form: UInt8, AtomicRepresentable {
        case unknown
        /// Not one JSON value in valid UTF-8, or more than 512 containers deep.
        case nothing
        /// A payload that is the text of a string.
        case bare
        case object
        case array
        case string
        case escapedString
        case number
        case bool
        case null
    }

    /// The elements are an atomic `Form`, and behind it the bytes.
    private let block: ManagedBuffer<Header, UInt8>
    private static let formBytes = MemoryLayout<Int>.stride

    /// Bytes that are JSON, or are refused.
    package init(json bytes: UnsafeRawBufferPointer) { self.init(bytes, isPayload: false) }

    /// The payload of an event. One that is not JSON is the text of a string.
    package init(payload bytes: UnsafeRawBufferPointer) { self.init(bytes, isPayload: true) }

    private init(_ bytes: UnsafeRawBufferPointer, isPayload: Bool) {
        block = ManagedBuffer.create(minimumCapacity: Self.formBytes + bytes.count) { _ in
            Header(count: bytes.count, isPayload: isPayload)
        }
        memory.bindMemory(to: Atomic<Form>.self, capacity: 1).initialize(to: Atomic(.unknown))
        if let source = bytes.baseAddress { memcpy(memory + Self.formBytes, source, bytes.count) }
    }

    private var memory: UnsafeMutableRawPointer {
        block.withUnsafeMutablePointerToElements { UnsafeMutableRawPointer($0) }
    }

    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        defer { withExtendedLifetime(block) {} }
        return body(UnsafeRawBufferPointer(start: memory + Self.formBytes, count: block.header.count))
    }

    /// A payload has to be looked at to say what its JSON is.
    package var isPayload: Bool { block.header.isPayload }

    /// nil: no JSON value.
    package var root: JSONNode? { place.map { JSONNode(self, $0) } }

    /// Where the one value is.
    private var place: JSONPlace? {
        withBytes { bytes in
            let form = form(bytes)
            let kind: JSONNode.Kind
            switch form {
            case .unknown, .nothing: return nil
            case .bare: return JSONPlace(kind: .string, span: Span(offset: 0, length: bytes.count, isEscaped: false))
            case .object: kind = .object
            case .array: kind = .array
            case .string, .escapedString: kind = .string
            case .number: kind = .number
            case .bool: kind = .bool
            case .null: kind = .null
            }
            let quote = kind == .string ? 1 : 0
            let start = (bytes.firstIndex { !JSONReader.isWhitespace($0) } ?? 0) + quote
            let end = (bytes.lastIndex { !JSONReader.isWhitespace($0) } ?? 0) + 1 - quote
            return JSONPlace(
                kind: kind, span: Span(offset: start, length: end - start, isEscaped: form == .escapedString))
        }
    }

    /// Found out once.
    private func form(_ bytes: UnsafeRawBufferPointer) -> Form {
        defer { withExtendedLifetime(block) {} }
        let known = memory.assumingMemoryBound(to: Atomic<Form>.self)
        var form = known.pointee.load(ordering: .relaxed)
        if form == .unknown {
            form = Self.json(bytes) ?? (isPayload && UTF8Validator.isValid(bytes) ? .bare : .nothing)
            known.pointee.store(form, ordering: .relaxed)
        }
        return form
    }

    private static func json(_ bytes: UnsafeRawBufferPointer) -> Form? {
        guard var reader = JSONReader(bytes), let place = JSONPlace.next(&reader) else { return nil }
        reader.skipWhitespace()
        guard reader.isAtEnd, !reader.sawNonASCII || UTF8Validator.isValid(bytes) else { return nil }
        return switch place.kind {
        case .object: .object
        case .array: .array
        case .string: place.span.isEscaped ? .escapedString : .string
        case .number: .number
        case .bool: .bool
        case .null: .null
        }
    }
}
