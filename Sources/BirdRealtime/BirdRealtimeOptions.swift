import BirdRealtimeCore
public import Dispatch
public import Foundation

/// Everything that a client is created with. `appKey` and one of `region` and `wsHost` are required. A bad value is no fault of
/// the initializer: the client made from it is `failed` and says which option is wrong.
public struct BirdRealtimeOptions: Sendable {
    /// Identifies the app; public.
    public var appKey: String
    /// "us1" or "eu1": where the edge is.
    public var region: String?
    /// Host, or host:port, of an edge instead of a region.
    public var wsHost: String?
    /// Authorizes private and presence channels: is POSTed `connection_id` and `channel_name`, answers `auth` and, where it
    /// belongs, `member_data`. Asked anew on every connection.
    public var authEndpoint: URL?
    /// Headers of the POSTs to both endpoints. Their values never appear in messages.
    public var authHeaders: [String: String]
    /// Is asked for more headers before each of these POSTs.
    public var headerProvider: HeaderProvider?
    /// Authorizes channels in place of `authEndpoint`.
    public var authorizer: Authorizer?
    /// Authorizes `signin()`: is POSTed `connection_id`, answers `auth` and `member_data`.
    public var memberAuthEndpoint: URL?
    /// Authorizes `signin()` in place of `memberAuthEndpoint`.
    public var memberAuthorizer: MemberAuthorizer?
    /// Allows plaintext for exactly localhost, 127.0.0.1 and [::1]. Every other host gets TLS all the same.
    public var allowInsecure: Bool
    /// Where handlers run, one at a time and in order. Something has to serve it: for the main queue that is
    /// `dispatchMain()`, `RunLoop.main.run()`, or the end of an asynchronous `main`.
    public var deliveryQueue: DispatchQueue
    /// Connects on construction.
    public var autoConnect: Bool
    /// Seconds of silence before a ping; nil leaves it to the edge, whose value also wins if it is smaller.
    public var activityTimeout: TimeInterval?
    /// Seconds after a ping until a silent connection counts as dead.
    public var pongTimeout: TimeInterval?
    /// Seconds from the start of an attempt to the handshake.
    public var connectTimeout: TimeInterval?
    /// Is asked before each attempt to reconnect that the client has planned, and may put it off or skip it.
    public var mayReconnect: ReconnectDecider?
    /// A file of CA certificates (PEM) to trust instead of the system's.
    public var caFile: String?
    /// An http://, socks5:// or socks5h:// URL; "" is none, nil is what the environment says.
    public var proxy: String?
    /// What happens when handlers do not keep up.
    public var overflow: Overflow
    /// Further options by the keys of birdrealtime.h, which says what they are for: `["flap_guard": "0"]`. Times are
    /// milliseconds there. How records are delivered ("delivery", "records") is not a choice here.
    public var settings: [String: String]

    public init(
        appKey: String, region: String? = nil, wsHost: String? = nil, authEndpoint: URL? = nil,
        authHeaders: [String: String] = [:], headerProvider: HeaderProvider? = nil,
        authorizer: Authorizer? = nil, memberAuthEndpoint: URL? = nil,
        memberAuthorizer: MemberAuthorizer? = nil, allowInsecure: Bool = false, deliveryQueue: DispatchQueue = .main,
        autoConnect: Bool = true, activityTimeout: TimeInterval? = nil, pongTimeout: TimeInterval? = nil,
        connectTimeout: TimeInterval? = nil, mayReconnect: ReconnectDecider? = nil, caFile: String? = nil,
        proxy: String? = nil, overflow: Overflow = .pause,
        settings: [String: String] = [:]
    ) {
        self.appKey = appKey
        self.region = region
        self.wsHost = wsHost
        self.authEndpoint = authEndpoint
        self.authHeaders = authHeaders
        self.headerProvider = headerProvider
        self.authorizer = authorizer
        self.memberAuthEndpoint = memberAuthEndpoint
        self.memberAuthorizer = memberAuthorizer
        self.allowInsecure = allowInsecure
        self.deliveryQueue = deliveryQueue
        self.autoConnect = autoConnect
        self.activityTimeout = activityTimeout
        self.pongTimeout = pongTimeout
        self.connectTimeout = connectTimeout
        self.mayReconnect = mayReconnect
        self.caFile = caFile
        self.proxy = proxy
        self.overflow = overflow
        self.settings = settings
    }

    /// The same for the core, which judges the values.
    func forCore(_ queue: RecordQueue) throws(Fault) -> ClientOptions {
        var core = ClientOptions()
        for (key, value) in settings.sorted(by: { $0.key < $1.key }) { try core.set(key, value) }
        try core.set("app_key", appKey)
        try core.set("allow_insecure", allowInsecure ? 1 : 0)
        for (key, value) in [
            ("region", region), ("ws_host", wsHost), ("auth_endpoint", authEndpoint?.absoluteString),
            ("member_auth_endpoint", memberAuthEndpoint?.absoluteString), ("ca_file", caFile), ("proxy", proxy),
        ] {
            if let value { try core.set(key, value) }
        }
        for (key, seconds) in [
            ("activity_timeout_ms", activityTimeout), ("pong_timeout_ms", pongTimeout),
            ("connect_timeout_ms", connectTimeout),
        ] {
            if let seconds { try core.set(key, milliseconds(seconds)) }
        }
        for (name, value) in authHeaders.sorted(by: { $0.key < $1.key }) { try core.setAuthHeader(name, value) }
        if overflow != .pause { try core.set("overflow", overflow.rawValue) }
        core.asksAuthorizer = authorizer != nil
        core.asksMemberAuthorizer = memberAuthorizer != nil
        core.asksForHeaders = headerProvider != nil
        core.session.asksBeforeReconnect = mayReconnect != nil
        core.delivery = .queue
        core.queue = queue
        core.records = ClientOptions.everyRecordKind
        return core
    }
}

/// What happens when more waits for the delivery queue than "queue_records_max" and "queue_bytes_max" allow.
public enum Overflow: String, Sendable, CaseIterable {
    /// Reading from the edge rests; nothing is lost while the edge keeps the connection.
    case pause
    /// Application events are dropped, those that have waited longest first; an error says so once.
    case dropOldest = "drop-oldest"
    /// Application events are dropped as they come; an error says so once.
    case dropNewest = "drop-newest"
}

/// Seconds as the core takes times; what is no time at all stays out of every range.
func milliseconds(_ seconds: TimeInterval) -> Int64 {
    Int64(exactly: (seconds * 1_000).rounded()) ?? (seconds > 0 ? .max : -1)
}
