import Testing

@testable import BirdRealtimeCore

@Suite struct ChannelKeyTests {
    /// What opening comes to, the text if there is one.
    private func open(_ envelope: String, _ secret: String = Vault.secret, room: Int = 0) throws -> (
        ChannelKey.Opening, text: [UInt8]
    ) {
        let key = try #require(ChannelKey(base64: secret))
        var memory = Array(envelope.utf8) + [UInt8](repeating: 0xAA, count: room)
        let length = envelope.utf8.count
        let opening = memory.withUnsafeMutableBytes { key.open($0, length: length) }
        guard case .opened(let count) = opening else { return (opening, []) }
        return (opening, Array(memory.suffix(count)))
    }

    // The vectors of the protocol's appendix.

    @Test(arguments: [
        (Vault.channel, Vault.masterKey, "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc="),
        (Vault.cacheChannel, Vault.masterKey, "I1qRd7K02IuwO4ry62hz+N90H4dWRix9T6tcfEGHAus="),
        (Vault.channel, Vault.rotatedMasterKey, "GRd8Z7MAb5GXpWOt24pQPXo5lmNZs/jBud4TmCJvsdg="),
    ])
    func backendsGiveSecretsOf32Bytes(_ channel: String, _ masterKey: [UInt8], _ secret: String) {
        #expect(Vault.sharedSecret(of: channel, masterKey) == secret)
        #expect(ChannelKey(base64: secret) != nil)
    }

