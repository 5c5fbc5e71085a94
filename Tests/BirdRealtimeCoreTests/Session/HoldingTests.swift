import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// What the edge holds for this connection and what the program holds do not part, however answers are lost, late or refusals: no
/// unsubscribe is sent behind a subscribe that has no answer (Bird protocol 8.2).
@Suite struct HoldingTests {
    private static func connected(_ dialect: Dialect = .bird) -> SessionDriver {
        var driver = SessionDriver(dialect: dialect)
        driver.connect(activityTimeout: "86400")
        _ = driver.take()
        return driver
    }

    // MARK: - Leaving before the answer

    @Test(arguments: ["bird", "pusher"])
    func whatHasNoAnswerIsLeftOnceItHasOne(dialect: String) throws {
        var driver = Self.connected(try #require(Dialect.named(dialect)))
        driver.subscribe("orders", 1)
        _ = driver.take()
        driver.unsubscribe(1)
        #expect(driver.take() == ["channel 1 unsubscribed"])
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders"])
        driver.confirm("orders")
        #expect(driver.take() == [], "nobody has asked for it, and nobody answers it")
    }

    @Test func whatWasRefusedIsNotLeft() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        _ = driver.take()
        driver.edge("bird_internal:subscription_error", "orders", data: "{}")
        driver.confirm("orders")
        #expect(driver.take() == [])
    }

    @Test func successesForNamesThatNobodyHasAskedForAreDropped() {
        var driver = Self.connected()
        driver.subscribe("private-a", 1)
        _ = driver.take()
        driver.confirm("private-a")
        driver.confirm("never-wanted")
        #expect(driver.take() == [], "neither held nor owed: the authorizer is still asked")
        driver.grant()
        driver.confirm("private-a")
        #expect(driver.state(of: "private-a") == .subscribed)
    }

    @Test func whatIsNotWrittenIsNotConfirmed() {
        var driver = Self.connected()
        driver.isBlocked = true
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        #expect(driver.state(of: "orders") == .pending)
        driver.isBlocked = false
        driver.confirm("orders")
        #expect(driver.state(of: "orders") == .subscribed)
    }

