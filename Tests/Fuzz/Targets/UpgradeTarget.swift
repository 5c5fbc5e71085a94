import BirdRealtimeCore

/// Bytes that answer the upgrade, whole and byte by byte.
enum UpgradeTarget {
    /// With this key, from RFC 6455 section 1.3, inputs can hold the right answer.
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    private static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    private static let messageBytesMax = 512

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var response = UpgradeResponse(key: key)
        let whole = withCopy(input) { response.parse(UnsafeRawBufferPointer($0)) }
        try check(whole, input)
        try require(whole == inPieces(input), "\(whole) in one piece, \(inPieces(input)) in many")
    }

    private static func inPieces(_ input: UnsafeRawBufferPointer) -> UpgradeResponse.Step {
        var response = UpgradeResponse(key: key)
        var step = UpgradeResponse.Step.incomplete
        // Each length that decides something: all of a short answer, those around the limit of a long one.
        let limit = UpgradeResponse.headerBytesMax
        for count in 0...input.count
        where count < 512 || abs(count - limit) < 8 || count % 97 == 0 || count == input.count {
            step = withCopy(input.prefix(count)) { response.parse(UnsafeRawBufferPointer($0)) }
            guard step == .incomplete else { break }
        }
        return step
    }

    private static func check(_ step: UpgradeResponse.Step, _ input: UnsafeRawBufferPointer) throws {
        switch step {
        case .incomplete:
            try require(input.count < UpgradeResponse.headerBytesMax, "waits for more than the limit")
        case .accepted(let consumed):
            let block = Array(input.prefix(consumed))
            let text = String(decoding: block, as: UTF8.self)
            try require(
                consumed <= min(input.count, UpgradeResponse.headerBytesMax)
                    && block.suffix(4).elementsEqual("\r\n\r\n".utf8),
                "takes \(consumed) bytes")
            try require(text.hasPrefix("HTTP/1.") && text.utf8.dropFirst(8).starts(with: " 101".utf8), "takes no 101")
            try require(text.contains(accept), "takes an answer to another key")
        case .refused(let fault):
            try require(
                fault.message.utf8.count <= messageBytesMax
                    && fault.message.utf8.allSatisfy { (0x20..<0x7F).contains($0) },
                "says \(fault.message.debugDescription)")
            try require((0...999).contains(fault.httpStatus), "tells status \(fault.httpStatus)")
        }
    }
}
