public import Foundation

/// The leave to subscribe to one channel on one connection, as the backend gives it.
public struct ChannelAuth: Sendable {
    /// The signature: app key, colon, HMAC-SHA256 in hexadecimal.
    public var auth: String
    /// Presence channels: the member as JSON, exactly as it was signed; what Pusher's server libraries call `channel_data`.
    public var memberData: String?
    /// Encrypted channels: the key of the channel; it stays here.
    public var sharedSecret: String?

    public init(auth: String, memberData: String? = nil, sharedSecret: String? = nil) {
        self.auth = auth
        self.memberData = memberData
        self.sharedSecret = sharedSecret
    }
}

/// The leave to sign in as a member on one connection, as the backend gives it.
public struct MemberAuth: Sendable {
    /// The signature: app key, colon, HMAC-SHA256 in hexadecimal.
    public var auth: String
    /// The member as JSON, exactly as it was signed; what Pusher's server libraries call `user_data`.
    public var memberData: String

    public init(auth: String, memberData: String) {
        self.auth = auth
        self.memberData = memberData
    }
}

/// Asks the program's backend. Runs on the global executor, within the option `auth_timeout_ms`, after which its task is cancelled.
/// Throw a `RealtimeError` to say whether to ask again; a `URLError` or a `CancellationError` is asked again, every other error
/// denies.
public typealias Authorizer =
    @Sendable (_ connectionId: String, _ channelName: String) async throws -> ChannelAuth

/// The same for a signin.
public typealias MemberAuthorizer = @Sendable (_ connectionId: String) async throws -> MemberAuth

/// Asks the program for headers of the next POST to an endpoint, beside the option `authHeaders`, which they replace where names are
/// equal. It runs, and may throw, as an authorizer does; the time for the authorization covers it.
public typealias HeaderProvider = @Sendable (_ endpoint: URL) async throws -> [String: String]
