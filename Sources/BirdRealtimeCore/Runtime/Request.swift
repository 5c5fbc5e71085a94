import CBirdRealtimeABI
import Synchronization

/// A question that the program answers, once. Its handle ends with the answer, the deadline, the withdrawal or the client.
/// `@unchecked Sendable`: immutable but for the atomic.
package final class Request: @unchecked Sendable {
    enum Subject {
        case authorization(AuthorizationQuestion)
        case headers(AuthorizationQuestion, HTTPEndpoint)
        case reconnect(ReconnectQuestion)

        /// For the log.
        var words: String {
            switch self {
            case .authorization(let question): "to authorize \(question.channelName ?? "the signin")"
            case .headers(let question, _): "for headers to authorize \(question.channelName ?? "the signin")"
            case .reconnect(let question): "whether attempt \(question.attempt) may begin"
            }
        }
    }

    enum Answer {
        case input(SessionInput)
        case headers(HTTPHeaders)
    }

    private static let delayMsMax: Int64 = 86_400_000

    let subject: Subject
    private let client: Client
    private let isOver = Atomic<Bool>(false)
    private(set) var handle: UInt = 0

    init(client: Client, _ subject: Subject) {
        self.client = client
        self.subject = subject
        handle = Handles.register(self, as: .request)
    }

    var id: QuestionID {
        switch subject {
        case .authorization(let question), .headers(let question, _): question.id
        case .reconnect(let question): question.id
        }
    }

    /// `BIRD_REQUEST_*`.
    var kind: Int32 {
        switch subject {
        case .authorization(let question):
            question.channelName == nil ? BIRD_REQUEST_AUTHORIZE_MEMBER : BIRD_REQUEST_AUTHORIZE_CHANNEL
        case .headers: BIRD_REQUEST_HEADERS
        case .reconnect: BIRD_REQUEST_RECONNECT
        }
    }

    /// No answer is wanted any more. False if there was one.
    @discardableResult
    func end() -> Bool {
        guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        Handles.release(handle, .request)
        return true
    }

    // MARK: Answers

    package func authorize(auth: String, memberData: String?, sharedSecret: String?) throws(Fault) {
        guard case .authorization(let question) = subject else { throw mismatch }
        guard !auth.isEmpty else {
            throw Fault(BIRD_ERR_ARGUMENT, .authorization, field: "auth", "The signature must not be empty.")
        }
        guard question.channelName != nil || !(memberData ?? "").isEmpty else {
            throw Fault(BIRD_ERR_ARGUMENT, .authorization, field: "member_data", "A signin needs member_data.")
        }
        try answer(
            .input(
                .authorization(
                    question.id,
                    .granted(
                        auth: auth, memberData: memberData, sharedSecret: sharedSecret.flatMap(ChannelKey.init(base64:))
                    ))))
    }

    package func addHeaders(_ headers: [(name: String, value: String)]) throws(Fault) {
        guard case .headers = subject else { throw mismatch }
        var checked = HTTPHeaders()
        for (index, header) in headers.enumerated() {
            if let problem = checked.set(header.name, header.value) {
                throw Fault(
                    HTTPHeaders.isReserved(header.name) ? BIRD_ERR_VALUE : BIRD_ERR_ARGUMENT, .authorization,
                    field: "headers", "Argument headers[\(index)] \(problem).")
            }
        }
        try answer(.headers(checked))
    }

    package func proceed(delayMs: Int64) throws(Fault) {
        guard case .reconnect(let question) = subject else { throw mismatch }
        guard (0...Self.delayMsMax).contains(delayMs) else {
            throw Fault(
                BIRD_ERR_ARGUMENT, .argument, field: "delay_ms",
                "Argument delay_ms must be from 0 to \(Self.delayMsMax), not \(delayMs).")
        }
        try answer(.input(.reconnect(question.id, .proceed(delayMs: delayMs))))
    }

    package func fail(isRetriable: Bool, message: String?) throws(Fault) {
        switch subject {
        case .authorization(let question):
            let field = question.channelName == nil ? "member_authorizer" : "authorizer"
            try refuse(question, field, message ?? "The authorizer refused.", isRetriable)
        case .headers(let question, _):
            try refuse(question, "header_provider", message ?? "The header provider refused.", isRetriable)
        case .reconnect(let question):
            try answer(.input(.reconnect(question.id, .refuse(EdgeText.cut(message ?? "no reason was given")))))
        }
    }

    private func refuse(
        _ question: AuthorizationQuestion, _ field: String, _ message: String, _ isRetriable: Bool
    ) throws(Fault) {
        let fault = Fault(
            isRetriable ? BIRD_ERR_AUTH : BIRD_ERR_DENIED, .authorization, field: field, EdgeText.cut(message),
            isRetriable: isRetriable)
        try answer(.input(.authorization(question.id, .refused(fault, retryAfterMs: nil))))
    }

    private func answer(_ answer: Answer) throws(Fault) {
        guard end() else { throw Self.overFault }
        client.postUnbounded(.answered(id, answer))
    }

    // MARK: Faults

    package static let overFault = Fault(
        BIRD_ERR_ANSWERED, .authorization, field: "request",
        "The request has been answered, or nobody waits for its answer any more.")

    /// The answer is one to another kind of question; this one stays open.
    private var mismatch: Fault {
        let (what, function) =
            switch subject {
            case .authorization: ("an authorization", "bird_request_authorize")
            case .headers: ("headers", "bird_request_headers")
            case .reconnect: ("permission to reconnect", "bird_request_proceed")
            }
        return Fault(
            BIRD_ERR_ARGUMENT, .argument, field: "request",
            "The request asks for \(what): answer with \(function) or bird_request_fail.")
    }
}