    @Test func aSuccessAfterAWrongDenialIsAnsweredIfNobodyWantsIt() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.edgeError("about something else")
        driver.advance(2_000)
        #expect(driver.state(of: "orders") == .failed)
        driver.unsubscribe(1)
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders"])
    }

    @Test func aSuccessAfterAWrongDenialIsNotTheAnswerToTheNextFrame() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.edgeError("about something else")
        driver.advance(2_000)
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        #expect(driver.state(of: "orders") == .subscribed)
        _ = driver.take()
        driver.unsubscribe(1)
        #expect(driver.take("send unsubscribe") == [], "the second frame has no answer")
        driver.confirm("orders")
        #expect(driver.take("send unsubscribe") == ["send unsubscribe orders"])
    }

    @Test func whatTheEdgeHasNotReadIsNotAnswered() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.isBlocked = true
        driver.advance(31_500)
        #expect(driver.state(of: "orders") == .pending, "it asks again")
        driver.edge("bird_internal:subscription_error", "orders", data: "{}")
        #expect(driver.state(of: "orders") == .pending, "that was the first frame")
        driver.confirm("orders")
        driver.confirm("orders")
        _ = driver.take()
        driver.unsubscribe(1)
        #expect(driver.take("send unsubscribe") == [])
        driver.isBlocked = false
        driver.confirm("orders")
        #expect(driver.take("send unsubscribe") == ["send unsubscribe orders"])
    }

    @Test func anErrorThatNamesAChannelWhichTheEdgeHoldsAnswersNothing() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.advance(31_500)
        #expect(driver.state(of: "orders") == .pending, "it asks again")
        driver.unsubscribe(1)
        driver.confirm("orders")
        driver.edge("bird:error", "orders", data: #"{"code":4009,"message":"slow down"}"#)
        #expect(driver.take("send unsubscribe") == [])
        driver.confirm("orders")
        #expect(driver.take("send unsubscribe") == ["send unsubscribe orders"])
    }

    @Test func whoWaitsForTheAuthorizerKeepsItsPlace() {
        var driver = SessionDriver { $0.authorizationsInFlightMax = 1 }
        driver.connect(activityTimeout: "86400")
        driver.subscribe("private-a", 1)
        driver.grant("k:1")
        driver.advance(31_500)
        driver.grant("k:1")
        driver.unsubscribe(1)
        driver.subscribe("private-b", 2)
        driver.subscribe("private-a", 3)
        driver.confirm("private-a")
        _ = driver.take()
        driver.refuse()
        #expect(driver.take("authorize") == ["authorize 4 private-a for 1.1"])
    }

    @Test func whatAnErrorHasDeniedIsAskedForAnew() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.edgeError("no orders")
        driver.advance(2_000)
        #expect(driver.state(of: "orders") == .failed)
        driver.unsubscribe(1)
        _ = driver.take()
        driver.subscribe("orders", 2)
        #expect(driver.take("send") == ["send subscribe orders"], "nobody waits for another answer to the first frame")
    }

    @Test func whatIsOwedHasABound() {
        var driver = Self.connected()
        let first = "orders-1"
        for number in 1...UInt64(ChannelTable.owedMax) + 1 {
            driver.subscribe("orders-\(number)", number)
            driver.unsubscribe(number)
        }
        #expect(driver.session.channels.owed.count == ChannelTable.owedMax)
        _ = driver.take()
        driver.confirm(first)
        #expect(driver.take() == [], "the first is forgotten")
        driver.confirm("orders-2")
        #expect(driver.take() == ["send unsubscribe orders-2"])
        #expect(driver.session.channels.owed.count == ChannelTable.owedMax - 1)
    }

    @Test func nothingIsOwedOnTheNextConnection() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == [])
        #expect(driver.session.channels.count == 0)
        driver.subscribe("orders", 2)
        #expect(driver.take("send") == ["send subscribe orders"])
    }

    // MARK: - Coming back before the answer

    @Test func whoComesBackTakesTheFrameThatIsUnderWay() {
        var driver = Self.connected()
        driver.subscribe("orders", 1, operation: 5)
        driver.unsubscribe(1)
        _ = driver.take()
        driver.subscribe("orders", 2, operation: 6)
        #expect(driver.take() == ["channel 2 pending"])
        driver.confirm("orders")
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2", "completed 6 \(BIRD_OK)"])
        driver.unsubscribe(2)
        #expect(driver.take("send") == ["send unsubscribe orders"])
    }

    @Test("S1: an unrelated error, the success of the first and the refusal of a second leave no channel that is none")
    func anErrorInBetweenDoesNotMatter() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        #expect(driver.take("send") == ["send subscribe orders"], "there is no second that could be refused")
        driver.edgeError("about something else")
        driver.confirm("orders")
        driver.edge("bird:pong")
        #expect(driver.state(of: "orders") == .subscribed)
        driver.advance(60_000)
        #expect(driver.state(of: "orders") == .subscribed)
    }

    @Test func theTimeForTheAnswerBeginsAnew() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.advance(29_000)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        driver.advance(29_999)
        #expect(driver.state(of: "orders") == .pending)
        _ = driver.take()
        driver.advance(1)
        #expect(driver.take("subscription failed") == ["subscription failed 2 \(BIRD_ERR_TIMEOUT) will retry"])
    }

    @Test("B3: leaving and coming back while nothing is written sends nothing more")
    func framesThatAreNotWrittenAreTakenToo() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        driver.isBlocked = true
        _ = driver.take()
        for reference in 1...1_000 as ClosedRange<UInt64> {
            driver.unsubscribe(reference)
            driver.subscribe("orders", reference + 1)
        }
        #expect(driver.take("send") == ["send unsubscribe orders", "send subscribe orders"])
        driver.advance(100_000)
        #expect(driver.state(of: "orders") == .pending, "its time begins when it is written")
        driver.isBlocked = false
        driver.advance(29_999)
        driver.confirm("orders")
        #expect(driver.take("subscribed") == ["subscribed 1001"])
    }

    @Test func theSameAuthorizationIsTheSameQuestion() {
        var driver = Self.connected()
        driver.subscribe("presence-a", 1)
        driver.grant("k:1", memberData: #"{"member_id":"m"}"#)
        driver.unsubscribe(1)
        driver.subscribe("presence-a", 2)
        driver.grant("k:1", memberData: #"{"member_id":"m"}"#)
        _ = driver.take()
        driver.confirm("presence-a", data: #"{"presence":{"ids":["m"],"hash":{},"count":1}}"#)
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2 [m] me m"])
    }

    @Test(arguments: [("k:2", "m"), ("k:1", "n")])
    func anotherAuthorizationFollowsOneAfterTheOther(auth: String, member: String) {
        var driver = Self.connected()
        driver.subscribe("presence-a", 1)
        driver.grant("k:1", memberData: #"{"member_id":"m"}"#)
        driver.unsubscribe(1)
        driver.subscribe("presence-a", 2)
        _ = driver.take()
        driver.grant(auth, memberData: "{\"member_id\":\"\(member)\"}")
        #expect(driver.take() == ["channel 2 pending"])
        driver.confirm("presence-a", data: #"{"presence":{"ids":["m"],"hash":{},"count":1}}"#)
        #expect(
            driver.take() == [
                "send unsubscribe presence-a", "send subscribe presence-a \(auth) {\"member_id\":\"\(member)\"}",
            ])
        driver.confirm("presence-a", data: "{\"presence\":{\"ids\":[\"\(member)\"],\"hash\":{},\"count\":1}}")
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2 [\(member)] me \(member)"])
    }

    @Test func anotherAuthorizationIsSentAtOnceWhenTheFirstWasRefused() {
        var driver = Self.connected()
        driver.subscribe("private-a", 1)
        driver.grant("k:1")
        driver.unsubscribe(1)
        driver.subscribe("private-a", 2)
        driver.grant("k:2")
        _ = driver.take()
        driver.edge("bird_internal:subscription_error", "private-a", data: "{}")
        #expect(driver.take() == ["send subscribe private-a k:2"])
    }

    @Test func anotherAuthorizationDoesNotWaitForAnAnswerThatNeverComes() {
        var driver = Self.connected()
        driver.subscribe("private-a", 1)
        driver.grant("k:1")
        driver.unsubscribe(1)
        driver.subscribe("private-a", 2)
        driver.grant("k:2")
        _ = driver.take()
        driver.advance(30_000)
        #expect(driver.take() == ["send subscribe private-a k:2"])
        driver.confirm("private-a")
        #expect(driver.state(of: "private-a") == .subscribed)
    }

    @Test func anAuthorizationForAnEarlierIDIsAskedForAgain() {
        var driver = Self.connected()
        driver.subscribe("private-a", 1)
        driver.grant("k:1")
        driver.unsubscribe(1)
        driver.subscribe("private-a", 2)
        driver.grant("k:2")
        _ = driver.take()
        driver.handshake("2.2")
        #expect(driver.take("authorize") == ["authorize 3 private-a for 2.2"])
        driver.confirm("private-a")
        driver.grant("k:3")
        #expect(driver.take("send") == ["send unsubscribe private-a", "send subscribe private-a k:3"])
    }

    @Test func whoComesBackAndStillAsksTheAuthorizerLeavesFirst() {
        var driver = Self.connected(.pusher)
        driver.subscribe("private-a", 1)
        driver.grant()
        driver.unsubscribe(1)
        driver.subscribe("private-a", 2)
        _ = driver.take()
        driver.confirm("private-a")
        #expect(driver.take() == ["send unsubscribe private-a"])
        driver.grant("k:2")
        driver.confirm("private-a")
        #expect(driver.take("send") == ["send subscribe private-a k:2"])
        #expect(driver.state(of: "private-a") == .subscribed)
    }

    @Test func whomTheAuthorizerDeniesNowIsNotSubscribedByAnEarlierFrame() {
        var driver = Self.connected()
        driver.subscribe("private-a", 1)
        driver.grant()
        driver.unsubscribe(1)
        driver.subscribe("private-a", 2)
        driver.refuse()
        _ = driver.take()
        driver.confirm("private-a")
        #expect(driver.take() == ["send unsubscribe private-a"])
        #expect(driver.state(of: "private-a") == .failed)
    }

    // MARK: - Frames that were overtaken

    @Test func aRefusalThatNamesTheChannelIsTheAnswerToAFrame() {
        var driver = Self.connected(.pusher)
        driver.subscribe("orders", 1)
        driver.advance(30_000)
        driver.advanceToDeadline()
        driver.edge(driver.session.dialect.internalSubscriptionError, "orders", data: "{}")
        driver.confirm("orders")
        #expect(driver.state(of: "orders") == .subscribed)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        driver.unsubscribe(2)
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders"])
    }

    /// A subscribed channel with a frame that has no answer.
    private static func overtaken(pongs: Bool) -> SessionDriver {
        var driver = connected()
        if pongs {
            driver.subscribe("first", 9)
            driver.edgeError()
            driver.confirm("first")
            driver.edge("bird:pong")
        }
        driver.subscribe("orders", 1)
        driver.advance(30_000)
        driver.advanceToDeadline()
        driver.confirm("orders")
        _ = driver.take()
        return driver
    }

    @Test func aSubscribedChannelIsLeftWhenThePongSaysThatNoAnswerIsUnderWay() {
        var driver = Self.overtaken(pongs: true)
        driver.unsubscribe(1)
        #expect(driver.take() == ["send ping", "channel 1 unsubscribed"])
        driver.advance(30_000)
        #expect(driver.take("send") == ["send ping"], "an edge that answers pings is waited for")
        driver.edge("bird:pong")
        #expect(driver.take() == ["send unsubscribe orders"])
        driver.confirm("orders")
        #expect(driver.take() == [])
    }

    @Test func aSubscribedChannelIsLeftWithItsLastAnswer() {
        var driver = Self.overtaken(pongs: true)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        #expect(driver.state(of: "orders") == .pending)
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders", "send subscribe orders"])
        driver.confirm("orders")
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2"])
    }

    @Test func anEdgeWithoutPongsIsWaitedForNoLongerThanForAnyAnswer() {
        var driver = Self.overtaken(pongs: false)
        driver.unsubscribe(1)
        driver.advance(29_999)
        #expect(driver.take("send") == ["send ping"])
        driver.advance(1)
        #expect(driver.take() == ["send unsubscribe orders"])
    }
}
