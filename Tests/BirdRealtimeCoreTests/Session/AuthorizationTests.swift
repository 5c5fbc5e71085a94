import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

@Suite struct AuthorizationTests {
    @Test("AUTH-08: more channels than authorizations in flight, answers in any order")
    func inFlightBound() {
        var driver = SessionDriver()
        driver.connect()
        for reference in 1...20 as ClosedRange<UInt64> {
            driver.subscribe("private-\(reference)", reference)
        }
        #expect(driver.take("authorize").count == 8)
        var answered: Set<UInt64> = []
        while answered.count < 20 {
            // The latest question first.
            guard let question = driver.questions.last(where: { !answered.contains($0.id.number) }) else { break }
            answered.insert(question.id.number)
            driver.input(
                .authorization(
                    question.id,
                    .granted(auth: "k:\(question.channelName ?? "")", memberData: nil, sharedSecret: nil)))
            #expect(driver.questions.count - answered.count <= 8)
        }
        let frames = driver.take("send")
        #expect(Set(frames) == Set((1...20).map { "send subscribe private-\($0) k:private-\($0)" }))
        #expect(frames.count == 20)
    }

    @Test func anAnswerWithoutASignatureGoesNowhere() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-1", 1)
        _ = driver.take()
        driver.grant("")
        let told = driver.take()
        #expect(!told.contains { $0.hasPrefix("send") })
        #expect(told.contains("subscription failed 1 \(BIRD_ERR_AUTH)"))
    }

    @Test func whoLeavesTheQueueIsNotAskedFor() {
        var driver = SessionDriver { $0.authorizationsInFlightMax = 1 }
        driver.connect()
        for reference in 1...4 as ClosedRange<UInt64> {
            driver.subscribe("private-\(reference)", reference)
        }
        driver.unsubscribe(2)
        driver.subscribe("private-2", 5)
        driver.unsubscribe(3)
        _ = driver.take()
        for _ in 0..<3 {
            driver.grant()
        }
        #expect(
            driver.take("send") == [
                "send subscribe private-1 k:s", "send subscribe private-4 k:s", "send subscribe private-2 k:s",
            ])
        #expect(driver.questions.count == 3)
    }

    @Test func whoeverFreesAPlaceLetsTheNextAsk() {
        let frees: [(inout SessionDriver) -> Void] = [
            { $0.unsubscribe(1) }, { $0.grant() }, { $0.refuse() },
            { $0.refuse(BIRD_ERR_AUTH, http: 503, isRetriable: true) }, { $0.advance(10_000) },
        ]
        for free in frees {
            var driver = SessionDriver { $0.authorizationsInFlightMax = 1 }
            driver.connect()
            driver.subscribe("private-1", 1)
            driver.subscribe("private-2", 2)
            #expect(driver.take("authorize") == ["authorize 1 private-1 for 1.1"])
            free(&driver)
            #expect(driver.take("authorize") == ["authorize 2 private-2 for 1.1"])
        }
    }

    @Test func theQueueStaysSmallWhenChannelsComeAndGo() {
        var driver = SessionDriver { $0.authorizationsInFlightMax = 1 }
        driver.connect()
        driver.subscribe("private-0", 1)
        for reference in 2...5_000 as ClosedRange<UInt64> {
            driver.subscribe("private-a", reference)
            driver.unsubscribe(reference)
        }
        driver.subscribe("private-b", 6_000)
        _ = driver.take()
        driver.grant()
        #expect(driver.take("authorize") == ["authorize 2 private-b for 1.1"])
        #expect(driver.session.authorizations.waiters.count <= 70)
    }

    @Test func signinGoesBeforeWaitingChannels() {
        var driver = SessionDriver { $0.authorizationsInFlightMax = 1 }
        driver.connect()
        driver.subscribe("private-1", 1)
        driver.subscribe("private-2", 2)
        driver.input(.signin(refresh: false, operation: 0))
        _ = driver.take()
        driver.grant()
        #expect(driver.take("authorize") == ["authorize 2 signin for 1.1"])
    }

    @Test func transientFailuresAreToldAfterThreeRetries() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1, operation: 4)
        _ = driver.take()
        for retry in 1...3 {
            driver.refuse(BIRD_ERR_AUTH, http: 503, isRetriable: true)
            #expect(driver.take() == [])
            let waitMs = (driver.session.nextDeadline ?? driver.now) - driver.now
            #expect((0...(500 << Int64(retry))).contains(waitMs))
            driver.advanceToDeadline()
            #expect(driver.take() == ["authorize \(retry + 1) private-a for 1.1"])
        }
        driver.refuse(BIRD_ERR_AUTH, http: 503, isRetriable: true)
        #expect(
            driver.take() == [
                "channel 1 idle", "subscription failed 1 \(BIRD_ERR_AUTH) will retry", "completed 4 \(BIRD_ERR_AUTH)",
            ])
        for _ in 0..<20 {
            let waitMs = (driver.session.nextDeadline ?? driver.now) - driver.now
            #expect((0...30_000).contains(waitMs))
            driver.advanceToDeadline()
            driver.session.noteInbound(now: driver.now)
            driver.refuse(BIRD_ERR_AUTH, http: 503, isRetriable: true)
        }
        #expect(driver.take("subscription failed") == [], "told once")
        driver.advanceToDeadline()
        driver.grant()
        driver.confirm("private-a")
        #expect(driver.take("subscribed") == ["subscribed 1"])
    }

    @Test func retryAfterIsHonouredUpToAMinute() {
        for (wish, wait) in [(nil, 0), (5_000, 5_000), (3_600_000, 60_000), (-7, 0)] as [(Int64?, Int64)] {
            var driver = SessionDriver()
            driver.connect()
            driver.subscribe("private-a", 1)
            driver.refuse(BIRD_ERR_AUTH, http: 429, isRetriable: true, retryAfterMs: wish)
            let waitMs = (driver.session.nextDeadline ?? driver.now) - driver.now
            #expect((wait...wait + 1_000).contains(waitMs))
        }
    }

    @Test("AUTH-04 AUTH-05: a denial keeps its status and endpoint and is final")
    func denial() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1, operation: 4)
        _ = driver.take()
        driver.refuse(http: 401)
        #expect(
            driver.take() == [
                "channel 1 failed", "subscription failed 1 \(BIRD_ERR_DENIED)", "completed 4 \(BIRD_ERR_DENIED)",
            ])
        guard case .subscriptionFailed(_, let fault, _, _)? = driver.events.dropLast().last else {
            Issue.record("no failure")
            return
        }
        #expect(fault.httpStatus == 401 && fault.code == 0 && fault.endpoint == "http://127.0.0.1/auth")
        driver.advance(100_000)
        #expect(driver.take() == [])
        #expect(driver.session.state == .connected)
    }

    @Test func aDenialAfterATransientFailureIsToldToo() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        for _ in 0..<4 {
            driver.refuse(BIRD_ERR_AUTH, http: 503, isRetriable: true)
            driver.advanceToDeadline()
        }
        driver.refuse()
        #expect(
            driver.take("subscription failed") == [
                "subscription failed 1 \(BIRD_ERR_AUTH) will retry", "subscription failed 1 \(BIRD_ERR_DENIED)",
            ])
    }

    @Test("AUTH-09: an authorizer that never answers is a transient failure, and its late answer is ignored")
    func authorizerTimeout() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        _ = driver.take()
        driver.advance(9_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take("withdraw") == ["withdraw 1"])
        driver.grant()
        #expect(driver.take() == [])
        driver.advance(60_000)
        #expect(driver.take("subscription failed") == ["subscription failed 1 \(BIRD_ERR_AUTH) will retry"])
        #expect(driver.questions.allSatisfy { $0.channelName == "private-a" })
    }

    @Test func answersWithoutAuthAreDenied() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        _ = driver.take()
        driver.grant("")
        #expect(driver.take() == ["channel 1 failed", "subscription failed 1 \(BIRD_ERR_AUTH)"])
    }

    @Test func aMissingAuthorizerIsAFailureOfTheChannelThatNamesTheOption() {
        for name in ["private-a", "presence-a"] {
            var driver = SessionDriver { $0.hasChannelAuthorizer = false }
            driver.connect()
            _ = driver.take()
            driver.subscribe(name, 1, operation: 2)
            #expect(
                driver.take() == [
                    "channel 1 failed", "subscription failed 1 \(BIRD_ERR_AUTH)", "completed 2 \(BIRD_ERR_AUTH)",
                ])
            guard case .subscriptionFailed(_, let fault, _, false)? = driver.events.dropLast().last else {
                Issue.record("no failure")
                continue
            }
            #expect(fault.field == "auth_endpoint" && fault.message.contains("auth_endpoint"))
        }
    }
}
