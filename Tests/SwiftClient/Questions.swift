import BirdRealtime
import Foundation
import Synchronization

/// What the client asks the program: each question is a line with a number, and waits for the command that answers it.
final class Questions: Sendable {
    enum Answer: Sendable {
        case grant(auth: String, memberData: String?, sharedSecret: String?)
        case headers([String: String])
        case proceed(TimeInterval)
        case refuse(RealtimeError)
    }

    private let waiting = Mutex<[CheckedContinuation<Answer, Never>?]>([])

    func answer(_ number: Int, _ answer: Answer) {
        let continuation = waiting.withLock { waiting in
            defer { if waiting.indices.contains(number) { waiting[number] = nil } }
            return waiting.indices.contains(number) ? waiting[number] : nil
        }
        continuation?.resume(returning: answer)
    }

    private func ask(_ asks: String, _ fields: [String: JSONValue]) async -> Answer {
        await withCheckedContinuation { continuation in
            let number = waiting.withLock { waiting in
                waiting.append(continuation)
                return waiting.count - 1
            }
            let question: [String: JSONValue] = [
                "record": "request", "request": JSONValue(number), "asks": JSONValue(asks),
            ]
            say(question.merging(fields) { $1 })
        }
    }

    func authorize(_ connectionId: String, _ channelName: String) async throws -> ChannelAuth {
        let about = ["connection_id": JSONValue(connectionId), "channel_name": JSONValue(channelName)]
        switch await ask("channel", about) {
        case .grant(let auth, let memberData, let sharedSecret):
            return ChannelAuth(auth: auth, memberData: memberData, sharedSecret: sharedSecret)
        case .refuse(let error): throw error
        default: throw RealtimeError("another answer than was asked for")
        }
    }

    func authorizeMember(_ connectionId: String) async throws -> MemberAuth {
        switch await ask("member", ["connection_id": JSONValue(connectionId)]) {
        case .grant(let auth, let memberData, _): return MemberAuth(auth: auth, memberData: memberData ?? "")
        case .refuse(let error): throw error
        default: throw RealtimeError("another answer than was asked for")
        }
    }

    func headers(for endpoint: URL) async throws -> [String: String] {
        switch await ask("headers", ["headers_for": JSONValue(endpoint.absoluteString)]) {
        case .headers(let headers): return headers
        case .refuse(let error): throw error
        default: throw RealtimeError("another answer than was asked for")
        }
    }

    func decide(_ attempt: ReconnectAttempt) async -> ReconnectDecision {
        switch await ask("reconnect", attempt.cause.fields.merging(["attempt": JSONValue(attempt.number)]) { $1 }) {
        case .proceed(let delay) where delay > 0: .after(delay)
        case .proceed: .now
        default: .skip
        }
    }
}
