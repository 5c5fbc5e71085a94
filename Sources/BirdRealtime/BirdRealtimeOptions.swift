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
    /// Authorizes private, presence and encrypted channels: is POSTed `connection_id` and `channel_name`, answers `auth` and, where
    /// they belong, `member_data` and `shared_secret`. Asked anew on every connection.
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
    /// Seconds from the start of an attempt to the handshake; nil: 15.
    public var connectTimeout: TimeInterval?
    /// Reconnecting and keeping alive as they go together; `reconnect` and `keepAlive` change it.
    public var preset: Preset?
    /// How long to wait before an attempt that follows a failed one; nil: jitter.
    public var reconnect: ReconnectPolicy?
    /// Failed attempts in a row after which the client gives up and is `disconnected`; nil and 0: never.
    public var reconnectAttemptsMax: Int?
    /// Is asked before each attempt to reconnect that the client has planned, and may put it off or skip it.
    public var mayReconnect: ReconnectDecider?
    /// When to ping, and when a connection is dead.
    public var keepAlive: KeepAlive
    /// Watches this machine's network: tries at once when there is one again, and looks after a connection whose way has changed.
    public var networkWatch: Bool
    /// A file of CA certificates (PEM) to trust instead of the system's.
    public var caFile: String?
    /// An http://, socks5:// or socks5h:// URL; "" is none, nil is what the environment says.
    public var proxy: String?
    /// What happens when handlers do not keep up.
    public var overflow: Overflow
    /// What the server speaks.
    public var dialect: Dialect
    /// What is logged, and where it goes.
    public var log: LogOptions
    /// Further options by their keys, which docs/options.md lists: `["flap_guard": "0"]`. Times are milliseconds there. They are set
    /// before the others. How records are delivered ("delivery", "records") is not a choice here.
    public var settings: [String: String]

    public init(
        appKey: String, region: String? = nil, wsHost: String? = nil, authEndpoint: URL? = nil,
        authHeaders: [String: String] = [:], headerProvider: HeaderProvider? = nil, authorizer: Authorizer? = nil,
        memberAuthEndpoint: URL? = nil, memberAuthorizer: MemberAuthorizer? = nil, allowInsecure: Bool = false,
        deliveryQueue: DispatchQueue = .main, autoConnect: Bool = true, connectTimeout: TimeInterval? = nil,
        preset: Preset? = nil, reconnect: ReconnectPolicy? = nil, reconnectAttemptsMax: Int? = nil,
        mayReconnect: ReconnectDecider? = nil, keepAlive: KeepAlive = KeepAlive(), networkWatch: Bool = true,
        caFile: String? = nil, proxy: String? = nil, overflow: Overflow = .pause, dialect: Dialect = .bird,
        log: LogOptions = LogOptions(), settings: [String: String] = [:]
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
        self.connectTimeout = connectTimeout
        self.preset = preset
        self.reconnect = reconnect
        self.reconnectAttemptsMax = reconnectAttemptsMax
        self.mayReconnect = mayReconnect
        self.keepAlive = keepAlive
        self.networkWatch = networkWatch
        self.caFile = caFile
        self.proxy = proxy
        self.overflow = overflow
        self.dialect = dialect
        self.log = log
        self.settings = settings
    }

    /// The same for the core, which judges the values.
    func forCore(_ queue: RecordQueue) throws(Fault) -> ClientOptions {
        var core = ClientOptions()
        try coreSettings.apply(to: &core)
        for (name, value) in authHeaders.sorted(by: { $0.key < $1.key }) { try core.setAuthHeader(name, value) }
        core.asksAuthorizer = authorizer != nil
        core.asksMemberAuthorizer = memberAuthorizer != nil
        core.asksForHeaders = headerProvider != nil
        core.session.asksBeforeReconnect = mayReconnect != nil
        core.log.handler = log.handler.map { BirdRealtimeCore.LogHandler($0) }
        core.delivery = .queue
        core.queue = queue
        core.records = ClientOptions.everyRecordKind
        return core
    }

    private var coreSettings: Settings {
        var core = Settings()
        // All others change what it says.
        core.add("preset", preset?.rawValue ?? settings["preset"])
        for (key, value) in settings.sorted(by: { $0.key < $1.key }) where key != "preset" { core.add(key, value) }
        core.add("app_key", appKey)
        core.add("region", region)
        core.add("ws_host", wsHost)
        core.add("auth_endpoint", authEndpoint?.absoluteString)
        core.add("member_auth_endpoint", memberAuthEndpoint?.absoluteString)
        core.add("allow_insecure", allowInsecure)
        core.add("connect_timeout_ms", seconds: connectTimeout)
        reconnect?.add(to: &core)
        core.add("reconnect_attempts_max", reconnectAttemptsMax)
        keepAlive.add(to: &core)
        if !networkWatch { core.add("network_watch", false) }
        core.add("ca_file", caFile)
        core.add("proxy", proxy)
        if overflow != .pause { core.add("overflow", overflow.rawValue) }
        if dialect != .bird { core.add("dialect", dialect.rawValue) }
        log.add(to: &core)
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
