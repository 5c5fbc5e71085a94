import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// The option may_reconnect: a planned attempt asks before it begins.
@Suite struct ReconnectPermissionTests {
    /// Lost, with the question about the next attempt open.
    private func asked() -> SessionDriver {
        var driver = SessionDriver { $0.asksBeforeReconnect = true }
        driver.connect()
        driver.close(4201, "no pong")
        driver.advanceToDeadline()
        return driver
    }

    private func question(_ driver: borrowing SessionDriver) throws -> ReconnectQuestion {
        try #require(driver.reconnectQuestions.last)
    }

    @Test func aPlannedAttemptAsksAndWaits() throws {
        var driver = asked()
        #expect(driver.take().suffix(2) == ["connecting in", "ask 1 for attempt 1"])
        let question = try question(driver)
        #expect(question.cause.code == 4201)
        #expect(question.cause.message.contains("no pong"))
        #expect(question.deadline == driver.now + 1_000)
        #expect(driver.session.state == .unavailable)
        driver.input(.reconnect(question.id, .proceed(delayMs: 0)))
        #expect(driver.take() == ["state unavailable connecting", "open 2"])
        driver.handshake("2.2")
        #expect(driver.session.state == .connected)
    }

    @Test func theFirstConnectionAsksNobody() {
        var driver = SessionDriver { $0.asksBeforeReconnect = true }
        driver.input(.connect)
        #expect(driver.take() == ["state initialized connecting", "open 1"])
    }

    @Test func withoutTheOptionNobodyIsAsked() {
        var driver = SessionDriver()
        driver.connect()
        driver.close(4201)
        _ = driver.take()
        driver.advanceToDeadline()
        #expect(driver.take() == ["state unavailable connecting", "open 2"])
    }

    @Test func silenceForASecondIsConsent() throws {
        var driver = asked()
        _ = driver.take()
        driver.advance(999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["withdraw 1", "state unavailable connecting", "open 2"])
        driver.input(.reconnect(try question(driver).id, .refuse("too late")))
        #expect(driver.take() == [])
    }

    @Test func aDelayPutsTheAttemptOffWithoutAskingAgain() throws {
        var driver = asked()
        let id = try question(driver).id
        _ = driver.take()
        driver.input(.reconnect(id, .proceed(delayMs: 40_000)))
        #expect(driver.take() == ["connecting in"])
        guard case .connectingIn(let plan) = driver.events.last else {
            Issue.record("nothing was told")
            return
        }
        #expect((plan.previous, plan.current) == (.unavailable, .unavailable))
        #expect((plan.delayMs, plan.reason, plan.attempt) == (40_000, BIRD_OK, 1))
        driver.advance(39_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["state unavailable connecting", "open 2"])
        // The attempt after that one asks again.
        driver.close(1006)
        driver.advanceToDeadline()
        #expect(driver.take().last == "ask 2 for attempt 2")
    }

    @Test func aRefusalSkipsCountsAndPlansTheNext() throws {
        var driver = asked()
        let id = try question(driver).id
        _ = driver.take()
        driver.input(.reconnect(id, .refuse("the line is metered")))
        #expect(driver.take() == ["attempt refused", "connecting in"])
        guard case .connectingIn(let plan) = driver.events.last else {
            Issue.record("nothing was told")
            return
        }
        #expect(plan.reasonText.contains("the line is metered"))
        #expect((plan.reason, plan.attempt) == (BIRD_OK, 2))
        #expect((0...2_000).contains(plan.delayMs))
        driver.advance(plan.delayMs)
        #expect(driver.take() == ["ask 2 for attempt 2"])
        #expect(try question(driver).cause.code == 4201)
    }

    @Test func refusalsSlowDownAsFailuresDo() throws {
        var longest: Int64 = 0
        for seed in 1...40 as ClosedRange<UInt64> {
            var driver = SessionDriver({ $0.asksBeforeReconnect = true }, seed: seed)
            driver.connect()
            driver.drop()
            for _ in 0..<8 {
                driver.advanceToDeadline()
                driver.input(.reconnect(try question(driver).id, .refuse("no")))
            }
            guard case .connectingIn(let plan) = driver.events.last else { continue }
            #expect((0...30_000).contains(plan.delayMs))
            longest = max(longest, plan.delayMs)
        }
        #expect(longest > 20_000)
    }

    @Test("the program's own calls need no permission", arguments: [SessionInput.connect, .retryNow])
    func ownCallsNeedNoPermission(call: SessionInput) throws {
        // While the question is open, and while the attempt is put off.
        for isPutOff in [false, true] {
            var driver = asked()
            let id = try question(driver).id
            if isPutOff {
                driver.input(.reconnect(id, .proceed(delayMs: 40_000)))
            }
            _ = driver.take()
            driver.input(call)
            #expect(driver.take() == (isPutOff ? [] : ["withdraw 1"]) + ["state unavailable connecting", "open 2"])
            driver.input(.reconnect(id, .refuse("too late")))
            #expect(driver.take() == [])
        }
    }

    @Test func ownCallsNeedNoPermissionBeforeTheQuestionEither() {
        var driver = SessionDriver { $0.asksBeforeReconnect = true }
        driver.connect()
        driver.close(4100)
        _ = driver.take()
        driver.input(.connect)
        #expect(driver.take() == ["state unavailable connecting", "open 2"])
    }

    @Test func disconnectWithdrawsTheQuestion() throws {
        var driver = asked()
        let id = try question(driver).id
        _ = driver.take()
        driver.input(.disconnect)
        #expect(driver.take() == ["withdraw 1", "state unavailable disconnected"])
        #expect(driver.session.nextDeadline == nil)
        driver.input(.reconnect(id, .proceed(delayMs: 0)))
        #expect(driver.take() == [])
        #expect(driver.session.state == .disconnected)
    }

    @Test func anAnswerToAnEarlierQuestionIsNone() throws {
        var driver = asked()
        let first = try question(driver).id
        driver.input(.reconnect(first, .refuse("no")))
        driver.advanceToDeadline()
        #expect(try question(driver).id != first)
        _ = driver.take()
        driver.input(.reconnect(first, .proceed(delayMs: 0)))
        driver.input(.reconnect(first, .refuse("no")))
        #expect(driver.take() == [])
    }

    @Test func everyAttemptAsks() throws {
        var driver = asked()
        for attempt in 1...5 as ClosedRange<Int32> {
            #expect(try question(driver).attempt == attempt)
            driver.input(.reconnect(try question(driver).id, .proceed(delayMs: 0)))
            #expect(driver.session.state == .connecting)
            driver.drop()
            driver.advanceToDeadline()
        }
        #expect(driver.reconnectQuestions.count == 6)
    }
}
