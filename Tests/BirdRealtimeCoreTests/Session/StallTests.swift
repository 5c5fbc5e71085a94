import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// A session whose program takes nothing of what it is told.
@Suite struct StallTests {
    @Test func aPlannedAttemptWaits() {
        var driver = SessionDriver()
        driver.connect()
        driver.drop()
        _ = driver.take()
        driver.session.isStalled = true
        driver.advance(86_400_000)
        #expect(driver.take() == [])
        driver.session.isStalled = false
        driver.input(.timer)
        #expect(driver.take() == ["state unavailable connecting", "open 2"])
    }

    @Test func theProgramIsNotAskedForAnAttempt() {
        var driver = SessionDriver { $0.asksBeforeReconnect = true }
        driver.connect()
        driver.drop()
        driver.session.isStalled = true
        driver.advance(86_400_000)
        #expect(driver.reconnectQuestions.isEmpty)
        driver.session.isStalled = false
        driver.input(.timer)
        #expect(driver.reconnectQuestions.count == 1)
    }

    @Test func theProgramsOwnConnectDoesNotWait() {
        var driver = SessionDriver()
        driver.connect()
        driver.drop()
        driver.session.isStalled = true
        _ = driver.take()
        driver.input(.connect)
        #expect(driver.take() == ["state unavailable connecting", "open 2"])
    }

    @Test func authorizersAreNotAskedAgainAndAgain() {
        var driver = SessionDriver { $0.authTimeoutMs = 1_000 }
        driver.connect(activityTimeout: "86400")
        driver.subscribe("private-a", 1)
        driver.session.isStalled = true
        driver.subscribe("private-b", 2)
        driver.advance(80_000_000)
        #expect(driver.questions.map(\.channelName) == ["private-a"])
        driver.session.isStalled = false
        driver.input(.timer)
        #expect(driver.questions.count == 3)
    }

    @Test func anAnswerThatIsNotReadIsNotMissed() {
        var driver = SessionDriver { $0.answerTimeoutMs = 1_000 }
        driver.connect(activityTimeout: "86400")
        driver.subscribe("a", 1, operation: 7)
        _ = driver.take()
        driver.session.isStalled = true
        driver.advance(3_600_000)
        #expect(driver.take() == [])
        driver.session.isStalled = false
        driver.confirm("a")
        #expect(driver.take().contains("completed 7 \(BIRD_OK)"))
    }

    @Test func anAnswerThatNeverComesIsMissedAfterwards() {
        var driver = SessionDriver { $0.answerTimeoutMs = 1_000 }
        driver.connect(activityTimeout: "86400")
        driver.subscribe("a", 1)
        driver.session.isStalled = true
        driver.advance(10_500)
        driver.session.isStalled = false
        _ = driver.take()
        driver.advance(1_000)
        #expect(driver.take("subscription failed") == ["subscription failed 1 \(BIRD_ERR_TIMEOUT) will retry"])
    }

    @Test func aDeadEdgeIsKnownBeforeItIsGivenUp() {
        var driver = SessionDriver { $0.pongTimeoutMs = 500 }
        driver.connect(activityTimeout: "2")
        driver.advance(2_000)
        var answers: [Bool] = []
        for ms in [0, 499, 1] as [Int64] {
            driver.sleep(ms)
            answers.append(driver.session.isEdgeDead(driver.now))
        }
        driver.session.noteInbound(now: driver.now)
        answers.append(driver.session.isEdgeDead(driver.now))
        #expect(answers == [false, false, true, false])
        driver.input(.timer)
        #expect(driver.session.state == .connected)
    }
}