    private static let boxes = [
        (#"{"balance":1250,"currency":"EUR"}"#, "XntGV2KmKfmsSQAuTdnkyZc18i0MClVcqMbx66aDHSJKL6IwnehADljpNf9iyNRcWw=="),
        (#""hello""#, "ZsVrf2IwwZ7hid4OFUsRts5/9SAMBBk="),
        ("null", "ctRw9YkeC1zzhNnyQuzotYJi/CA="),
        ("", "5zP5gKKUroRfoyxFGIbFew=="),
    ]

    @Test(arguments: boxes)
    func opensBoxes(_ text: String, _ box: String) throws {
        #expect(Vault.seal(text) == Vault.envelope(box: box))
        for room in [0, 1, 300] {
            let (opening, opened) = try open(Vault.envelope(box: box), room: room)
            #expect(opening == .opened(bytes: text.utf8.count))
            #expect(opened == Array(text.utf8))
        }
    }

    @Test func aRotatedBoxDoesNotOpenWithTheFirstSecret() throws {
        let box = "t9JPWLvBvJdV5MXD0cQlJc86YIDHSPHHi7l3zPd1oRez80aSl9dr0YX2hVXsOKaY9w=="
        #expect(try open(Vault.envelope(box: box)).0 == .refused)
        let (_, opened) = try open(Vault.envelope(box: box), Vault.rotatedSecret)
        #expect(opened == Array(#"{"balance":1250,"currency":"EUR"}"#.utf8))
    }

    // What else there is to know.

    @Test func aChangedBitIsNoticed() throws {
        let sealed = Array(Vault.seal("payload").utf8)
        let nonceStart = 10
        for position in [nonceStart, nonceStart + 31, sealed.count - 30, sealed.count - 6] {
            var changed = sealed
            changed[position] = changed[position] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(try open(String(decoding: changed, as: UTF8.self)).0 == .refused)
        }
    }

    /// The text is written where the box and the nonce stand: at every length it must come out whole.
    @Test func everyLengthOpens() throws {
        for count in Array(0...200) + [1_000, 65_535, 1_000_000] {
            let text = String(repeating: "0123456789abcdef", count: count / 16 + 1).prefix(count)
            let nonce = (0..<24).map { UInt8(truncatingIfNeeded: $0 * 7 + count) }
            let sealed = Vault.seal(String(text), nonce: nonce)
            #expect(try open(sealed).text == Array(text.utf8), "\(count) bytes")
            // The other order of the members, as writers that sort them have it.
            let members = sealed.dropFirst().dropLast().split(separator: ",")
            #expect(try open("{\(members[1]),\(members[0])}").text == Array(text.utf8), "\(count) bytes, sorted")
        }
    }

    @Test(arguments: [
        #"{"nonce":"N","ciphertext":"C"}"#, #" { "ciphertext" : "C" , "nonce" : "N" } "#,
        #"{"v":1,"more":{"nonce":"x"},"nonce":"N","list":[1,{"ciphertext":2}],"ciphertext":"C"}"#,
        #"{"nonce":"!","ciphertext":"C","nonce":"N"}"#, #"{"no\u006Ece":"N","ciphertex\u0074":"C"}"#,
    ])
    func envelopesAreJSON(_ form: String) throws {
        let nonce = Vault.base64(Vault.nonce)
        let box = Self.boxes[0].1
        let envelope = form.split(separator: "N\"", omittingEmptySubsequences: false).joined(separator: nonce + "\"")
            .split(separator: "\"C\"", omittingEmptySubsequences: false).joined(separator: "\"\(box)\"")
        #expect(try open(envelope).text == Array(Self.boxes[0].0.utf8))
    }

    /// Some writers of JSON escape the slash, which is a digit of Base64.
    @Test func escapedSlashesAreDigits() throws {
        let escaped = Vault.envelope(box: Self.boxes[1].1).split(separator: "/", omittingEmptySubsequences: false)
            .joined(separator: "\\/")
        #expect(escaped != Vault.envelope(box: Self.boxes[1].1))
        #expect(try open(escaped).text == Array(#""hello""#.utf8))
    }

    @Test(arguments: [
        "", "null", "[]", "{}", "\"text\"", "{", #"{"nonce":"N""#,
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f"}"#, #"{"ciphertext":"5zP5gKKUroRfoyxFGIbFew=="}"#,
        // A nonce that is not 24 bytes, or is no string.
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d4=","ciphertext":"5zP5gKKUroRfoyxFGIbFew=="}"#,
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7fyA==","ciphertext":"5zP5gKKUroRfoyxFGIbFew=="}"#,
        #"{"nonce":7,"ciphertext":"5zP5gKKUroRfoyxFGIbFew=="}"#,
        #"{"nonce":"","ciphertext":"5zP5gKKUroRfoyxFGIbFew=="}"#,
        // A ciphertext without a whole tag, without padding, in another alphabet, with a stray character, or no string.
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f","ciphertext":""}"#,
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f","ciphertext":"5zP5gKKUroRfoyxFGIbF"}"#,
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f","ciphertext":"5zP5gKKUroRfoyxFGIbFew"}"#,
        #"{"nonce":"yMnKy8zNzs_Q0dLT1NXW19jZ2tvc3d7f","ciphertext":"5zP5gKKUroRfoyxFGIbFew=="}"#,
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f","ciphertext":"5zP5gKKUroRfoyxF GIbFew=="}"#,
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f","ciphertext":["5zP5gKKUroRfoyxFGIbFew=="]}"#,
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f","ciphertext":"5zP5gKKUroRfoyxFGIbFew=="}}"#,
        #"{"nonce":"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f","ciphertext":"5zP5gKKUroRfoyxFGIbFew==","x":}"#,
    ])
    func otherDataIsNoEnvelope(_ data: String) throws {
        guard case .unreadable = try open(data).0 else {
            Issue.record("\(data) was tried")
            return
        }
    }

    @Test func whatIsNotUTF8IsUnreadable() throws {
        guard case .unreadable(let problem) = try open(Vault.seal([0x22, 0xFF, 0x22])).0 else {
            Issue.record("it was opened")
            return
        }
        #expect(problem.contains("UTF-8"))
    }

    @Test(arguments: [
        "", "c2VjcmV0", "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc", "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqoms==",
        "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc=\n", " wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc=",
        "GRd8Z7MAb5GXpWOt24pQPXo5lmNZs_jBud4TmCJvsdg=", "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomscA",
        "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc=wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc=",
        String(repeating: "A", count: 100_000),
    ])
    func nothingElseIsASecret(_ text: String) {
        #expect(ChannelKey(base64: text) == nil)
    }

    @Test func equalKeysAreEqualAndSayNothing() throws {
        let key = try #require(ChannelKey(base64: Vault.secret))
        #expect(key == ChannelKey(base64: Vault.secret))
        #expect(key != ChannelKey(base64: Vault.rotatedSecret))
        #expect(
            !"\(SessionInput.authorization(QuestionID(number: 1), .granted(auth: "a", memberData: nil, sharedSecret: key)))"
                .contains("wp8O"))
    }
}
