import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// An error makes the client ping. Of an edge that answers in the order of the frames, the pong tells what the error was about.
@Suite struct FenceTests {
    private static func connected() -> SessionDriver {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "86400")
        _ = driver.take()
        return driver
    }

    private static func causes(_ driver: borrowing SessionDriver) -> [String] {
        driver.events.compactMap {
            if case .subscriptionFailed(_, let fault, _, willRetry: false) = $0 { fault.message } else { nil }
        }
    }

    @Test func whatIsNotConfirmedBeforeThePongWasRefused() {
        var driver = Self.connected()
        for (place, name) in ["a", "b", "c", "d"].enumerated() { driver.subscribe(name, UInt64(place + 1)) }
        driver.confirm("a")
        _ = driver.take()
        driver.edgeError("no b")
        #expect(driver.take("send") == ["send ping"])
        driver.confirm("c")
        driver.edgeError("no d")
        #expect(driver.take("send") == [], "one ping is behind all frames")
        driver.edge("bird:pong")
        #expect(
            driver.take("subscription failed") == [
                "subscription failed 2 \(BIRD_ERR_DENIED)", "subscription failed 4 \(BIRD_ERR_DENIED)",
            ])
        #expect(
            Self.causes(driver) == [
                "The edge refused the subscription of b: no b", "The edge refused the subscription of d: no d",
            ])
    }

    @Test func anErrorAboutSomethingElseDeniesNobody() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.edgeError("about something else")
        driver.confirm("a")
        driver.edge("bird:pong")
        driver.subscribe("b", 2)
        _ = driver.take()
        driver.edgeError("about something else")
        driver.advance(10_000)
        driver.confirm("b")
        driver.edge("bird:pong")
        driver.advance(60_000)
        #expect(driver.take("subscription failed") == [], "the edge answers pings, and its pong is waited for")
    }

    @Test("S2: the error that has denied a frame was its answer", arguments: [true, false])
    func anErrorThatDeniedIsUsedUp(pongs: Bool) {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.edgeError("no a")
        if pongs { driver.edge("bird:pong") }
        driver.advance(2_000)
        #expect(driver.state(of: "a") == .failed)
        driver.subscribe("a", 1)
        driver.confirm("a")
        #expect(driver.state(of: "a") == .subscribed)
        driver.subscribe("b", 2)
        driver.edgeError("no b")
        if pongs { driver.edge("bird:pong") }
        driver.advance(2_000)
        #expect(driver.state(of: "b") == .failed)
    }

    @Test("S3: the second error about a channel that was left is not the next one's")
    func twoErrors() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.unsubscribe(1)
        driver.subscribe("b", 2)
        driver.edgeError("no a")
        driver.edgeError("No current subscription to channel a")
        driver.advance(4_000)
        #expect(driver.state(of: "b") == .pending)
        driver.confirm("b")
        driver.edge("bird:pong")
        driver.advance(60_000)
        #expect(driver.take("subscription failed") == [])
        #expect(driver.state(of: "b") == .subscribed)
    }

    @Test func withoutPongsTheSecondErrorIsNotTheNextOnesEither() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.unsubscribe(1)
        driver.subscribe("b", 2)
        driver.edgeError("no a")
        driver.edgeError("No current subscription to channel a")
        driver.advance(20_000)
        #expect(driver.state(of: "b") == .pending)
    }

    @Test func aFrameBehindThePingIsNotConcerned() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.edgeError("no a")
        driver.subscribe("b", 2)
        driver.edge("bird:pong")
        #expect(driver.state(of: "a") == .failed)
        #expect(driver.state(of: "b") == .pending)
        driver.edgeError("no b")
        driver.edge("bird:pong")
        #expect(driver.state(of: "b") == .failed)
    }

    @Test func aFrameThatWasNotWrittenIsNotConcerned() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.isBlocked = true
        driver.subscribe("b", 2)
        driver.edgeError("about something else")
        driver.isBlocked = false
        driver.confirm("a")
        driver.edge("bird:pong")
        #expect(driver.state(of: "b") == .pending)
    }

    @Test func whatTheEdgeHasIgnoredIsNotDenied() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.subscribe("b", 2)
        driver.edgeError("no a")
        driver.edge("bird:pong")
        #expect(driver.state(of: "a") == .failed)
        _ = driver.take()
        driver.advance(30_000)
        #expect(driver.take("subscription failed") == ["subscription failed 2 \(BIRD_ERR_TIMEOUT) will retry"])
    }

    @Test func aSigninIsDeniedByThePongToo() {
        var driver = Self.connected()
        driver.input(.signin(refresh: false, operation: 3))
        driver.grant(memberData: "{}")
        driver.subscribe("a", 1)
        driver.edgeError("Invalid signature")
        driver.confirm("a")
        _ = driver.take()
        driver.edge("bird:pong")
        #expect(driver.take() == ["completed 3 \(BIRD_ERR_DENIED)"])
    }

    @Test func anEdgeThatAnswersOutOfOrderIsNotTrustedAgain() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.subscribe("b", 2)
        driver.edgeError("no b")
        driver.edge("bird:pong")
        #expect(driver.state(of: "a") == .failed, "its answer should have come before the pong")
        driver.confirm("a")
        #expect(driver.state(of: "a") == .subscribed)
        driver.subscribe("c", 3)
        driver.subscribe("d", 4)
        _ = driver.take()
        driver.edgeError("no d")
        #expect(driver.take("send") == [])
        driver.confirm("c")
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        for name in ["a", "b", "c"] { driver.confirm(name) }
        _ = driver.take()
        driver.edgeError("no d")
        #expect(driver.take("send") == [])
        driver.advance(2_000)
        #expect(driver.state(of: "d") == .failed, "the only one that waits")
    }

    @Test func aPongThatNobodyAskedForTellsNothing() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.edge("bird:pong")
        driver.edgeError("no a")
        driver.advance(1_000)
        #expect(driver.state(of: "a") == .pending)
        driver.edge("bird:pong")
        #expect(driver.state(of: "a") == .failed)
    }

    @Test func aPongThatWasLostIsMadeUpFor() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.edgeError("about something else")
        driver.confirm("a")
        // The pong of that ping never comes; that of the next counts for it.
        driver.subscribe("b", 2)
        driver.subscribe("c", 3)
        _ = driver.take()
        driver.edgeError("no b")
        #expect(driver.take("send") == ["send ping"])
        driver.confirm("c")
        driver.edge("bird:pong")
        #expect(driver.state(of: "b") == .pending)
        #expect(driver.take("send") == ["send ping"])
        driver.edge("bird:pong")
        #expect(driver.state(of: "b") == .failed)
    }

    @Test func anotherConnectionKnowsNothingOfIt() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.edgeError("no a")
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        driver.edge("bird:pong")
        #expect(driver.state(of: "a") == .pending)
    }

    @Test func anErrorThatNamesTheChannelIsTheAnswerBehindAPongToo() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.subscribe("b", 2)
        driver.edgeError("no a")
        driver.edge("bird:pong")
        #expect(driver.state(of: "b") == .pending)
        driver.edge("bird:error", "b", data: #"{"message":"no b"}"#)
        #expect(driver.state(of: "b") == .failed)
    }

    @Test func theFirstPongEndsWhatWasGuessedBeforeIt() {
        var driver = Self.connected()
        driver.advance(86_400_000)
        driver.subscribe("a", 1)
        driver.edgeError("about something else")
        driver.edge("bird:pong")
        driver.advance(2_000)
        #expect(driver.state(of: "a") == .pending, "the pong is that of a ping before its frame")
        driver.edge("bird:pong")
        #expect(driver.state(of: "a") == .failed)
    }

    @Test func anErrorBeforeTheFrameIsWrittenTakesNoLaterErrorsPlace() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.isBlocked = true
        driver.subscribe("b", 2)
        driver.edgeError("about something else")
        driver.confirm("a")
        driver.isBlocked = false
        driver.edgeError("no b")
        driver.edge("bird:pong")
        #expect(driver.state(of: "b") == .failed)
        #expect(Self.causes(driver) == ["The edge refused the subscription of b: no b"])
    }

    @Test func anErrorBeforeTheSecondFrameIsWrittenIsNotTheAnswerToIt() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.isBlocked = true
        driver.advance(31_500)
        #expect(driver.state(of: "a") == .pending, "it asks again")
        driver.edgeError("about something else")
        driver.advance(3_000)
        #expect(driver.state(of: "a") == .pending)
    }

    @Test func aPongBeforeTheFrameIsWrittenSaysNothingOfIt() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.isBlocked = true
        _ = driver.take()
        driver.advance(86_400_000)
        let sent = driver.take("send")
        #expect(sent.first == "send subscribe a", "it asks again")
        #expect(sent.last?.hasPrefix("send ping") == true, "behind that frame")
        driver.edge("bird:pong")
        driver.write(1)
        driver.advance(40_000)
        #expect(driver.take("send subscribe") == ["send subscribe a"], "it has waited for the answer")
    }

    @Test func anErrorWhenNothingIsDueSendsNothing() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        driver.confirm("a")
        _ = driver.take()
        driver.edgeError("about something else")
        #expect(driver.take() == ["error \(BIRD_ERR_SERVER) 0 about something else"])
    }

    @Test func errorsWithoutEndSendOnePing() {
        var driver = Self.connected()
        driver.subscribe("a", 1)
        _ = driver.take()
        for _ in 0..<1_000 { driver.edgeError("no") }
        #expect(driver.take("send") == ["send ping"])
    }
}
