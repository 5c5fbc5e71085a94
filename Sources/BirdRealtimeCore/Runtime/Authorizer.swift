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
        let subject = question.channelName.map { "Channel authorization of \($0)" } ?? "Signin authorization"
        let what = "\(subject) at \(endpoint)"
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
        } else if answer.contentEncoding == nil, let words = OutsideText.words(of: answer.body) {
            message += ": \(words)"
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
        guard let document = JSONDocument.parse(withoutMark(answer.body)) else {
            let compression = answer.contentEncoding.map { "has the content-encoding \($0), which was not asked for" }
            // A page, such as that of a login, is repeated. Whatever else has a status of success may be a signature.
            let isPage = answer.body.first { $0 > 0x20 } == UInt8(ascii: "<")
            let words = isPage ? OutsideText.words(of: answer.body) : nil
            return unusable(compression ?? "is not JSON" + (words.map { ": \($0)" } ?? ""))
        }
        let keys = AnswerKeys(isSignin: question.channelName == nil, dialect)
        guard let auth = document["auth"]?.string, !auth.isEmpty else {
            return unusable("has no \"auth\" string\(keys.unknown(in: document))")
        }
        let memberData = keys.memberData.lazy.compactMap { document[$0]?.string }.first
        if question.channelName == nil, (memberData ?? "").isEmpty {
            return unusable("has no \"\(keys.memberData[0])\" string\(keys.unknown(in: document))")
        }
        return .granted(
            auth: auth, memberData: memberData,
            sharedSecret: document["shared_secret"]?.string.flatMap(ChannelKey.init(base64:)))
    }

    /// Some frameworks begin each answer with a byte order mark; RFC 8259 section 8.1 lets parsers ignore it.
    private static func withoutMark(_ body: [UInt8]) -> [UInt8] {
        body.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(body.dropFirst(3)) : body
    }
}

/// The keys of an authorizer's answer.
private struct AnswerKeys {
    private static let namedMax = 5
    private static let nameCharactersMax = 40

    /// The dialect's own first. Programs that go from one protocol to the other keep their answers.
    let memberData: [String]

    init(isSignin: Bool, _ dialect: Dialect) {
        let own = isSignin ? dialect.identityKey : dialect.channelDataKey
        memberData = own == Dialect.bird.channelDataKey ? [own] : [own, Dialect.bird.channelDataKey]
    }

    /// The keys that mean nothing here, for a message: one of them may be a misspelt one.
    func unknown(in document: JSONNode) -> String {
        let known = Set(memberData + ["auth", "shared_secret"])
        let names = document.dictionary.keys.map(\.text).filter { !known.contains($0) }.sorted()
        guard !names.isEmpty else { return "" }
        let shown = names.prefix(Self.namedMax).map { "\"\($0.prefix(Self.nameCharactersMax))\"" }
        let more = names.count > Self.namedMax ? " and others" : ""
        return "; unknown keys: \(shown.joined(separator: ", "))\(more)"
    }
}
