import CBirdRealtimeABI

/// How records reach the program.
package enum Delivery: String, Sendable {
    case thread
    case queue
    case loop
}

/// What happens when the program does not keep up with its queue.
package enum Overflow: String, Sendable {
    /// Reading from the socket rests.
    case pause
    case dropOldest = "drop-oldest"
    case dropNewest = "drop-newest"
}

/// Everything that a client is created with. Keys, units and ranges: `Option.table`.
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
    var tlsMinVersion: TLSVersion?
    /// A name, or an address without brackets.
    @Rare var tlsVerifyName: Authority?
    @Rare var proxy: ProxyChoice?
    package var dialect = Dialect.bird
    package var session = SessionConfiguration()
    package var messageTimeoutMs: Int64 = 60_000
    package var messageBytesMax = 16_777_216
    package var clientEventBytesMax = 10_240
    package var outboundBytesMax = 1_048_576
    package var queueBytesMax = 8_388_608
    package var queueRecordsMax = 65_536
    package var overflow = Overflow.pause
    package var delivery = Delivery.thread
    package var watchesNetwork = true
    package var records: UInt64 = ClientOptions.everyRecordKind
    package var queue: RecordQueue?
    package var loop: HostLoop?
    package var tag: UInt64 = 0
    package var log = LogOptions()
    /// What was set: for the dump.
    var given: [(key: String, text: String)] = []

    /// The program is asked by request records.
    var needsRequests: Bool { asksAuthorizer || asksMemberAuthorizer || asksForHeaders || session.asksBeforeReconnect }

    /// The kinds of this version; a program that tolerates later ones sets more bits.
    package static let everyRecordKind: UInt64 = 0x3_FFFE

    package init() {}
}

extension ClientOptions {
    /// Sets one option from text; a bad value leaves the options as they were.
    package mutating func set(_ key: String, _ value: String) throws(Fault) {
        try set(key, value) { (option, options) throws(Fault) in try option.set(&options, value) }
    }

    /// Sets a number or a boolean.
    package mutating func set(_ key: String, _ value: Int64) throws(Fault) {
        try set(key, String(value)) { (option, options) throws(Fault) in try option.set(&options, value) }
    }

    private mutating func set(
        _ key: String, _ text: String, _ body: (Option, inout ClientOptions) throws(Fault) -> Void
    ) throws(Fault) {
        var changed = self
        try body(Option.named(key), &changed)
        changed.given.removeAll { $0.key == key }
        changed.given.append((key, text))
        self = changed
    }

    /// One header of the authorization POSTs; the same name replaces.
    package mutating func setAuthHeader(_ name: String, _ value: String) throws(Fault) {
        if let problem = authHeaders.set(name, value) {
            throw Fault(BIRD_ERR_VALUE, .argument, field: "auth_header", "Option auth_header \(problem).")
        }
    }
}
