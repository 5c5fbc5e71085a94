import CSodium
import Testing

@testable import BirdRealtimeCore

/// Our Base64 takes exactly what libsodium's does.
@Suite struct Base64Tests {
    private static func ours(_ text: [UInt8]) -> [UInt8]? {
        // In its own place, as envelopes are decoded.
        var text = text
        let count = text.withUnsafeMutableBufferPointer { text -> Int? in
            guard let start = text.baseAddress else { return 0 }
            return Base64.decode(UnsafeBufferPointer(text), into: start)
        }
        return count.map { Array(text[..<$0]) }
    }

    private static func libsodiums(_ text: [UInt8]) -> [UInt8]? {
        var output = [UInt8](repeating: 0, count: text.count + 1)
        var count = 0
        let status = text.withUnsafeBytes {
            sodium_base642bin(
                &output, output.count, $0.baseAddress?.assumingMemoryBound(to: CChar.self), text.count, nil, &count,
                nil,
                sodium_base64_VARIANT_ORIGINAL)
        }
        return status == 0 ? Array(output[..<count]) : nil
    }

    private static func encode(_ bytes: [UInt8]) -> [UInt8] {
        let size = (bytes.count + 2) / 3 * 4 + 1
        var text = [CChar](repeating: 0, count: size)
        _ = sodium_bin2base64(&text, size, bytes, bytes.count, sodium_base64_VARIANT_ORIGINAL)
        return text.dropLast().map { UInt8(bitPattern: $0) }
    }

    @Test(arguments: 0...200) func whatLibsodiumEncodesIsDecoded(count: Int) {
        var random = SystemRandomNumberGenerator()
        let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
        #expect(Self.ours(Self.encode(bytes)) == bytes)
    }

    @Test func oneChangedCharacterIsJudgedAsByLibsodium() {
        for count in 1...4 {
            let text = Self.encode([UInt8](repeating: 0xA5, count: count))
            for position in text.indices {
                for byte in UInt8.min...UInt8.max {
                    var changed = text
                    changed[position] = byte
                    // libsodium takes what is not ASCII for a slash.
                    let expected = byte < 0x80 ? Self.libsodiums(changed) : nil
                    if Self.ours(changed) != expected { Issue.record("\(changed)") }
                }
            }
        }
    }

    @Test func shortTextsAreJudgedAsByLibsodium() {
        let characters = Array("AQgw/+=-_ \n".utf8)
        var texts: [[UInt8]] = [[]]
        var accepted = 0
        for _ in 0..<4 {
            texts = texts.flatMap { text in characters.map { text + [$0] } }
            for text in texts {
                let ours = Self.ours(text)
                if ours != nil { accepted += 1 }
                if ours != Self.libsodiums(text) { Issue.record("\(text)") }
            }
        }
        #expect(accepted > 0)
    }
}
