import CBirdRealtimeABI

/// How records reach the program; raw values are `BIRD_DELIVERY_*`.
package enum Delivery: Int32, Sendable {
    case thread = 0
    case queue = 1
    case loop = 2
}

/// What happens when the program does not keep up with its queue.
package enum Overflow: String, Sendable {
    /// Reading from the socket rests.
    case pause
    case dropOldest = "drop-oldest"
    case dropNewest = "drop-newest"
}

/// Everything that a client is created with. Keys, units and defaults: the option table of the header.
package struct ClientOptions: Sendable {
    package var appKey = ""
    package var region: String?
    package var wsHost: String?
    package var allowInsecure = false
    package var address: String?
    package var authEndpoint: String?
    package var memberAuthEndpoint: String?
    package var asksAuthorizer = false
    package var asksMemberAuthorizer = false
    package var asksForHeaders = false
    var authHeaders = HTTPHeaders()
    package var caFile: String?
    package var caPath: String?
    package var clientCertFile: String?
    package var clientKeyFile: String?
    var tlsMinVersion = TLSVersion.v1_2
    /// A name, or an address without brackets.
    var tlsVerifyName: Authority?
    /// Made from the options above when a client is.
    var trust = TrustSettings()
    var proxy: ProxyChoice?
    package var session = SessionConfiguration()
    package var messageTimeoutMs: Int64 = 60_000
    package var messageBytesMax = 16_777_216
    package var clientEventBytesMax = 10_240
    package var outboundBytesMax = 1_048_576
    package var queueBytesMax = 8_388_608
    package var queueRecordsMax = 65_536
    package var overflow = Overflow.pause
    package var delivery = Delivery.thread
    package var records: UInt64 = ClientOptions.everyRecordKind
    package var queue: RecordQueue?
    package var loop: HostLoop?
    package var tag: UInt64 = 0

    /// The program is asked by request records.
    var needsRequests: Bool { asksAuthorizer || asksMemberAuthorizer || asksForHeaders || session.asksBeforeReconnect }

    /// The kinds of this version; a program that tolerates later ones sets more bits.
    package static let everyRecordKind: UInt64 = 0x7FFE

    package init() {}
}

extension ClientOptions {
    private enum Setting {
        case text(any WritableKeyPath<ClientOptions, String?> & Sendable)
        case flag(any WritableKeyPath<ClientOptions, Bool> & Sendable)
        case time(any WritableKeyPath<ClientOptions, Int64> & Sendable, ClosedRange<Int64>)
        case optionalTime(any WritableKeyPath<ClientOptions, Int64?> & Sendable, ClosedRange<Int64>)
        case size(any WritableKeyPath<ClientOptions, Int> & Sendable, ClosedRange<Int64>)
        case appKey
        case address
        case proxy
        case tlsMinVersion
        case tlsVerifyName
        case delivery
        case overflow
        case records
    }

    private static let timeout: ClosedRange<Int64> = 1...86_400_000

    private static let table: [String: Setting] = [
        "app_key": .appKey,
        "region": .text(\.region),
        "ws_host": .text(\.wsHost),
        "allow_insecure": .flag(\.allowInsecure),
        "address": .address,
        "auth_endpoint": .text(\.authEndpoint),
        "member_auth_endpoint": .text(\.memberAuthEndpoint),
        "authorizer": .flag(\.asksAuthorizer),
        "member_authorizer": .flag(\.asksMemberAuthorizer),
        "header_provider": .flag(\.asksForHeaders),
        "may_reconnect": .flag(\.session.asksBeforeReconnect),
        "ca_file": .text(\.caFile),
        "ca_path": .text(\.caPath),
        "client_cert_file": .text(\.clientCertFile),
        "client_key_file": .text(\.clientKeyFile),
        "tls_min_version": .tlsMinVersion,
        "tls_verify_name": .tlsVerifyName,
        "proxy": .proxy,
        "connect_timeout_ms": .time(\.session.connectTimeoutMs, timeout),
        "auth_timeout_ms": .time(\.session.authTimeoutMs, timeout),
        "answer_timeout_ms": .time(\.session.answerTimeoutMs, timeout),
        "message_timeout_ms": .time(\.messageTimeoutMs, timeout),
        "activity_timeout_ms": .optionalTime(\.session.activityTimeoutMs, timeout),
        "pong_timeout_ms": .time(\.session.pongTimeoutMs, timeout),
        "backoff_base_ms": .time(\.session.backoffBaseMs, timeout),
        "backoff_max_ms": .time(\.session.backoffMaxMs, timeout),
        "flap_guard": .flag(\.session.hasFlapGuard),
        "message_bytes_max": .size(\.messageBytesMax, 1_024...1_073_741_824),
        "client_event_bytes_max": .size(\.clientEventBytesMax, 1...16_777_216),
        "outbound_bytes_max": .size(\.outboundBytesMax, 16_384...1_073_741_824),
        "queue_bytes_max": .size(\.queueBytesMax, 1_024...17_179_869_184),
        "queue_records_max": .size(\.queueRecordsMax, 1...16_777_216),
        "overflow": .overflow,
        "delivery": .delivery,
        "records": .records,
    ]

