import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// Options that change while a client lives.
@Suite struct LiveChangeTests {
    // MARK: - The plan

    private func planned(_ code: UInt16 = 1006, _ configure: (inout SessionConfiguration) -> Void = { _ in })
        -> SessionDriver
    {
        var driver = SessionDriver {
            $0.reconnect = .fixed
            $0.reconnectDelayMs = 10_000
            configure(&$0)
        }
        driver.connect()
        driver.close(code)
        _ = driver.take()
        return driver
    }

    @Test("a planned attempt is planned anew from the end of the one before") func planAnew() {
        var driver = planned()
        driver.advance(2_000)
        driver.configure { $0.reconnect = .staged }
        #expect(driver.take() == ["connecting in"])
        #expect(driver.plan?.delayMs == 1_000)
        #expect((driver.plan?.policy, driver.plan?.attempt) == (.staged, 1))
        driver.advance(999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["state unavailable connecting", "open 2"])
        driver.drop()
        #expect(driver.plan?.delayMs == 3_000, "the second of the schedule")
    }

    @Test func aTimeThatHasPassedIsNow() {
        var driver = planned()
        driver.advance(9_000)
        driver.configure { $0.reconnectDelayMs = 500 }
        #expect(driver.plan?.delayMs == 0)
        driver.advance(0)
        #expect(driver.session.state == .connecting)
    }

    @Test func longerCountsFromTheEndToo() {
        var driver = planned()
        driver.advance(9_000)
        driver.configure { $0.reconnectDelayMs = 60_000 }
        #expect(driver.plan?.delayMs == 51_000)
        driver.advance(50_999)
        #expect(driver.session.state == .unavailable)
        driver.advance(1)
        #expect(driver.session.state == .connecting)
    }

    @Test func theStageGoesOnWhereTheCountIs() {
        var driver = SessionDriver()
        driver.input(.connect)
        for _ in 0..<6 {
            driver.drop()
            driver.advanceToDeadline()
        }
        driver.drop()
        driver.configure { $0.reconnect = .staged }
        #expect(driver.plan?.delayMs == 9_000)
    }

    @Test("what has nothing to do with the plan leaves it alone") func otherOptions() throws {
        let stages = try ReconnectStages("1x1")
        var driver = planned()
        driver.configure {
            $0.pongTimeoutMs = 5
            $0.activityTimeoutMs = 7
            $0.pongMissesMax = 9
            $0.reconnectStages = stages
            $0.backoffBaseMs = 5
            $0.backoffMaxMs = 5
            $0.reconnectAttemptsMax = 100
        }
        driver.configure { _ in }
        #expect(driver.take() == [])
        driver.advance(9_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.session.state == .connecting)
    }

    @Test func bandsKeepTheirRules() {
        var driver = planned(4100)
        driver.configure { $0.reconnectDelayMs = 10 }
        #expect(driver.plan?.delayMs == 1_000)
        driver = planned(4200)
        driver.configure { $0.reconnect = .staged }
        #expect(driver.plan?.delayMs == 0)
    }

