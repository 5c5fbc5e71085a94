import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// Which failures the library tries again by itself, and that it says so.
@Suite struct RetryTests {
    struct Failure: Sendable {
        var name: String
        var happen: @Sendable (inout SessionDriver) -> Void
        var status: Int32
        var willRetry: Bool
    }

    static let failures = [
        Failure(name: "the authorizer denies", happen: { $0.refuse() }, status: BIRD_ERR_DENIED, willRetry: false),
        Failure(
            name: "the authorizer fails four times",
            happen: { driver in
                for _ in 0..<4 {
                    driver.refuse(BIRD_ERR_AUTH, http: 503, isRetriable: true)
                    driver.advanceToDeadline()
                }
            }, status: BIRD_ERR_AUTH, willRetry: true),
        Failure(
            name: "the authorizer does not answer", happen: { $0.advance(60_000) }, status: BIRD_ERR_AUTH,
            willRetry: true),
        Failure(
            name: "the authorizer's answer cannot be used", happen: { $0.grant("") }, status: BIRD_ERR_AUTH,
            willRetry: false),
        Failure(
            name: "the edge is silent",
            happen: {
                $0.grant()
                $0.advance(30_000)
            }, status: BIRD_ERR_TIMEOUT, willRetry: true),
        Failure(
            name: "the edge reports an error",
            happen: {
                $0.grant()
                $0.edgeError()
                $0.advance(2_000)
            }, status: BIRD_ERR_DENIED, willRetry: false),
        Failure(
            name: "the edge refuses the channel",
            happen: { $0.edge("bird_internal:subscription_error", "private-a", data: "{}") }, status: BIRD_ERR_DENIED,
            willRetry: false),
    ]

    @Test(arguments: failures.indices)
    func subscriptions(index: Int) {
        let failure = Self.failures[index]
        var driver = SessionDriver()
        driver.connect(activityTimeout: "86400")
        driver.subscribe("private-a", 1)
        _ = driver.take()
        failure.happen(&driver)
        let told = driver.take("subscription failed")
        #expect(
            told == ["subscription failed 1 \(failure.status)\(failure.willRetry ? " will retry" : "")"],
            "\(failure.name)")
        driver.advance(60_000)
        let attempts = driver.take().filter { $0.hasPrefix("authorize") }.count
        #expect((attempts > 0) == failure.willRetry, "\(failure.name)")
    }

    @Test func whatIsFinalIsAskedAgainByTheProgramOrOnTheNextConnection() {
        for isDrop in [false, true] {
            for failure in Self.failures where !failure.willRetry {
                var driver = SessionDriver()
                driver.connect()
                driver.subscribe("private-a", 1)
                failure.happen(&driver)
                _ = driver.take()
                if isDrop {
                    driver.drop()
                    driver.advanceToDeadline()
                    driver.handshake("2.2")
                } else {
                    driver.subscribe("private-a", 1)
                }
                #expect(driver.take("authorize").count == 1, "\(failure.name)")
            }
        }
    }

    @Test func theMemberChannelIsRetriedToo() {
        for (willRetry, status) in [(true, BIRD_ERR_TIMEOUT), (false, BIRD_ERR_DENIED)] {
            var driver = SessionDriver()
            driver.connect(activityTimeout: "86400")
            driver.signIn()
            _ = driver.take()
            if !willRetry { driver.edgeError() }
            driver.advance(30_000)
            #expect(
                driver.take("subscription failed") == [
                    "subscription failed 99 \(status)\(willRetry ? " will retry" : "")"
                ])
            driver.advance(10_000)
            #expect(driver.take("send").isEmpty == !willRetry)
        }
    }

    /// What the authorizer says after nobody waits for it any more changes nothing.
    @Test(arguments: [0, 1, 2, 3, 4, 5])
    func lateAnswersOfTheAuthorizer(index: Int) {
        let ends: [(inout SessionDriver) -> Void] = [
            { $0.drop() },
            { $0.unsubscribe(1) },
            {
                $0.unsubscribe(1)
                $0.subscribe("private-a", 2)
            },
            { $0.grant("k:first") },
            { $0.refuse() },
            { $0.advance(10_000) },
        ]
        for isGrant in [true, false] {
            var driver = SessionDriver()
            driver.connect(activityTimeout: "86400")
            driver.subscribe("private-a", 1)
            ends[index](&driver)
            _ = driver.take()
            for _ in 0..<2 {
                let first = driver.questions.count
                if isGrant {
                    driver.grant("k:late", question: first)
                } else {
                    driver.refuse(question: first)
                }
            }
            #expect(driver.take() == [])
        }
    }
}
