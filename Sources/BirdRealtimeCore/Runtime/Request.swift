import CBirdRealtimeABI
import Synchronization

/// A question that the program answers. Its handle ends with the answer, the deadline or the client.
/// `@unchecked Sendable`: immutable but for the atomic.
package final class Request: @unchecked Sendable {
    private let client: Client
    private let id: AuthorizationID
    private let needsMemberData: Bool
    private let isOver = Atomic<Bool>(false)
    private(set) var handle: UInt = 0

    init(client: Client, question: AuthorizationQuestion) {
        self.client = client
        id = question.id
        needsMemberData = question.channelName == nil
        handle = Handles.register(self, as: .request)
    }

    /// No answer is wanted any more. False if there was one.
    @discardableResult
    func end() -> Bool {
        guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        Handles.release(handle, .request)
        return true
    }

    package func authorize(auth: String, memberData: String?, sharedSecret: String?) throws(Fault) {
        guard !auth.isEmpty else {
            throw Fault(BIRD_ERR_ARGUMENT, .authorization, field: "auth", "The signature must not be empty.")
        }
        guard !needsMemberData || !(memberData ?? "").isEmpty else {
            throw Fault(BIRD_ERR_ARGUMENT, .authorization, field: "member_data", "A signin needs member_data.")
        }
        try answer(.granted(auth: auth, memberData: memberData, sharedSecret: sharedSecret))
    }

    package func fail(isRetriable: Bool, message: String) throws(Fault) {
        let fault = Fault(
            isRetriable ? BIRD_ERR_AUTH : BIRD_ERR_DENIED, .authorization, field: "authorizer", message,
            isRetriable: isRetriable)
        try answer(.refused(fault, retryAfterMs: nil))
    }

    private func answer(_ answer: AuthorizationAnswer) throws(Fault) {
        guard end() else {
            throw Fault(BIRD_ERR_ANSWERED, .authorization, field: "request", "The request has been answered.")
        }
        client.postUnbounded(.input(.authorization(id, answer)))
    }
}
