internal import CBirdRealtimeABI

/// What a channel is, decided by its name alone (Bird protocol 1); raw values are `BIRD_CHANNEL_PUBLIC` and following.
package enum ChannelKind: Int32, Sendable {
    case `public` = 0
    case `private` = 1
    case presence = 2
    case encrypted = 3
    case member = 4

    package static func of(_ name: String) -> ChannelKind {
        // The longest prefix first: an encrypted channel is not a private one.
        if name.utf8.starts(with: "private-encrypted-".utf8) { return .encrypted }
        if name.utf8.starts(with: "presence-".utf8) { return .presence }
        if name.utf8.starts(with: "private-".utf8) { return .private }
        if name.utf8.starts(with: ChannelName.memberPrefix.utf8) { return .member }
        return .public
    }

    /// The edge wants a signature with the subscribe frame.
    package var needsAuthorization: Bool {
        switch self {
        case .private, .presence, .encrypted: true
        case .public, .member: false
        }
    }

    /// Subscribers may send each other client events.
    package var allowsClientEvents: Bool {
        self == .private || self == .presence
    }
}

/// Names of channels that an application may subscribe to.
package enum ChannelName {
    package static let charactersMax = 164
    package static let memberPrefix = "#server-to-user-"

    package static func isValid(_ name: String) -> Bool {
        (1...charactersMax).contains(name.utf8.count)
            && name.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "_-=@,.;".utf8.contains($0) }
    }

    package static func check(_ name: String) throws(Fault) {
        guard !isValid(name) else { return }
        throw Fault(
            BIRD_ERR_NAME, .argument, field: "channel",
            "A channel name has 1 to \(charactersMax) characters out of A-Z a-z 0-9 _ - = @ , . ;")
    }

    /// The channel that carries the events sent to one member.
    package static func ofMember(_ memberID: String) -> String {
        memberPrefix + memberID
    }
}

/// Names of events.
package enum EventName {
    package static let charactersMax = 200
    package static let clientPrefix = "client-"

    /// Any name that can arrive, those of the protocol included.
    package static func isValid(_ name: String) -> Bool {
        (1...charactersMax).contains(name.unicodeScalars.count)
    }

    package static func isReserved(_ name: String, dialect: Dialect) -> Bool {
        var name = name
        return name.withUTF8 { isReserved(UnsafeRawBufferPointer($0), dialect: dialect) }
    }

    package static func isReserved(_ name: UnsafeRawBufferPointer, dialect: Dialect) -> Bool {
        name.begins(with: dialect.prefix) || name.begins(with: dialect.internalPrefix)
    }

    package static func isClientEvent(_ name: String) -> Bool {
        name.utf8.starts(with: clientPrefix.utf8)
    }

    package static func check(_ name: String) throws(Fault) {
        guard !isValid(name) else { return }
        throw Fault(
            BIRD_ERR_NAME, .argument, field: "event", "An event name has 1 to \(charactersMax) characters.")
    }

    /// A name that a client may send.
    package static func checkClientEvent(_ name: String) throws(Fault) {
        try check(name)
        guard !isClientEvent(name) else { return }
        throw Fault(
            BIRD_ERR_NAME, .argument, field: "event", "The name of an event that a client sends begins with client-.")
    }
}

/// Ids that an application gives to its members.
package enum MemberID {
    package static let charactersMax = 128

    package static func isValid(_ id: String) -> Bool {
        (1...charactersMax).contains(id.utf8.count)
            && id.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "._~!$&'()*+,;=:@-".utf8.contains($0) }
    }
}

/// Classes of bytes.
enum ASCII {
    static func isDigit(_ byte: UInt8) -> Bool {
        byte &- UInt8(ascii: "0") < 10
    }

    static func isAlphanumeric(_ byte: UInt8) -> Bool {
        isDigit(byte) || lowercased(byte) &- UInt8(ascii: "a") < 26
    }

    static func isHexDigit(_ byte: UInt8) -> Bool {
        isDigit(byte) || lowercased(byte) &- UInt8(ascii: "a") < 6
    }

    static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
    }
}
