import BirdRealtimeCore
import Glibc

/// SplitMix64: the same numbers for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Gives `body` the bytes right before an unmapped page, so that reading or writing one byte too many crashes.
func withGuarded<Result>(_ bytes: [UInt8], _ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows -> Result
{
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    let used = (bytes.count + page - 1) / page * page
    guard let base = mmap(nil, used + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        base != MAP_FAILED, mprotect(base + used, page, PROT_NONE) == 0
    else { fatalError("no memory for a guarded buffer") }
    defer { munmap(base, used + page) }
    let buffer = UnsafeMutableRawBufferPointer(start: base + (used - bytes.count), count: bytes.count)
    buffer.copyBytes(from: bytes)
    return try body(buffer)
}

func text(_ bytes: [UInt8]) -> String {
    String(decoding: bytes, as: UTF8.self)
}

/// A scanned message with its parts decoded.
struct DecodedMessage: Equatable {
    var event: [UInt8]
    var channel: [UInt8]?
    var dataKind: DataKind
    var data: [UInt8]
}

enum DecodedOutcome: Equatable {
    case message(DecodedMessage)
    case malformed
    case invalidUTF8

    var message: DecodedMessage? {
        if case .message(let message) = self { message } else { nil }
    }
}

/// Scans the bytes in front of a guard page and checks that they are left alone.
func scan(_ bytes: [UInt8], isValidUTF8: Bool = false) -> DecodedOutcome {
    withGuarded(bytes) { buffer in
        let raw = UnsafeRawBufferPointer(buffer)
        let outcome = MessageScanner.scan(raw, isValidUTF8: isValidUTF8)
        guard Array(raw) == bytes else { fatalError("the scanner changed its input") }
        switch outcome {
        case .malformed: return .malformed
        case .invalidUTF8: return .invalidUTF8
        case .message(let message):
            return .message(
                DecodedMessage(
                    event: Array(JSONString.decode(message.event, in: raw).utf8),
                    channel: message.channel.map { Array(JSONString.decode($0, in: raw).utf8) },
                    dataKind: message.dataKind, data: Array(JSONString.decode(message.data, in: raw).utf8)))
        }
    }
}

func scan(_ text: String) -> DecodedOutcome {
    scan(Array(text.utf8))
}

func isValue(_ bytes: [UInt8]) -> Bool {
    withGuarded(bytes) { JSONValidator.isValue(UnsafeRawBufferPointer($0)) }
}
