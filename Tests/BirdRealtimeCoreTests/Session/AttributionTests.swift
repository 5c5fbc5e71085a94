import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// `bird:error` names no channel (Bird protocol 16). What happens at an edge that answers no pings; for one that does see `FenceTests`.
@Suite struct AttributionTests {
    @Test("AUTH-19: the only one that waits is denied after two seconds, the others go on")
    func theOnlyOneThatWaits() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1, operation: 5)
        driver.grant("k:a")
        driver.subscribe("private-b", 2)
        _ = driver.take()
        driver.edgeError("Invalid signature")
        #expect(driver.take() == ["error \(BIRD_ERR_SERVER) 0 Invalid signature", "send ping"])
        driver.grant("k:b")
        driver.confirm("private-b")
        _ = driver.take()
        driver.advance(1_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(
            driver.take() == [
                "channel 1 failed", "subscription failed 1 \(BIRD_ERR_DENIED)", "completed 5 \(BIRD_ERR_DENIED)",
            ])
        guard case .subscriptionFailed(_, let fault, _, false)? = driver.events.dropLast().last else {
            Issue.record("no denial")
            return
        }
        #expect(fault.message.contains("Invalid signature"))
        driver.advance(60_000)
        #expect(driver.take() == [])
        driver.subscribe("private-a", 1)
        #expect(driver.take("authorize").count == 1, "can be asked for again")
    }

    @Test func aSuccessInBetweenWins() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.edgeError()
        driver.advance(1_999)
        driver.confirm("orders")
        driver.advance(60_000)
        #expect(driver.take("subscription failed") == [])
        #expect(driver.state(of: "orders") == .subscribed)
    }

    @Test func nobodyIsBlamedWhenSeveralWait() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.subscribe("prices", 2)
        driver.edgeError()
        _ = driver.take()
        driver.advance(29_999)
        #expect(driver.take() == [])
        driver.confirm("orders")
        driver.advance(1)
        #expect(driver.take("subscription failed") == ["subscription failed 2 \(BIRD_ERR_TIMEOUT) will retry"])
    }

    @Test func anAbandonedSubscribeWaitsTooForTwiceTheTimeOfAnAnswer() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "86400")
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.advance(59_990)
        driver.subscribe("prices", 2)
        driver.edgeError("first")
        driver.advance(10)
        driver.edgeError("second")
        _ = driver.take()
        driver.advance(1_999)
        #expect(driver.state(of: "prices") == .pending)
        driver.advance(1)
        #expect(driver.take("subscription failed") == ["subscription failed 2 \(BIRD_ERR_DENIED)"])
    }

    @Test func aFrameThatWasOvertakenWaitsToo() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "86400")
        driver.subscribe("orders", 1)
        driver.advance(30_000)
        driver.advanceToDeadline()
        driver.confirm("orders")
        driver.subscribe("prices", 2)
        driver.edgeError("Existing subscription to channel orders")
        driver.advance(10_000)
        #expect(driver.state(of: "prices") == .pending)
    }

    @Test func whoWasNotAnsweredInTimeStillWaits() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "86400")
        driver.subscribe("private-a", 1)
        driver.grant()
        driver.advance(30_000)
        driver.subscribe("prices", 2)
        driver.edgeError("Invalid signature")
        driver.advance(10_000)
        #expect(driver.state(of: "prices") == .pending)
    }

    @Test func aSigninAndASubscribeWaitTogether() {
        var driver = SessionDriver()
        driver.connect()
        driver.input(.signin(refresh: false, operation: 3))
        driver.grant(memberData: "{}")
        driver.subscribe("orders", 1)
        driver.edgeError()
        driver.advance(10_000)
        #expect(driver.state(of: "orders") == .pending)
        driver.confirm("orders")
        driver.edgeError()
        _ = driver.take()
        driver.advance(2_000)
        #expect(driver.take("completed") == ["completed 3 \(BIRD_ERR_DENIED)"])
    }

    @Test(arguments: [4301, 4302])
    func errorsAboutSomethingElseTouchNobody(code: Int) {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("left", 1)
        driver.unsubscribe(1)
        driver.input(.signin(refresh: false, operation: 3))
        driver.grant(memberData: "{}")
        driver.edgeError("slow down", code: code)
        driver.edgeError("about the channel that was left")
        _ = driver.take()
        driver.advance(10_000)
        #expect(driver.take("completed") == [])
        driver.confirmSignin()
        #expect(driver.take("completed") == ["completed 3 \(BIRD_OK)"])
    }

    @Test func theFirstCauseStaysAndTheDeadlineIsNotMoved() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.edgeError("first", code: 1)
        driver.advance(1_500)
        driver.edgeError("second", code: 2)
        driver.advance(500)
        guard case .subscriptionFailed(_, let fault, _, false)? = driver.events.last else {
            Issue.record("no denial")
            return
        }
        #expect(fault.code == 1 && fault.message.contains("first"))
    }

    @Test func aDeadlineThatIsNearerStays() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.advance(29_500)
        driver.edgeError()
        _ = driver.take()
        driver.advance(500)
        #expect(driver.take("subscription failed") == ["subscription failed 1 \(BIRD_ERR_DENIED)"])
    }

    @Test func aSigninIsBlamedToo() {
        var driver = SessionDriver()
        driver.connect()
        driver.input(.signin(refresh: false, operation: 3))
        driver.grant(memberData: "{}")
        driver.edgeError("Invalid signature")
        _ = driver.take()
        driver.advance(2_000)
        #expect(driver.take() == ["completed 3 \(BIRD_ERR_DENIED)"])
        driver.advance(60_000)
        #expect(driver.take("authorize") == [], "final")
    }

    @Test func aMemberChannelIsBlamedTooAndCountsAsWaiting() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        driver.subscribe("orders", 1)
        driver.edgeError()
        driver.advance(5_000)
        #expect(driver.state(of: "orders") == .pending)
        driver.confirm("orders")
        driver.edgeError()
        _ = driver.take()
        driver.advance(2_000)
        #expect(driver.take() == ["channel 99 failed", "subscription failed 99 \(BIRD_ERR_DENIED)"])
    }

    @Test(arguments: [
        (#"{"code":null,"message":"m"}"#, 0, "m"), (#"{"code":4005,"message":"m"}"#, 4005, "m"),
        (#"{"code":"4005","message":"m"}"#, 0, "m"), (#"{"code":1e9,"message":"m"}"#, 0, "m"),
        (#"{"code":99999999999}"#, 0, "The edge reported an error without a message."),
        (#"{"message":7}"#, 0, "The edge reported an error without a message."),
        ("just text", 0, "just text"), ("\"quoted\"", 0, "quoted"),
    ])
    func shapes(data: String, code: Int32, message: String) {
        var driver = SessionDriver()
        driver.connect()
        _ = driver.take()
        driver.edge("bird:error", data: data)
        #expect(driver.take() == ["error \(BIRD_ERR_SERVER) \(code) \(message)"])
        #expect(driver.session.state == .connected)
    }

    @Test func anErrorBeforeTheHandshakeIsToldAndBlamesNobody() {
        var driver = SessionDriver()
        driver.subscribe("orders", 1)
        driver.input(.connect)
        _ = driver.take()
        driver.edgeError("early")
        #expect(driver.take() == ["error \(BIRD_ERR_SERVER) 0 early"])
        driver.handshake()
        driver.advance(10_000)
        #expect(driver.state(of: "orders") == .pending)
    }
}
