import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// Bird protocol 9.1 to 9.3 and 11.1.
@Suite struct AuthorizerTests {
    private static let channel = question("presence-lobby")
    private static let signin = question(nil)

    private static func question(_ name: String?) -> AuthorizationQuestion {
        AuthorizationQuestion(
            id: QuestionID(number: 1), connectionID: "4242.1357", channelName: name,
            deadline: Instant(milliseconds: 0))
    }

    private func answer(
        _ status: Int32, _ body: String, _ question: AuthorizationQuestion = channel, retryAfterMs: Int64? = nil,
        location: String? = nil, dialect: Dialect = .bird
    ) -> AuthorizationAnswer {
        Authorizer.answer(
            .success(
                HTTPAnswer(status: status, body: Array(body.utf8), retryAfterMs: retryAfterMs, location: location)),
            question: question, endpoint: "https://auth.example.test/bird", dialect: dialect)
    }

    private func fault(_ answer: AuthorizationAnswer) throws -> Fault {
        guard case .refused(let fault, _) = answer else { throw AnswerError.granted }
        return fault
    }

    private enum AnswerError: Error {
        case granted
    }

    @Test func asksAsTheProtocolSays() {
        let bodies = [
            (Self.channel, Dialect.bird, #"{"connection_id":"4242.1357","channel_name":"presence-lobby"}"#),
            (Self.signin, Dialect.bird, #"{"connection_id":"4242.1357"}"#),
            (Self.channel, Dialect.pusher, "socket_id=4242.1357&channel_name=presence-lobby"),
            (Self.signin, Dialect.pusher, "socket_id=4242.1357"),
            (
                Self.question("private-a=b@c,d;e"), Dialect.pusher,
                "socket_id=4242.1357&channel_name=private-a%3Db%40c%2Cd%3Be"
            ),
        ]
        for (question, dialect, expected) in bodies {
            let body = Authorizer.body(question, dialect: dialect)
            #expect(String(decoding: body.bytes, as: UTF8.self) == expected)
            #expect(
                body.type
                    == (dialect === Dialect.bird ? "application/json" : "application/x-www-form-urlencoded"))
        }
    }

    @Test func aDialectHasItsOwnKeysAndMayTakeOnly200() throws {
        #expect(
            answer(200, #"{"auth":"k:s","channel_data":"{}","member_data":"x"}"#, dialect: .pusher)
                == .granted(auth: "k:s", memberData: "{}", sharedSecret: nil))
        #expect(
            answer(200, #"{"auth":"k:s","user_data":"{}"}"#, Self.signin, dialect: .pusher)
                == .granted(auth: "k:s", memberData: "{}", sharedSecret: nil))
        #expect(
            answer(200, #"{"auth":"k:s","member_data":"{}"}"#, dialect: .pusher)
                == .granted(auth: "k:s", memberData: "{}", sharedSecret: nil), "ours is taken as well")
        #expect(
            answer(200, #"{"auth":"k:s","member_data":"{}"}"#, Self.signin, dialect: .pusher)
                == .granted(auth: "k:s", memberData: "{}", sharedSecret: nil))
        #expect(
            answer(200, #"{"auth":"k:s","channel_data":"{}"}"#)
                == .granted(auth: "k:s", memberData: nil, sharedSecret: nil), "Bird has one key")
        let fault = try fault(answer(201, #"{"auth":"k:s"}"#, dialect: .pusher))
        #expect(fault.status == BIRD_ERR_AUTH && fault.httpStatus == 201 && !fault.isRetriable)
    }

    @Test func takesTheAnswerAsItStands() {
        #expect(
            answer(201, #"{"auth":"k:s","member_data":"{\"member_id\":\"m\"}","more":1}"#)
                == .granted(auth: "k:s", memberData: #"{"member_id":"m"}"#, sharedSecret: nil))
        #expect(
            answer(200, #"{"auth":"k:s","shared_secret":"\#(Vault.secret)"}"#)
                == .granted(auth: "k:s", memberData: nil, sharedSecret: ChannelKey(base64: Vault.secret)))
        // What is no key is none.
        #expect(
            answer(200, #"{"auth":"k:s","shared_secret":"c2VjcmV0"}"#)
                == .granted(auth: "k:s", memberData: nil, sharedSecret: nil))
        // member_data that is no string does not count.
        #expect(
            answer(200, #"{"auth":"k:s","member_data":{"member_id":"m"}}"#)
                == .granted(auth: "k:s", memberData: nil, sharedSecret: nil))
    }

    @Test(arguments: ["<html>", "", "[]", "{}", #"{"auth":""}"#, #"{"auth":1}"#])
    func refusesUnusableBodies(_ body: String) throws {
        let fault = try fault(answer(200, body))
        #expect(fault.status == BIRD_ERR_AUTH)
        #expect(!fault.isRetriable)
        #expect(fault.endpoint == "https://auth.example.test/bird")
    }

    @Test("P6: keys that are unknown are named when something is missing")
    func namesUnknownKeys() throws {
        let keys = try fault(answer(200, #"{"auht":"k:s","member_data":"{}","\u0061":1}"#)).message
        #expect(keys.contains(#"has no "auth" string; unknown keys: "a", "auht"."#), "\(keys)")
        let signin = try fault(answer(200, #"{"auth":"k:s","user_date":"{}"}"#, Self.signin, dialect: .pusher)).message
        #expect(signin.contains(#"has no "user_data" string; unknown keys: "user_date"."#), "\(signin)")
        let many = "{" + (1...9).map { "\"\(String(repeating: "x", count: 99))\($0)\":1" }.joined(separator: ",") + "}"
        #expect(try fault(answer(200, many)).message.hasSuffix(" and others."))
        #expect(try fault(answer(200, many)).message.utf8.count < 400)
        #expect(!(try fault(answer(200, "{}")).message.contains("unknown keys")))
    }

    @Test("S12: an answer may begin with a byte order mark")
    func byteOrderMark() throws {
        #expect(answer(200, "\u{FEFF}{\"auth\":\"k:s\"}") == .granted(auth: "k:s", memberData: nil, sharedSecret: nil))
        _ = try fault(answer(200, "\u{FEFF}"))
        _ = try fault(answer(200, "\u{FEFF}\u{FEFF}{\"auth\":\"k:s\"}"))
    }

    @Test func signinNeedsMemberData() throws {
        #expect(try fault(answer(200, #"{"auth":"k:s"}"#, Self.signin)).message.contains("member_data"))
        #expect(
            answer(200, #"{"auth":"k:s","member_data":"{}"}"#, Self.signin)
                == .granted(auth: "k:s", memberData: "{}", sharedSecret: nil))
    }

    @Test(arguments: [
        (400, false), (401, false), (403, false), (404, false), (408, true), (425, true), (429, true), (500, true),
        (503, true), (301, false),
    ])
    func tellsDenialsFromTroubles(_ status: Int32, _ isTransient: Bool) throws {
        let fault = try fault(answer(status, ""))
        #expect(fault.isRetriable == isTransient)
        #expect(fault.status == (isTransient || status < 400 ? BIRD_ERR_AUTH : BIRD_ERR_DENIED))
        #expect(fault.httpStatus == status)
        #expect(fault.code == 0)
    }

    @Test func passesRetryAfterOnAndNamesARedirect() throws {
        guard case .refused(_, let retryAfterMs) = answer(429, "", retryAfterMs: 3_000) else {
            throw AnswerError.granted
        }
        #expect(retryAfterMs == 3_000)
        #expect(
            try fault(answer(302, "", location: "https://elsewhere.test/")).message.contains("https://elsewhere.test/"))
    }
}
