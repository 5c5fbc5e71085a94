import BirdRealtimeCore
import CBirdRealtimeABI
import Dispatch
import Foundation

/// Has the program's closures answer what the core asks.
struct Requests: Sendable {
    private typealias Answer = @Sendable (Request) throws(Fault) -> Void

    private enum Question: Sendable {
        case channel(name: String, connectionId: String)
        case member(connectionId: String)
        case headers(endpoint: String)
        case reconnect(ReconnectAttempt)
    }

    private static let delayMsMax: Int64 = 86_400_000

    private let authorizer: Authorizer?
    private let memberAuthorizer: MemberAuthorizer?
    private let headerProvider: HeaderProvider?
    private let mayReconnect: ReconnectDecider?

    init(_ options: BirdRealtimeOptions) {
        authorizer = options.authorizer
        memberAuthorizer = options.memberAuthorizer
        headerProvider = options.headerProvider
        mayReconnect = options.mayReconnect
    }

    func answer(_ record: bird_record) {
        guard let detail = record.detail?.load(as: bird_question.self), let question = Self.question(detail),
            case .object(let object) = Handles.lookup(UInt(bitPattern: detail.request), .request),
            let request = object as? Request
        else { return }
        let task = Task {
            do {
                let answer = try await answer(question)
                // A refusal names an answer that cannot be given; one that comes too late is nobody's loss.
                do throws(Fault) {
                    try answer(request)
                } catch {
                    try? request.fail(isRetriable: false, message: error.message)
                }
            } catch {
                try? request.fail(isRetriable: Self.isRetriable(error), message: "\(error)")
            }
        }
        let left = DispatchTimeInterval.milliseconds(Int(detail.deadline_ms))
        DispatchQueue.global().asyncAfter(deadline: .now() + left) { task.cancel() }
    }

    /// The question for longer than the record lives.
    private static func question(_ detail: bird_question) -> Question? {
        let connectionId = String(cString: detail.connection_id)
        switch detail.request_kind {
        case BIRD_REQUEST_AUTHORIZE_CHANNEL:
            return .channel(name: String(cString: detail.channel_name), connectionId: connectionId)
        case BIRD_REQUEST_AUTHORIZE_MEMBER: return .member(connectionId: connectionId)
        case BIRD_REQUEST_HEADERS: return .headers(endpoint: String(cString: detail.endpoint))
        case BIRD_REQUEST_RECONNECT:
            return detail.cause.map {
                .reconnect(ReconnectAttempt(number: Int(detail.attempt), cause: RealtimeError($0)))
            }
        default: return nil
        }
    }

    private func answer(_ question: Question) async throws -> Answer {
        switch question {
        case .channel(let name, let connectionId):
            guard let authorizer else { break }
            let answer = try await authorizer(connectionId, name)
            return { (request) throws(Fault) in
                try request.authorize(
                    auth: answer.auth, memberData: answer.memberData, sharedSecret: answer.sharedSecret)
            }
        case .member(let connectionId):
            guard let memberAuthorizer else { break }
            let answer = try await memberAuthorizer(connectionId)
            return { (request) throws(Fault) in
                try request.authorize(auth: answer.auth, memberData: answer.memberData, sharedSecret: nil)
            }
        case .headers(let endpoint):
            guard let headerProvider, let url = URL(string: endpoint) else { break }
            let headers = try await headerProvider(url).sorted { $0.key < $1.key }
            return { (request) throws(Fault) in
                try request.addHeaders(headers.map { (name: $0.key, value: $0.value) })
            }
        case .reconnect(let attempt):
            guard let mayReconnect else { break }
            switch await mayReconnect(attempt) {
            case .now: return { (request) throws(Fault) in try request.proceed(delayMs: 0) }
            case .after(let seconds):
                let delayMs = min(max(0, milliseconds(seconds)), Self.delayMsMax)
                return { (request) throws(Fault) in try request.proceed(delayMs: delayMs) }
            case .skip: return { (request) throws(Fault) in try request.fail(isRetriable: true, message: nil) }
            }
        }
        throw RealtimeError("Nothing in the options of this client answers that.")
    }

    private static func isRetriable(_ error: any Error) -> Bool {
        if let error = error as? RealtimeError { return error.isRetriable }
        return error is CancellationError || (error as NSError).domain == NSURLErrorDomain
    }
}
