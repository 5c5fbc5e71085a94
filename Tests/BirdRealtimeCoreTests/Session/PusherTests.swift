import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// A session that speaks Pusher Channels protocol 7 (Bird protocol 23).
@Suite struct PusherTests {
    private static func connected() -> SessionDriver {
        var driver = SessionDriver(dialect: .pusher)
        driver.input(.connect)
        driver.input(.transportOpened(driver.transport))
        driver.edge("pusher:connection_established", data: #"{"socket_id":"4242.1357","activity_timeout":120}"#)
        _ = driver.take()
        return driver
    }

    private static func sent(_ driver: borrowing SessionDriver) -> [String] {
        driver.effects.compactMap {
            guard case .send(_, let bytes, _) = $0 else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    @Test func presence() {
        var driver = Self.connected()
        #expect(driver.session.connectionID == "4242.1357")
        driver.subscribe("presence-lobby", 1)
        driver.grant("pk:ab", memberData: #"{"user_id":"m_7"}"#)
        driver.edge(
            "pusher_internal:subscription_succeeded", "presence-lobby",
            data: #"{"presence":{"ids":["m_7"],"hash":{"m_7":1},"count":1}}"#)
        driver.edge("pusher_internal:member_added", "presence-lobby", data: #"{"user_id":9,"user_info":2}"#)
        driver.edge("pusher_internal:member_removed", "presence-lobby", data: #"{"user_id":"9"}"#)
        driver.edge("pusher_internal:subscription_count", "presence-lobby", data: #"{"subscription_count":5}"#)
        driver.edge("pusher:cache_miss", "presence-lobby")
        driver.edge("pusher_internal:unheard_of", "presence-lobby")
        driver.edge("bird_internal:member_added", "presence-lobby", data: "1")
        #expect(
            driver.take() == [
                "channel 1 authorizing", "authorize 1 presence-lobby for 4242.1357", "channel 1 pending",
                #"send subscribe presence-lobby pk:ab {"user_id":"m_7"}"#, "channel 1 subscribed",
                "subscribed 1 [m_7=1] me m_7", "added 1 9=2", "removed 1 9=2", #"count 1 {"subscription_count":5}"#,
                "event 1 pusher:cache_miss -", "event 1 bird_internal:member_added 1",
            ])
    }

    @Test("the id of the identity is spelled otherwise than that of presence, and programs read of both alike")
    func signin() {
        var driver = Self.connected()
        driver.input(.signin(refresh: false, operation: 3))
        driver.grant("pk:ab", memberData: #"{"id":"m_7"}"#)
        driver.edge(
            "pusher:signin_success",
            data: #"{"user_data":"{\"id\":\"m_7\",\"user_info\":{\"name\":\"Noor\"},\"watchlist\":[\"m_8\"]}"}"#)
        #expect(
            driver.take() == [
                "authorize 1 signin for 4242.1357", #"send signin pk:ab {"id":"m_7"}"#, "identity m_7",
                "channel 99 pending", "send subscribe #server-to-user-m_7", #"signed in m_7={"name":"Noor"}"#,
                "completed 3 \(BIRD_OK)",
            ])
        guard case .completed(3, true, nil, let memberData)? = driver.events.last else {
            Issue.record("no completion")
            return
        }
        #expect(memberData == #"{"member_id":"m_7","member_info":{"name":"Noor"}}"#)
        #expect(
            Self.sent(driver) == [
                #"{"event":"pusher:signin","data":{"auth":"pk:ab","user_data":"{\"id\":\"m_7\"}"}}"#,
                ##"{"event":"pusher:subscribe","data":{"channel":"#server-to-user-m_7","auth":""}}"##,
            ])
    }

    @Test func aPublicSubscribeCarriesAnEmptyAuth() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        #expect(Self.sent(driver) == [#"{"event":"pusher:subscribe","data":{"channel":"orders","auth":""}}"#])
    }

    @Test func pingsCarryAnEmptyObject() {
        var driver = Self.connected()
        driver.edge("pusher:ping", data: "{}")
        driver.advance(120_000)
        #expect(Self.sent(driver) == [#"{"event":"pusher:pong","data":{}}"#, #"{"event":"pusher:ping","data":{}}"#])
    }

    @Test("the smaller of both activity timeouts counts")
    func activityTimeout() {
        for (own, server, expected) in [(nil, 300, 120_000), (60_000, 300, 60_000), (nil, 30, 30_000)]
            as [(Int64?, Int, Int64)]
        {
            var driver = SessionDriver({ $0.activityTimeoutMs = own }, dialect: .pusher)
            driver.connect(activityTimeout: "\(server)")
            _ = driver.take()
            driver.advance(expected - 1)
            #expect(driver.take("send") == [])
            driver.advance(1)
            #expect(driver.take("send") == ["send ping"])
        }
    }

    @Test(
        "refusals are final, the rest is tried again",
        arguments: [
            (4000, true), (4001, true), (4009, true), (4099, true), (4100, false), (4200, false), (4299, false),
            (4300, true), (4301, true), (4999, true), (1000, false), (1006, false), (3999, false),
        ] as [(UInt16, Bool)])
    func closeCodes(code: UInt16, isFinal: Bool) {
        var driver = Self.connected()
        driver.close(code, "why")
        #expect(driver.session.state == (isFinal ? .failed : .unavailable))
        #expect((driver.session.nextDeadline == nil) == isFinal)
        #expect(driver.take("error").isEmpty != isFinal)
    }

    @Test func errorsAreToldAndCancelNothing() {
        var driver = Self.connected()
        driver.subscribe("private-a", 1)
        driver.edge("pusher:error", data: #"{"code":null,"message":"something"}"#)
        driver.grant()
        driver.edge("pusher_internal:subscription_succeeded", "private-a", data: "{}")
        #expect(driver.take("error") == ["error \(BIRD_ERR_SERVER) 0 something"])
        #expect(driver.state(of: "private-a") == .subscribed)
    }

    @Test func aServerOfTheOtherProtocolIsTold() {
        var driver = SessionDriver(dialect: .pusher)
        driver.input(.connect)
        driver.input(.transportOpened(driver.transport))
        driver.edge("pusher:connection_established", data: #"{"connection_id":"4242.1357"}"#)
        #expect(driver.session.state == .failed)
        guard case .error(let fault)? = driver.events.dropFirst().first else {
            Issue.record("no error")
            return
        }
        #expect(fault.message.contains("socket_id") && fault.message.contains("dialect"))
    }
}
