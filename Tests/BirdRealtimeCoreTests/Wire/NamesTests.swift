import BirdRealtimeCore
import CBirdRealtimeABI
import Testing

@Suite struct NamesTests {
    @Test(arguments: [
        ("orders", ChannelKind.public), ("cache-x", .public), ("", .public), ("privately", .public),
        ("Private-x", .public),
        ("private-", .private), ("private-ledger", .private), ("private-cache-x", .private),
        ("private-encrypted", .private),
        ("private-user.13.25", .private), ("private-encryptedx", .private), ("presence-", .presence),
        ("presence-lobby", .presence), ("presence-cache-x", .presence), ("private-encrypted-", .encrypted),
        ("private-encrypted-vault", .encrypted), ("private-encrypted-cache-vault", .encrypted),
        ("#server-to-user-m_7", .member),
        ("#server-to-user", .public), ("presence", .public), ("xprivate-a", .public),
    ])
    func kindComesFromTheName(_ name: String, _ kind: ChannelKind) {
        #expect(ChannelKind.of(name) == kind)
    }

    @Test func kindRules() {
        #expect(ChannelKind.private.needsAuthorization && ChannelKind.presence.needsAuthorization)
        #expect(ChannelKind.encrypted.needsAuthorization)
        #expect(!ChannelKind.public.needsAuthorization && !ChannelKind.member.needsAuthorization)
        #expect(ChannelKind.private.allowsClientEvents && ChannelKind.presence.allowsClientEvents)
        #expect(!ChannelKind.public.allowsClientEvents && !ChannelKind.encrypted.allowsClientEvents)
        #expect(!ChannelKind.member.allowsClientEvents)
    }

    @Test func kindsAreThoseOfTheHeader() {
        #expect(ChannelKind.public.rawValue == BIRD_CHANNEL_PUBLIC)
        #expect(ChannelKind.private.rawValue == BIRD_CHANNEL_PRIVATE)
        #expect(ChannelKind.presence.rawValue == BIRD_CHANNEL_PRESENCE)
        #expect(ChannelKind.encrypted.rawValue == BIRD_CHANNEL_ENCRYPTED)
        #expect(ChannelKind.member.rawValue == BIRD_CHANNEL_MEMBER)
    }

    @Test func channelNames() {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-=@,.;".utf8)
        for byte in UInt8(0)...0x7F {
            #expect(ChannelName.isValid("a" + String(Character(Unicode.Scalar(byte)))) == allowed.contains(byte))
        }
        #expect(!ChannelName.isValid(""))
        #expect(ChannelName.isValid(String(repeating: "a", count: 164)))
        #expect(!ChannelName.isValid(String(repeating: "a", count: 165)))
        #expect(!ChannelName.isValid("é"))
        #expect(!ChannelName.isValid("#server-to-user-m_7"))
        #expect(ChannelName.ofMember("m_7") == "#server-to-user-m_7")
    }

    @Test func eventNames() {
        #expect(!EventName.isValid(""))
        #expect(EventName.isValid("any thing/at all \u{1F600}"))
        // Characters, not bytes.
        #expect(EventName.isValid(String(repeating: "é", count: 200)))
        #expect(!EventName.isValid(String(repeating: "é", count: 201)))
        #expect(EventName.isReserved("bird:ping", dialect: .bird))
        #expect(EventName.isReserved("bird_internal:x", dialect: .bird))
        #expect(!EventName.isReserved("birds:x", dialect: .bird))
        #expect(!EventName.isReserved("pusher:ping", dialect: .bird))
        #expect(EventName.isReserved("pusher_internal:x", dialect: .pusher))
        #expect(EventName.isClientEvent("client-typing"))
        #expect(!EventName.isClientEvent("clienttyping"))
    }

    @Test func memberIDs() {
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~!$&'()*+,;=:@-".utf8)
        for byte in UInt8(0)...0x7F {
            #expect(MemberID.isValid(String(Character(Unicode.Scalar(byte)))) == allowed.contains(byte))
        }
        #expect(!MemberID.isValid(""))
        #expect(MemberID.isValid(String(repeating: "m", count: 128)))
        #expect(!MemberID.isValid(String(repeating: "m", count: 129)))
    }

    @Test func faultsNameTheArgument() {
        let channel = #expect(throws: Fault.self) { try ChannelName.check("a b") }
        #expect(channel?.status == BIRD_ERR_NAME && channel?.field == "channel")
        let event = #expect(throws: Fault.self) { try EventName.check("") }
        #expect(event?.status == BIRD_ERR_NAME && event?.field == "event")
        let client = #expect(throws: Fault.self) { try EventName.checkClientEvent("typing") }
        #expect(client?.status == BIRD_ERR_NAME && client?.message.contains("client-") == true)
        #expect(throws: Never.self) {
            try ChannelName.check("orders")
            try EventName.check("x")
            try EventName.checkClientEvent("client-x")
        }
    }
}
