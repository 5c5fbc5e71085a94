import BirdRealtimeCore
import CBirdRealtimeABI
import Dispatch
import Foundation

/// The leave to subscribe to one channel on one connection, as the backend gives it.
public struct ChannelAuthorization: Sendable {
    /// The signature: app key, colon, HMAC-SHA256 in hexadecimal.
    public var auth: String
    /// Presence channels: the member as JSON, exactly as it was signed.
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
public struct MemberAuthorization: Sendable {
    /// The signature: app key, colon, HMAC-SHA256 in hexadecimal.
    public var auth: String
    /// The member as JSON, exactly as it was signed.
    public var memberData: String

    public init(auth: String, memberData: String) {
        self.auth = auth
        self.memberData = memberData
    }
}

/// Asks the program's backend. Runs on the global executor, within the option `auth_timeout_ms`, after which its task is cancelled.
/// Throw a `RealtimeError` to say whether to ask again; a `URLError` or a `CancellationError` is asked again, every other error
/// denies.
public typealias ChannelAuthorizer =
    @Sendable (_ channelName: String, _ connectionId: String) async throws -> ChannelAuthorization

/// The same for a signin.
public typealias MemberAuthorizer = @Sendable (_ connectionId: String) async throws -> MemberAuthorization

/// Has the program's authorizers answer what the core asks.
struct Authorizers: Sendable {
    let channel: ChannelAuthorizer?
    let member: MemberAuthorizer?

    init?(_ options: BirdRealtimeOptions) {
        guard options.authorizer != nil || options.memberAuthorizer != nil else { return nil }
        channel = options.authorizer
        member = options.memberAuthorizer
    }

    func answer(_ record: bird_record) {
        guard let question = record.detail?.load(as: bird_question.self),
            case .object(let object) = Handles.lookup(UInt(bitPattern: question.request), .request),
            let request = object as? Request
        else { return }
        let connectionId = String(cString: question.connection_id)
        let channelName = String(cString: question.channel_name)
        let task = Task {
            do {
                let answer = try await authorization(connectionId, channelName)
                // A refusal names an answer that cannot be sent; one that comes too late is nobody's loss.
                do throws(Fault) {
                    try request.authorize(
                        auth: answer.auth, memberData: answer.memberData, sharedSecret: answer.sharedSecret)
                } catch {
                    try? request.fail(isRetriable: false, message: error.message)
                }
            } catch {
                try? request.fail(isRetriable: Self.isRetriable(error), message: "\(error)")
            }
        }
        let left = DispatchTimeInterval.milliseconds(Int(question.deadline_ms))
        DispatchQueue.global().asyncAfter(deadline: .now() + left) { task.cancel() }
    }

    private func authorization(_ connectionId: String, _ channelName: String) async throws -> ChannelAuthorization {
        if channelName.isEmpty, let member {
            let answer = try await member(connectionId)
            return ChannelAuthorization(auth: answer.auth, memberData: answer.memberData)
        }
        guard let channel else { throw RealtimeError("There is no authorizer for \(channelName).") }
        return try await channel(channelName, connectionId)
    }

    private static func isRetriable(_ error: any Error) -> Bool {
        if let error = error as? RealtimeError { return error.isRetriable }
        return error is CancellationError || (error as NSError).domain == NSURLErrorDomain
    }
}
