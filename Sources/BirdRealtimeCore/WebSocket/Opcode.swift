/// Kinds of frames (RFC 6455 section 5.2).
package enum Opcode: UInt8, Sendable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    var isControl: Bool { rawValue >= 0x8 }
}

/// Close codes (RFC 6455 section 7.4) that this end sends or makes.
package enum CloseCode {
    package static let normal: UInt16 = 1000
    package static let protocolError: UInt16 = 1002
    /// Never on the wire: a close frame came without a code.
    package static let noStatus: UInt16 = 1005
    package static let invalidPayload: UInt16 = 1007
    package static let tooBig: UInt16 = 1009

    /// May stand in a close frame.
    package static func isValid(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}
