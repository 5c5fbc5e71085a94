import CBirdRealtimeABI

/// Asks the authorizer endpoint (Bird protocol 9 and 11.1) and reads its answer.
enum Authorizer {
    static func body(_ question: AuthorizationQuestion, dialect: Dialect) -> HTTPBody {
        switch dialect.authEncoding {
        case .json:
            var writer = ObjectWriter()
            writer.member(dialect.connectionIDKey, question.connectionID)
            writer.member(dialect.channelNameKey, question.channelName)
            return HTTPBody(type: "application/json", bytes: writer.finish())
        case .form:
            var form = "\(dialect.connectionIDKey)=\(Percent.encoded(question.connectionID))"
            if let name = question.channelName { form += "&\(dialect.channelNameKey)=\(Percent.encoded(name))" }
            return HTTPBody(type: "application/x-www-form-urlencoded", bytes: Array(form.utf8))
        }
    }

    static func answer(
        _ result: Result<HTTPAnswer, Fault>, question: AuthorizationQuestion, endpoint: String, dialect: Dialect
    ) -> AuthorizationAnswer {
        let what = question.channelName.map { "Channel authorization of \($0)" } ?? "Signin authorization"
        switch result {
        case .failure(var fault):
            fault.status = BIRD_ERR_AUTH
            fault.endpoint = endpoint
            fault.isRetriable = true
            fault.message = "\(what) failed: \(fault.message)"
            return .refused(fault, retryAfterMs: nil)
        case .success(let answer):
            guard dialect.needsAuthStatus200 ? answer.status == 200 : (200...299).contains(answer.status) else {
                return refusal(answer, what, endpoint)
            }
            return granted(answer, question: question, what, endpoint, dialect)
        }
    }

    private static func refusal(_ answer: HTTPAnswer, _ what: String, _ endpoint: String) -> AuthorizationAnswer {
        let isTransient = [408, 425, 429].contains(answer.status) || answer.status >= 500
        let isDenial = (400...499).contains(answer.status) && !isTransient
        var message = "\(what) failed (HTTP \(answer.status))"
        if (300...399).contains(answer.status) {
            message += ": redirects are not followed, Location is \(answer.location ?? "missing")"
        }
        return .refused(
            Fault(
                isDenial ? BIRD_ERR_DENIED : BIRD_ERR_AUTH, .authorization, field: "auth_endpoint", message + ".",
                httpStatus: answer.status, endpoint: endpoint, isRetriable: isTransient),
            retryAfterMs: answer.retryAfterMs)
    }

    private static func granted(
        _ answer: HTTPAnswer, question: AuthorizationQuestion, _ what: String, _ endpoint: String, _ dialect: Dialect
    ) -> AuthorizationAnswer {
        func unusable(_ problem: String) -> AuthorizationAnswer {
            .refused(
                Fault(
                    BIRD_ERR_AUTH, .authorization, field: "auth_endpoint", "\(what) failed: the answer \(problem).",
                    httpStatus: answer.status, endpoint: endpoint),
                retryAfterMs: nil)
        }
        guard !answer.isTooLarge else { return unusable("is larger than \(HTTPAnswer.bodyBytesMax) bytes") }
        guard let document = JSONDocument.parse(answer.body) else {
            let compression = answer.contentEncoding.map { "has the content-encoding \($0), which was not asked for" }
            return unusable(compression ?? "is not JSON")
        }
        guard let auth = document["auth"]?.string, !auth.isEmpty else {
            return unusable("has no \"auth\" string")
        }
        let key = question.channelName == nil ? dialect.identityKey : dialect.channelDataKey
        let memberData = document[key]?.string
        if question.channelName == nil, (memberData ?? "").isEmpty {
            return unusable("has no \"\(key)\" string")
        }
        return .granted(
            auth: auth, memberData: memberData,
            sharedSecret: document["shared_secret"]?.string.flatMap(ChannelKey.init(base64:)))
    }
}
