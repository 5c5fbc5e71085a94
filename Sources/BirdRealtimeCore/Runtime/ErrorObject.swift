import Glibc

/// What a `bird_error *` points to. Its C strings live as long as it does.
/// `@unchecked Sendable`: immutable after init.
package final class ErrorObject: @unchecked Sendable {
    package let fault: Fault
    package let field: UnsafePointer<CChar>
    package let message: UnsafePointer<CChar>
    package let endpoint: UnsafePointer<CChar>
    package let channel: UnsafePointer<CChar>
    private let strings: UnsafeMutablePointer<CChar>

    package init(_ fault: Fault) {
        self.fault = fault
        let texts = [fault.field, fault.message, fault.endpoint, fault.channel].map { Array($0.utf8) }
        strings = .allocate(capacity: texts.reduce(texts.count) { $0 + $1.count })
        var starts: [UnsafePointer<CChar>] = []
        var next = strings
        for text in texts {
            starts.append(UnsafePointer(next))
            for byte in text {
                next.initialize(to: CChar(bitPattern: byte == 0 ? 0x20 : byte))
                next += 1
            }
            next.initialize(to: 0)
            next += 1
        }
        field = starts[0]
        message = starts[1]
        endpoint = starts[2]
        channel = starts[3]
    }

    deinit { strings.deallocate() }

    /// Borrowed: valid as long as this object.
    package var pointer: OpaquePointer { OpaquePointer(Unmanaged.passUnretained(self).toOpaque()) }

    package static func at(_ pointer: OpaquePointer) -> ErrorObject {
        Unmanaged<ErrorObject>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue()
    }
}
