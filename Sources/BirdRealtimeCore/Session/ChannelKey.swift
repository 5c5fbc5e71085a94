import CSodium

/// The key of one encrypted channel (Bird protocol 21). Its bytes are nowhere else, and are wiped when the last holder lets go.
/// `@unchecked Sendable`: immutable.
package final class ChannelKey: Equatable, @unchecked Sendable {
    package static let bytesCount = 32

    /// What came of opening an envelope.
    package enum Opening: Equatable, Sendable {
        /// The plaintext, which is UTF-8, has this many bytes, the last of the memory.
        case opened(bytes: Int)
        /// Sealed with another key, or not what was sealed.
        case refused
        /// No key makes it readable, for this reason.
        case unreadable(String)
    }

    /// Has libsodium look for the fastest code for this processor, once in the process.
    private static let isReady = sodium_init() >= 0

    private let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: bytesCount)

    /// `shared_secret` of an authorizer's answer: standard Base64, padded. nil if it is not exactly 32 bytes.
    package init?(base64 text: String) {
        bytes.initialize(repeating: 0, count: Self.bytesCount)
        guard Self.isReady else { return nil }
        var text = text
        var count = 0
        let status = text.withUTF8 { text in
            text.withMemoryRebound(to: CChar.self) {
                sodium_base642bin(
                    bytes, Self.bytesCount, $0.baseAddress, $0.count, nil, &count, nil, sodium_base64_VARIANT_ORIGINAL)
            }
        }
        guard status == 0, count == Self.bytesCount else { return nil }
    }

    deinit {
        sodium_memzero(bytes, Self.bytesCount)
        bytes.deallocate()
    }

    package static func == (left: ChannelKey, right: ChannelKey) -> Bool {
        sodium_memcmp(left.bytes, right.bytes, bytesCount) == 0
    }

    /// Opens the envelope that is the first `length` bytes of `memory`, all of which is overwritten.
    package func open(_ memory: UnsafeMutableRawBufferPointer, length: Int) -> Opening {
        guard
            let (nonce, box) = SealedEnvelope.decode(UnsafeMutableRawBufferPointer(rebasing: memory[..<length])),
            let start = memory.baseAddress?.assumingMemoryBound(to: UInt8.self), let sealed = box.baseAddress
        else {
            return .unreadable("its data is no envelope of a nonce of 24 bytes and a ciphertext, both Base64")
        }
        let count = box.count - SealedEnvelope.tagBytes
        let text = start + (memory.count - count)
        let isOpen = withUnsafePointer(to: nonce) { nonce in
            crypto_secretbox_open_easy(
                text, sealed, UInt64(box.count), UnsafeRawPointer(nonce).assumingMemoryBound(to: UInt8.self), bytes)
                == 0
        }
        guard isOpen else { return .refused }
        guard UTF8Validator.isValid(UnsafeRawBufferPointer(start: text, count: count)) else {
            return .unreadable("what was sealed is not UTF-8")
        }
        return .opened(bytes: count)
    }
}