    @Test func aDelayOfTheProgramsStays() throws {
        var driver = planned { $0.asksBeforeReconnect = true }
        driver.advance(10_000)
        driver.input(.reconnect(try #require(driver.reconnectQuestions.last).id, .proceed(delayMs: 40_000)))
        _ = driver.take()
        driver.configure { $0.reconnectDelayMs = 1 }
        #expect(driver.take() == [])
        driver.advance(39_999)
        #expect(driver.session.state == .unavailable)
        driver.advance(1)
        #expect(driver.session.state == .connecting)
    }

    @Test func anOpenQuestionStays() throws {
        var driver = planned { $0.asksBeforeReconnect = true }
        driver.advance(10_000)
        _ = driver.take()
        driver.configure { $0.reconnectDelayMs = 1 }
        #expect(driver.take() == [])
        driver.input(.reconnect(try #require(driver.reconnectQuestions.last).id, .refuse("no")))
        #expect(driver.plan?.delayMs == 1)
    }

    @Test func beforeTheQuestionItIsAskedAtTheNewTime() {
        var driver = planned { $0.asksBeforeReconnect = true }
        driver.configure { $0.reconnectDelayMs = 2_000 }
        _ = driver.take()
        driver.advance(2_000)
        #expect(driver.take() == ["ask 1 for attempt 1"])
    }

    @Test("a limit that is reached already ends the trying, and withdraws the question", arguments: [false, true])
    func limit(isAsked: Bool) throws {
        var driver = planned { $0.asksBeforeReconnect = isAsked }
        for _ in 0..<2 {
            driver.advanceToDeadline()
            if isAsked {
                driver.input(.reconnect(try #require(driver.reconnectQuestions.last).id, .refuse("no")))
            } else {
                driver.drop()
            }
        }
        driver.configure { $0.reconnectAttemptsMax = 3 }
        #expect(driver.session.state == .unavailable)
        if isAsked { driver.advanceToDeadline() }
        _ = driver.take()
        driver.configure { $0.reconnectAttemptsMax = 2 }
        let cause = isAsked ? "The edge closed the connection with code 1006" : "connection reset"
        #expect(
            driver.take() == [
                "error \(BIRD_ERR_GAVE_UP) \(isAsked ? 1006 : 0) gave up after 2 attempts: \(cause)"
            ] + (isAsked ? ["withdraw 3"] : []) + ["state unavailable disconnected"])
    }

    @Test("an attempt that goes on is not touched; its failure counts under the new limit") func limitWhileConnecting()
    {
        var driver = SessionDriver { $0.reconnect = .staged }
        driver.input(.connect)
        for _ in 0..<4 {
            driver.drop()
            driver.advanceToDeadline()
        }
        _ = driver.take()
        driver.configure {
            $0.reconnectAttemptsMax = 2
            $0.reconnect = .jitter
        }
        #expect(driver.take() == [])
        driver.drop()
        #expect(driver.session.state == .disconnected)
        #expect(driver.changes.last?.reasonText.hasPrefix("gave up after 4 attempts") == true)
    }

    @Test("what changes while nothing is planned holds for the next plan") func laterPlans() {
        for isConnected in [false, true] {
            var driver = SessionDriver()
            driver.input(.connect)
            if isConnected { driver.handshake() }
            _ = driver.take()
            driver.configure {
                $0.reconnect = .fixed
                $0.reconnectDelayMs = 123
            }
            #expect(driver.take() == [])
            driver.drop()
            #expect(driver.plan?.delayMs == 123)
        }
        var driver = SessionDriver()
        driver.configure { $0.reconnect = .staged }
        driver.input(.connect)
        driver.drop()
        #expect(driver.plan?.delayMs == 3_000)
    }

    // MARK: - The keep-alive

    @Test("a shorter interval counts from the last byte, at once") func shorterInterval() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "120")
        _ = driver.take()
        driver.advance(5_000)
        driver.configure { $0.activityTimeoutMs = 20_000 }
        driver.advance(14_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["send ping"])
        driver.advance(1_000)
        driver.session.noteInbound(now: driver.now)
        driver.configure { $0.activityTimeoutMs = 3_000 }
        driver.advance(2_999)
        #expect(driver.take() == [])
        driver.configure { $0.activityTimeoutMs = 1_000 }
        #expect(driver.take() == ["send ping"], "it is overdue")
    }

    @Test func aLongerIntervalToo() {
        var driver = SessionDriver { $0.activityTimeoutMs = 5_000 }
        driver.connect(activityTimeout: "120")
        _ = driver.take()
        driver.advance(4_000)
        driver.configure { $0.activityTimeoutMs = 60_000 }
        driver.advance(55_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["send ping"])
    }

    @Test("the deadline of a ping that waits changes too") func deadline() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "20")
        driver.advance(22_000)
        _ = driver.take()
        driver.configure { $0.pongTimeoutMs = 5_000 }
        driver.advance(2_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take("close") == ["close 1 4200 activity timeout abandoned"])

        driver.handshake("2.2")
        driver.advance(24_000)
        _ = driver.take()
        driver.configure { $0.pongTimeoutMs = 1_000 }
        #expect(driver.take("close") == ["close 2 4200 activity timeout abandoned"], "it has passed already")
    }

    @Test func missesChangeWhileAPingWaits() {
        var driver = SessionDriver { $0.pongTimeoutMs = 1_000 }
        driver.connect(activityTimeout: "20")
        driver.advance(20_500)
        _ = driver.take()
        driver.configure { $0.pongMissesMax = 3 }
        driver.advance(2_499)
        #expect(driver.take() == ["send ping", "send ping"])
        driver.configure { $0.pongMissesMax = 1 }
        driver.advance(1)
        #expect(driver.take("close").count == 1)
    }

    @Test("each preset is a set of settings that later ones may change") func presets() throws {
        var options = ClientOptions()
        let before = options.session
        try options.set("preset", "staged")
        #expect(options.session.reconnect == .staged)
        #expect(options.session.reconnectStages == .initial)
        #expect(options.session.activityTimeoutMs == 20_000)
        #expect((options.session.pongTimeoutMs, options.session.pongMissesMax) == (10_000, 2))
        try options.set("pong_misses_max", 3)
        try options.set("reconnect_stages", "2x50")
        #expect(options.session.pongMissesMax == 3)
        #expect(options.session.reconnectStages.text == "2x50")
        try options.set("preset", "default")
        #expect(options.session == before)
    }
}
