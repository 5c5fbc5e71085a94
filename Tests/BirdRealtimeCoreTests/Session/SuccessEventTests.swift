import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// A success says whether it is a resubscribe, and for how long nothing was delivered.
@Suite struct SuccessEventTests {
    private static func subscribed() -> SessionDriver {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "60")
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        _ = driver.take()
        return driver
    }

    private static func reconnect(_ driver: inout SessionDriver) {
        while driver.session.state != .connecting {
            driver.advanceToDeadline()
        }
        driver.handshake("2.2")
    }

    @Test func theTimeCountsFromTheLastThatWasRead() {
        var driver = Self.subscribed()
        driver.advance(5_000)
        driver.session.noteInbound(now: driver.now)
        let read = driver.now
        driver.advance(7_000)
        driver.drop()
        Self.reconnect(&driver)
        driver.advance(300)
        driver.confirm("orders")
        #expect(driver.take("subscribed") == ["subscribed 1 again after \(driver.now - read)"])
    }

    /// While the program was slow, or once the stream has ended.
    @Test func whatWasReadBeforeAndIsTakenLaterProvesNothing() {
        var driver = Self.subscribed()
        let read = driver.now
        driver.advance(7_000)
        driver.input(.message(driver.transport, InboundMessage(event: "bird:pong")))
        driver.drop()
        Self.reconnect(&driver)
        driver.confirm("orders")
        #expect(driver.take("subscribed") == ["subscribed 1 again after \(driver.now - read)"])
    }

    @Test func bytesThatASlowReaderNeverReadAreMissed() {
        var driver = Self.subscribed()
        let read = driver.now
        driver.advance(60_000)
        driver.session.noteUnread()
        driver.advance(60_000)
        driver.session.noteUnread()
        #expect(driver.session.state == .connected)
        driver.drop()
        Self.reconnect(&driver)
        driver.confirm("orders")
        #expect(driver.take("subscribed") == ["subscribed 1 again after \(driver.now - read)"])
    }

    @Test func failedAttemptsAndDenialsInBetweenCount() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        driver.grant()
        driver.confirm("private-a")
        let read = driver.now
        driver.drop()
        Self.reconnect(&driver)
        driver.refuse()
        driver.advance(20_000)
        driver.drop()
        driver.advanceToDeadline()
        driver.drop()
        Self.reconnect(&driver)
        driver.grant()
        driver.advance(1_000)
        driver.confirm("private-a")
        #expect(driver.take("subscribed").last == "subscribed 1 again after \(driver.now - read)")
    }

    @Test func aPauseOfTheProgramsOwnCounts() {
        var driver = Self.subscribed()
        let read = driver.now
        driver.input(.disconnect)
        driver.sleep(3_600_000)
        driver.connect("2.2")
        driver.confirm("orders")
        #expect(driver.take("subscribed") == ["subscribed 1 again after \(driver.now - read)"])
    }

    @Test func aRefusalOfASubscribedChannelCounts() {
        var driver = Self.subscribed()
        driver.advance(1_000)
        driver.edge("bird_internal:subscription_error", "orders", data: "{}")
        driver.advance(4_000)
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        #expect(driver.take("subscribed") == ["subscribed 1 again after 4000"])
    }

    @Test func aChannelThatWasLeftHasMissedNothing() {
        var driver = Self.subscribed()
        driver.unsubscribe(1)
        driver.advance(10_000)
        driver.subscribe("orders", 2)
        driver.confirm("orders")
        #expect(driver.take("subscribed") == ["subscribed 2"])
    }

    @Test func theNextInterruptionCountsAnew() {
        var driver = Self.subscribed()
        for _ in 0..<2 {
            driver.advance(2_000)
            driver.session.noteInbound(now: driver.now)
            driver.drop()
            driver.sleep(1_000)
            Self.reconnect(&driver)
            driver.confirm("orders")
        }
        #expect(
            driver.take("subscribed") == ["subscribed 1 again after 1000", "subscribed 1 again after 1000"])
    }

    @Test func withoutMemberDataMyIDIsTheIdentity() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn(as: "m_7")
        driver.subscribe("presence-a", 1)
        driver.grant()
        driver.confirm("presence-a", data: #"{"presence":{"ids":["m_7"],"hash":{}}}"#)
        #expect(driver.take("subscribed") == ["subscribed 1 [m_7] me m_7"])
    }
}
