/// The names and rules by which two protocols that are otherwise one differ (Bird protocol 23.3). Every client refers to one of the two.
package final class Dialect: Sendable {
    package enum AuthEncoding: Sendable {
        case json
        case form
    }

    /// How the activity timeout of the handshake meets the client's own.
    package enum ActivityTimeoutRule: Sendable {
        case serverOverrides
        case smallerWins
    }

    package let name: String
    /// Of the events that the two ends exchange about the connection.
    package let prefix: String
    /// Of the events that never reach an application under their own name.
    package let internalPrefix: String

    /// Of the handshake and of authorization requests.
    package let connectionIDKey: String
    package let channelNameKey = "channel_name"
    /// What a presence channel's authorization adds to the subscribe frame.
    package let channelDataKey: String
    /// The signed identity in signin frames and their answers.
    package let identityKey: String
    /// In presence data.
    package let memberIDKey: String
    /// In the signed identity.
    package let identityIDKey: String
    package let memberInfoKey: String
    package let watchlistIDsKey: String
    package let connectionCountKey: String

    package let authEncoding: AuthEncoding
    /// Only status 200 is a grant, not every 2xx.
    package let needsAuthStatus200: Bool
    package let activityTimeoutRule: ActivityTimeoutRule
    /// `data` of ping and pong frames.
    package let pingData: String?
    /// `auth` of the subscribe frame of a channel that needs none.
    package let publicAuth: String?
    /// Of close codes, 4300 to 4999 mean what 4000 to 4099 do.
    private let refusesFrom4300: Bool

    /// Servers refuse an attempt by an error frame before the handshake whose code is that of a close (Bird protocol 23.5), and drop the
    /// connection or close it with another.
    package let refusesByError: Bool

    /// Host of an edge: what stands before and after the region.
    package let hostPrefix = "ws-"
    package let hostSuffix: String
    /// nil: any label is taken.
    package let regions: [String]?

    package static let bird = Dialect(
        name: "bird", prefix: "bird:", internalPrefix: "bird_internal:", connectionIDKey: "connection_id",
        channelDataKey: "member_data", identityKey: "member_data", memberIDKey: "member_id", identityIDKey: "member_id",
        memberInfoKey: "member_info", watchlistIDsKey: "member_ids", connectionCountKey: "connection_count",
        authEncoding: .json, needsAuthStatus200: false, activityTimeoutRule: .serverOverrides, pingData: nil,
        publicAuth: nil, refusesFrom4300: false, refusesByError: false,
        hostSuffix: ".realtime.platform.bird.com", regions: ["us1", "eu1"])

    package static let pusher = Dialect(
        name: "pusher", prefix: "pusher:", internalPrefix: "pusher_internal:", connectionIDKey: "socket_id",
        channelDataKey: "channel_data", identityKey: "user_data", memberIDKey: "user_id", identityIDKey: "id",
        memberInfoKey: "user_info", watchlistIDsKey: "user_ids", connectionCountKey: "subscription_count",
        authEncoding: .form, needsAuthStatus200: true, activityTimeoutRule: .smallerWins, pingData: "{}",
        publicAuth: "", refusesFrom4300: true, refusesByError: true, hostSuffix: ".pusher.com",
        regions: nil)

    private static let all = [bird, pusher]

    package static func named(_ name: String) -> Dialect? {
        all.first { $0.name == name }
    }

    /// The dialect whose edges begin with this event, nil: it is no handshake.
    static func greeting(_ event: String) -> Dialect? {
        all.first { $0.connectionEstablished == event }
    }

    /// Programs that go from one protocol to the other keep their handlers: an event that the client tells of has the names of all
    /// dialects. Any other name is its own.
    package func ownName(of event: String) -> String {
        for dialect in Self.all {
            if let position = dialect.toldEvents.firstIndex(of: event) { return toldEvents[position] }
        }
        return event
    }

    /// After this close code nobody tries again.
    package func isRefusal(_ code: UInt16) -> Bool {
        4000...4099 ~= code || (refusesFrom4300 && 4300...4999 ~= code)
    }

    private var toldEvents: [String] {
        [
            subscriptionSucceeded, subscriptionError, memberAdded, memberRemoved, connectionCount, cacheMiss,
            decryptionError, error,
        ]
    }

    // Frames of the client (Bird protocol 5.1).
    package let subscribe: String
    package let unsubscribe: String
    package let signin: String

    // Frames of either end.
    package let ping: String
    package let pong: String

    // Frames of the edge about the connection (5.2).
    package let connectionEstablished: String
    /// Of the connection, or of the channel that it names.
    package let error: String
    package let signinSuccess: String
    package let watchlistEvents: String

    // Frames of the edge about a channel (5.3), and the names under which applications see them.
    package let internalSubscriptionSucceeded: String
    package let internalSubscriptionError: String
    package let internalMemberAdded: String
    package let internalMemberRemoved: String
    package let internalConnectionCount: String
    package let subscriptionSucceeded: String
    package let subscriptionError: String
    package let memberAdded: String
    package let memberRemoved: String
    package let connectionCount: String
    package let cacheMiss: String
    /// Made by the client, never on the wire.
    package let decryptionError: String

    private init(
        name: String, prefix: String, internalPrefix: String, connectionIDKey: String, channelDataKey: String,
        identityKey: String, memberIDKey: String, identityIDKey: String, memberInfoKey: String, watchlistIDsKey: String,
        connectionCountKey: String, authEncoding: AuthEncoding, needsAuthStatus200: Bool,
        activityTimeoutRule: ActivityTimeoutRule, pingData: String?, publicAuth: String?,
        refusesFrom4300: Bool, refusesByError: Bool, hostSuffix: String, regions: [String]?
    ) {
        self.name = name
        self.prefix = prefix
        self.internalPrefix = internalPrefix
        self.connectionIDKey = connectionIDKey
        self.channelDataKey = channelDataKey
        self.identityKey = identityKey
        self.memberIDKey = memberIDKey
        self.identityIDKey = identityIDKey
        self.memberInfoKey = memberInfoKey
        self.watchlistIDsKey = watchlistIDsKey
        self.connectionCountKey = connectionCountKey
        self.authEncoding = authEncoding
        self.needsAuthStatus200 = needsAuthStatus200
        self.activityTimeoutRule = activityTimeoutRule
        self.pingData = pingData
        self.publicAuth = publicAuth
        self.refusesFrom4300 = refusesFrom4300
        self.refusesByError = refusesByError
        self.hostSuffix = hostSuffix
        self.regions = regions

        subscribe = prefix + "subscribe"
        unsubscribe = prefix + "unsubscribe"
        signin = prefix + "signin"
        ping = prefix + "ping"
        pong = prefix + "pong"
        connectionEstablished = prefix + "connection_established"
        error = prefix + "error"
        signinSuccess = prefix + "signin_success"
        watchlistEvents = internalPrefix + "watchlist_events"
        internalSubscriptionSucceeded = internalPrefix + "subscription_succeeded"
        internalSubscriptionError = internalPrefix + "subscription_error"
        internalMemberAdded = internalPrefix + "member_added"
        internalMemberRemoved = internalPrefix + "member_removed"
        internalConnectionCount = internalPrefix + connectionCountKey
        subscriptionSucceeded = prefix + "subscription_succeeded"
        subscriptionError = prefix + "subscription_error"
        memberAdded = prefix + "member_added"
        memberRemoved = prefix + "member_removed"
        connectionCount = prefix + connectionCountKey
        cacheMiss = prefix + "cache_miss"
        decryptionError = prefix + "decryption_error"
    }
}
