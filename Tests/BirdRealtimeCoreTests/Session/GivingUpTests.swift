import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// The option reconnect_attempts_max.
@Suite struct GivingUpTests {
    private func driver(_ attemptsMax: Int = 3, _ configure: (inout SessionConfiguration) -> Void = { _ in })
        -> SessionDriver
    {
        SessionDriver {
            $0.reconnect = .fixed
            $0.reconnectDelayMs = 1_000
            $0.reconnectAttemptsMax = attemptsMax
            configure(&$0)
        }
    }

    /// Fails until nothing is planned any more; how many attempts that took.
    private func fail(_ driver: inout SessionDriver) -> Int {
        for attempt in 0..<100 {
            driver.drop()
            guard driver.session.state == .unavailable else { return attempt }
            driver.advanceToDeadline()
        }
        return 100
    }

    @Test("after so many attempts in vain it gives up, and says so", arguments: [1, 3, 40])
    func givesUp(attemptsMax: Int) {
        for isLost in [false, true] {
            var driver = driver(attemptsMax)
            if isLost { driver.connect() } else { driver.input(.connect) }
            driver.subscribe("private-a", 1, operation: 7)
            #expect(fail(&driver) == attemptsMax)
            let text = "gave up after \(attemptsMax) attempt\(attemptsMax == 1 ? "" : "s"): connection reset"
            let lines = driver.take().suffix(3)
            #expect(lines.contains("error \(BIRD_ERR_GAVE_UP) 0 \(text)"))
            #expect(lines.contains("state connecting disconnected"))
            #expect(lines.contains("completed 7 \(BIRD_ERR_GAVE_UP)"))
            let end = driver.changes.last
            #expect((end?.reason, end?.reasonText, end?.delayMs) == (BIRD_ERR_GAVE_UP, text, -1))
            #expect(end?.ending?.status == BIRD_ERR_GAVE_UP)
            #expect(driver.transport.number == UInt64(attemptsMax) + 1)
            #expect(driver.session.nextDeadline == nil)
            driver.advance(86_400_000)
            driver.input(.retryNow)
            driver.input(.disconnect)
            #expect(driver.take() == [])
        }
    }

    @Test func aSigninThatWaitsEndsToo() {
        var driver = driver(1)
        driver.connect()
        driver.drop()
        driver.advanceToDeadline()
        driver.input(.signin(refresh: false, operation: 8))
        driver.drop()
        #expect(driver.take("completed") == ["completed 8 \(BIRD_ERR_GAVE_UP)"])
        driver.input(.signin(refresh: false, operation: 9))
        #expect(driver.take("completed") == ["completed 9 \(BIRD_ERR_STATE)"])
    }

    @Test func withoutALimitItNeverDoes() {
        var driver = driver(0)
        driver.input(.connect)
        #expect(fail(&driver) == 100)
    }

    @Test func connectStartsAfresh() throws {
        var driver = driver()
        driver.connect()
        driver.subscribe("a", 1)
        driver.confirm("a")
        driver.signIn()
        _ = fail(&driver)
        _ = driver.take()
        driver.input(.connect)
        #expect(driver.take() == ["state disconnected connecting", "open 5"])
        #expect(driver.changes.last?.attempt == 1)
        #expect(fail(&driver) == 3)
        #expect(driver.take("error").count == 2, "the cause and the end are told again")
        driver.connect("2.2")
        #expect(driver.take("send") == ["send subscribe a"], "what was wanted still is")
        #expect(driver.questions.last?.channelName == nil, "the wish to be signed in too")
    }

    @Test func aHandshakeOrTheProgramStartsTheCountAnew() {
        for input in [nil, SessionInput.retryNow, .connect] {
            var driver = driver()
            driver.input(.connect)
            for _ in 0..<3 {
                driver.drop()
                if let input, driver.session.state == .unavailable {
                    driver.advance(10)
                    driver.input(input)
                } else {
                    driver.advanceToDeadline()
                }
            }
            if input == nil { driver.handshake() }
            #expect(fail(&driver) == 3)
        }
    }

    @Test("closes that mean now count too") func atOnceCounts() {
        var driver = driver()
        driver.input(.connect)
        for _ in 0..<3 {
            driver.close(4200)
            driver.advanceToDeadline()
        }
        driver.close(4200)
        #expect(driver.session.state == .disconnected)
        #expect(driver.changes.last?.closeCode == 4200)
    }

    @Test func refusedAttemptsCount() throws {
        var driver = driver { $0.asksBeforeReconnect = true }
        driver.connect()
        driver.drop()
        for attempt in 1...3 {
            driver.advanceToDeadline()
            let question = try #require(driver.reconnectQuestions.last)
            #expect(question.attempt == Int32(attempt))
            _ = driver.take()
            driver.input(.reconnect(question.id, .refuse("no")))
        }
        #expect(
            driver.take() == [
                "attempt refused", "error \(BIRD_ERR_GAVE_UP) 0 gave up after 3 attempts: connection reset",
                "state unavailable disconnected",
            ])
        #expect(driver.session.nextDeadline == nil)
    }

    @Test func aRefusedCloseIsNoGivingUp() {
        var driver = driver(1)
        driver.connect()
        driver.drop()
        driver.advanceToDeadline()
        driver.close(4001)
        #expect(driver.session.state == .failed)
        #expect(driver.changes.last?.reason == BIRD_ERR_REFUSED)
    }
}
