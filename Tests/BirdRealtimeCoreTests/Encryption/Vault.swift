import CSodium

@testable import BirdRealtimeCore

/// An encrypted channel and what its publisher knows.
enum Vault {
    static let channel = "private-encrypted-vault"
    static let cacheChannel = "private-encrypted-cache-vault"
    static let masterKey = Array(UInt8(0)...31)
    static let rotatedMasterKey = Array((UInt8(0)...31).reversed())
    /// Of `channel` under either.
    static let secret = "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc="
    static let rotatedSecret = "GRd8Z7MAb5GXpWOt24pQPXo5lmNZs/jBud4TmCJvsdg="
    static let nonce = Array(UInt8(0xC8)...0xDF)

    /// What backends give for a channel: SHA-256 of its name and the master key.
    static func sharedSecret(of channel: String, _ masterKey: [UInt8]) -> String {
        base64(digest(channel, masterKey))
    }

    /// An event's data under the key of this secret.
    static func seal(_ text: String, _ secret: String = secret, nonce: [UInt8] = nonce) -> String {
        seal(Array(text.utf8), secret, nonce: nonce)
    }

    static func seal(_ text: [UInt8], _ secret: String = secret, nonce: [UInt8] = nonce) -> String {
        envelope(box: box(text, decoded(secret), nonce), nonce: base64(nonce))
    }

    static func envelope(box: String, nonce: String = base64(nonce)) -> String {
        #"{"nonce":"\#(nonce)","ciphertext":"\#(box)"}"#
    }

    static func box(_ text: [UInt8], _ key: [UInt8], _ nonce: [UInt8]) -> String {
        var box = [UInt8](repeating: 0, count: text.count + Int(crypto_secretbox_macbytes()))
        _ = crypto_secretbox_easy(&box, text, UInt64(text.count), nonce, key)
        return base64(box)
    }

    static func base64(_ bytes: [UInt8]) -> String {
        var text = [CChar](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        _ = sodium_bin2base64(&text, text.count, bytes, bytes.count, sodium_base64_VARIANT_ORIGINAL)
        return String(decoding: text.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private static func digest(_ channel: String, _ masterKey: [UInt8]) -> [UInt8] {
        let input = Array(channel.utf8) + masterKey
        var digest = [UInt8](repeating: 0, count: 32)
        _ = crypto_hash_sha256(&digest, input, UInt64(input.count))
        return digest
    }

    private static func decoded(_ secret: String) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 32)
        _ = sodium_base642bin(
            &bytes, 32, secret, secret.utf8.count, nil, nil, nil, sodium_base64_VARIANT_ORIGINAL)
        return bytes
    }
}
