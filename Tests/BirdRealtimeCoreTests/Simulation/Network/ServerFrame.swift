@testable import BirdRealtimeCore

/// The bytes of an edge's frames, those that no edge may send among them (RFC 6455 section 5).
enum ServerFrame {
    static func text(_ text: String) -> [UInt8] { frame(.text, Array(text.utf8)) }

    static func frame(_ opcode: Opcode, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        frame(first: (isFinal ? 0x80 : 0) | opcode.rawValue, payload)
    }

    static func close(_ code: UInt16, _ reason: String) -> [UInt8] {
        frame(.close, [UInt8(code >> 8), UInt8(code & 0xFF)] + Array(reason.utf8))
    }

    /// The same message in pieces, a ping between two of them.
    static func fragments(_ text: String, _ random: inout SplitMix64) -> [UInt8] {
        let payload = Array(text.utf8)
        let cuts = (0..<3).map { _ in Int.random(in: 0...payload.count, using: &random) }.sorted()
        return frame(.text, Array(payload[..<cuts[0]]), isFinal: false)
            + frame(.continuation, Array(payload[cuts[0]..<cuts[1]]), isFinal: false)
            + frame(.ping, [7])
            + frame(.continuation, Array(payload[cuts[1]..<cuts[2]]), isFinal: false)
            + frame(.continuation, Array(payload[cuts[2]...]))
    }

    private static func frame(first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        switch payload.count {
        case ..<126: [first, UInt8(payload.count)] + payload
        case ...0xFFFF: [first, 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)] + payload
        default: [first, 127] + (0..<8).map { UInt8(payload.count >> (56 - 8 * $0) & 0xFF) } + payload
        }
    }

    /// The header of a message of this size, whose payload never comes.
    static func header(payloadBytes: UInt64) -> [UInt8] {
        [0x81, 127] + (0..<8).map { UInt8(payloadBytes >> (56 - 8 * UInt64($0)) & 0xFF) }
    }

    /// Text that is not UTF-8.
    static let notUTF8: [[UInt8]] = [
        frame(.text, Array(#"{"event":""#.utf8) + [0xFF] + Array("\"}".utf8)),
        frame(.text, [0xC0, 0x80]),
        frame(.text, [0xED, 0xA0, 0x80]),
        frame(.text, [0xF4, 0x90, 0x80, 0x80]),
        frame(.text, [0xE2, 0x82], isFinal: false) + frame(.continuation, [0x28]),
        frame(.text, Array(#"{"event":"tick","data":""#.utf8) + [0xE2, 0x82]),
    ]

    /// Frames that break the rules of the protocol.
    static let broken: [[UInt8]] = [
        [0x81, 0x82, 1, 2, 3, 4, 0x7B, 0x7D],  // masked
        frame(first: 0xC1, Array("{}".utf8)),  // a reserved bit
        frame(first: 0x83, []),  // opcodes that nobody knows
        frame(first: 0x8B, []),
        frame(.ping, [], isFinal: false),
        frame(first: 0x89, [UInt8](repeating: 0, count: 126)),
        [0x81, 126, 0, 2, 0x7B, 0x7D],  // a length in more bytes than needed
        frame(.continuation, []),  // of nothing
        frame(.text, [], isFinal: false) + frame(.text, []),
        frame(.close, [3]),  // half a code
        frame(.close, [0x03, 0xE8, 0xFF]),  // a reason that is not UTF-8
        header(payloadBytes: 1 << 63),
    ]
}