    /// Sets one option from text; a bad value leaves the options as they were.
    package mutating func set(_ key: String, _ value: String) throws(Fault) {
        switch try Self.setting(key) {
        case .text(let path):
            guard !value.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
                throw Self.unacceptable(key, "must not contain control characters")
            }
            self[keyPath: path] = value
        case .appKey:
            guard !value.isEmpty, value.utf8.count <= 256, !value.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
            else { throw Self.unacceptable(key, "must be 1 to 256 bytes without control characters") }
            appKey = value
        case .address:
            guard IPAddress(value) != nil else { throw Self.unacceptable(key, "must be an IPv4 or IPv6 address") }
            address = value
        case .proxy:
            let chosen = Proxy(url: value)
            guard chosen != nil || value.isEmpty else {
                throw Self.unacceptable(key, "must be \(Proxy.isWhat), or empty for no proxy")
            }
            proxy = ProxyChoice(option: chosen)
        case .tlsMinVersion:
            guard let version = TLSVersion(rawValue: value) else {
                throw Self.unacceptable(key, "must be \"1.2\" or \"1.3\"")
            }
            tlsMinVersion = version
        case .tlsVerifyName:
            let authority = try Authority(value, field: key)
            guard authority.port == nil else { throw Self.unacceptable(key, "must be a name without a port") }
            tlsVerifyName = authority
        case .delivery:
            switch value {
            case "thread": delivery = .thread
            case "queue": delivery = .queue
            case "loop": delivery = .loop
            default: throw Self.unacceptable(key, "must be \"thread\", \"queue\" or \"loop\"")
            }
        case .overflow:
            guard let policy = Overflow(rawValue: value) else {
                throw Self.unacceptable(key, "must be \"pause\", \"drop-oldest\" or \"drop-newest\"")
            }
            overflow = policy
        case .flag:
            switch value {
            case "1", "true": try set(key, 1)
            case "0", "false": try set(key, 0)
            default: throw Self.unacceptable(key, "must be 1, 0, true or false")
            }
        case .time, .optionalTime, .size, .records:
            guard let number = Int64(value) else { throw Self.unacceptable(key, "must be a whole number") }
            try set(key, number)
        }
    }

    /// Sets a number or a boolean.
    package mutating func set(_ key: String, _ value: Int64) throws(Fault) {
        switch try Self.setting(key) {
        case .text, .appKey, .address, .proxy, .tlsMinVersion, .tlsVerifyName, .delivery, .overflow:
            throw Self.unacceptable(key, "is text, not a number")
        case .flag(let path):
            guard value == 0 || value == 1 else { throw Self.unacceptable(key, "must be 0 or 1") }
            self[keyPath: path] = value == 1
        case .time(let path, let range):
            self[keyPath: path] = try Self.within(range, key, value)
        case .optionalTime(let path, let range):
            self[keyPath: path] = try Self.within(range, key, value)
        case .size(let path, let range):
            self[keyPath: path] = Int(try Self.within(range, key, value))
        case .records:
            records = UInt64(try Self.within(0...Int64.max, key, value))
        }
    }

    /// One header of the authorization POSTs; the same name replaces.
    package mutating func setAuthHeader(_ name: String, _ value: String) throws(Fault) {
        if let problem = authHeaders.set(name, value) { throw Self.unacceptable("auth_header", problem) }
    }

    private static func setting(_ key: String) throws(Fault) -> Setting {
        guard let setting = table[key] else {
            throw Fault(
                BIRD_ERR_OPTION, .argument, field: String(key.prefix(64)),
                "There is no option \"\(key.prefix(64))\"; birdrealtime.h lists the option keys.")
        }
        return setting
    }

    private static func within(_ range: ClosedRange<Int64>, _ key: String, _ value: Int64) throws(Fault) -> Int64 {
        guard range.contains(value) else {
            throw unacceptable(key, "must be from \(range.lowerBound) to \(range.upperBound), not \(value)")
        }
        return value
    }

    private static func unacceptable(_ key: String, _ what: String) -> Fault {
        Fault(BIRD_ERR_VALUE, .argument, field: key, "Option \(key) \(what).")
    }
}
