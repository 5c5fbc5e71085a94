import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// What the edge holds for this connection and what the program holds do not part for good, however answers are lost, late or
/// taken for others (Bird protocol 8.2).
@Suite struct HoldingTests {
    private static func connected(_ dialect: Dialect = .bird) -> SessionDriver {
        var driver = SessionDriver(dialect: dialect)
        driver.connect(activityTimeout: "86400")
        _ = driver.take()
        return driver
    }

    @Test func anEdgeThatDidNotHearOfALeaveIsToldAgain() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.edgeError("No current subscription to channel orders, or subscription in progress")
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders"])
        driver.subscribe("prices", 2)
        driver.edgeError("No current subscription")
        driver.advance(10_000)
        #expect(driver.state(of: "prices") == .pending, "the error may be about the unsubscribe")
    }

    @Test func anErrorMayBeTheAnswerToAFrameThatWasOvertaken() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.advance(30_000)
        driver.advanceToDeadline()
        driver.confirm("orders")
        driver.subscribe("prices", 2)
        driver.edgeError("Existing subscription to channel orders")
        driver.advance(10_000)
        #expect(driver.state(of: "prices") == .pending)
        driver.edgeError("Invalid")
        driver.advance(2_000)
        #expect(driver.state(of: "prices") == .failed)
    }

    @Test func aConfirmationOfDoubtfulOriginIsNotGivenUpForAnUnrelatedError() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        driver.confirm("orders")
        driver.edgeError("about something else")
        _ = driver.take()
        driver.advance(2_000)
        #expect(driver.take() == ["send unsubscribe orders", "send subscribe orders"])
        driver.confirm("orders")
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2"])
    }

    @Test func aConfirmationOfDoubtfulOriginDuringTheWaitForARetry() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        driver.advance(30_000)
        driver.confirm("orders")
        _ = driver.take()
        driver.advanceToDeadline()
        #expect(driver.take("send") == ["send unsubscribe orders", "send subscribe orders"])
    }

    @Test func aConfirmationOfDoubtfulOriginAfterADenialLeavesTheChannel() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        driver.edgeError("about anything")
        driver.edgeError("subscription in progress")
        driver.advance(10_000)
        #expect(driver.state(of: "orders") == .failed)
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders"])
    }

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
        #expect(driver.take() == ["send unsubscribe orders"], "no frame of before accounts for it")
    }

    @Test func aDenialAfterAConfirmationOfDoubtfulOriginLeavesTheChannel() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        driver.confirm("orders")
        _ = driver.take()
        driver.edge("bird_internal:subscription_error", "orders", data: "{}")
        #expect(
            driver.take() == [
                "send unsubscribe orders", "channel 2 failed", "subscription failed 2 \(BIRD_ERR_DENIED)",
            ])
    }

    @Test func aDoubtOutlivesTheNextLeave() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.edgeError("refused")
        driver.subscribe("orders", 2)
        driver.unsubscribe(2)
        driver.confirm("orders")
        driver.subscribe("orders", 3)
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == ["channel 3 subscribed", "subscribed 3"])
    }

    @Test func theSecondConfirmationOfAChannelThatWasLeftIsNotTheNextHolders() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.advance(30_000)
        driver.advanceToDeadline()
        driver.confirm("orders")
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == [])
        driver.confirm("orders")
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2"])
    }

    @Test func whatIsNotWrittenIsNotConfirmed() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.edgeError("refused, or about something else")
        driver.isBlocked = true
        driver.subscribe("orders", 2)
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == [])
        driver.isBlocked = false
        driver.confirm("orders")
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2"])
    }

    @Test func theRefusalOfAnAbandonedFrameIsNotTheHolders() {
        var driver = Self.connected()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        _ = driver.take()
        driver.edge("bird_internal:subscription_error", "orders", data: "{}")
        #expect(driver.take() == [])
        driver.confirm("orders")
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2"])
    }

    @Test func aDialectMayLeaveOnceTheEdgeHasConfirmed() {
        var driver = Self.connected(.pusher)
        driver.subscribe("orders", 1)
        _ = driver.take()
        driver.unsubscribe(1)
        #expect(driver.take() == ["channel 1 unsubscribed"])
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders"])
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders"], "nobody has asked for it")
    }

    @Test func whoComesBackBeforeThatLeavesFirst() {
        var driver = Self.connected(.pusher)
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        #expect(
            driver.take("send") == ["send subscribe orders", "send unsubscribe orders", "send subscribe orders"])
        driver.confirm("orders")
        #expect(driver.state(of: "orders") == .pending)
        driver.confirm("orders")
        #expect(driver.take("subscribed") == ["subscribed 2"])
        driver.unsubscribe(2)
        #expect(driver.take("send") == ["send unsubscribe orders"])
    }

    @Test func whoComesBackAndStillAsksTheAuthorizerLeavesFirstToo() {
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
}
