/// What fuzzers feed, and the tests replay. Each takes any bytes and checks what must hold for all of them.
package enum FuzzTarget: String, CaseIterable, Sendable {
    /// The server's answer to the upgrade.
    case upgrade
    /// The frame decoder: the same bytes whole and in pieces.
    case frames
    /// Scanner, document reader, unescaping, quoting and UTF-8, against slow and plain readers.
    case json
    /// A session behind the frame decoder, with time and the application's calls.
    case session
    /// The C interface, with a peer on the other end of its sockets.
    case exports

    /// Throws a `Difference` when something does not hold; a fault of memory or a trap ends the process.
    package func run(_ input: UnsafeRawBufferPointer) throws {
        switch self {
        case .upgrade: try UpgradeTarget.run(input)
        case .frames: try FramesTarget.run(input)
        case .json: try JSONTarget.run(input)
        case .session: try SessionTarget.run(input)
        case .exports: try ExportsTarget.run(input)
        }
    }
}

/// Something is not as it must be.
package struct Difference: Error, CustomStringConvertible {
    package let description: String
}

func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    guard !condition else { return }
    throw Difference(description: message())
}

/// Gives `body` a block of memory of just these bytes, so that an address sanitizer sees when more is touched.
func withCopy<Result>(
    _ bytes: some Collection<UInt8>, _ body: (UnsafeMutableRawBufferPointer) throws -> Result
) rethrows -> Result {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    defer { copy.deallocate() }
    copy.copyBytes(from: bytes)
    return try body(copy)
}
