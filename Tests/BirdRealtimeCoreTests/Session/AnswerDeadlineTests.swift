import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// The edge has 30 s for its answer from the moment at which the question was written to the socket.
@Suite struct AnswerDeadlineTests {
    private static let questions: [@Sendable (inout SessionDriver) -> Void] = [
        { $0.subscribe("orders", 1, operation: 5) },
        {
            $0.subscribe("private-a", 1, operation: 5)
            $0.grant()
        },
        {
            $0.input(.signin(refresh: false, operation: 5))
            $0.grant(memberData: "{}")
        },
    ]

    @Test(arguments: questions.indices)
    func timeBeforeTheFrameIsWrittenDoesNotCount(index: Int) {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "86400")
        driver.isBlocked = true
        Self.questions[index](&driver)
        driver.advance(100_000)
        driver.isBlocked = false
        driver.advance(29_999)
        #expect(driver.take("completed") == [])
        driver.advance(1)
        #expect(driver.take("completed") == ["completed 5 \(BIRD_ERR_TIMEOUT)"])
    }

    @Test func eachFrameHasItsOwnMoment() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "86400")
        driver.isBlocked = true
        driver.subscribe("a", 1)
        driver.subscribe("left", 2)
        driver.unsubscribe(2)
        driver.subscribe("b", 3)
        driver.write(1)
        driver.advance(10_000)
        driver.write(2)
        _ = driver.take()
        driver.advance(20_000)
        #expect(driver.take("subscription failed") == ["subscription failed 1 \(BIRD_ERR_TIMEOUT) will retry"])
        driver.confirm("a")
        driver.advance(9_999)
        #expect(driver.take("subscription failed") == [])
        driver.advance(1)
        #expect(driver.take("subscription failed") == ["subscription failed 3 \(BIRD_ERR_TIMEOUT) will retry"])
    }

    @Test func anErrorIsNotTheAnswerToAFrameThatIsNotWritten() {
        var driver = SessionDriver()
        driver.connect()
        driver.isBlocked = true
        driver.subscribe("orders", 1)
        driver.edgeError()
        driver.isBlocked = false
        driver.advance(29_999)
        #expect(driver.state(of: "orders") == .pending)
        driver.edgeError()
        driver.advance(1)
        #expect(driver.take("subscription failed") == ["subscription failed 1 \(BIRD_ERR_DENIED)"])
    }

    @Test func whatAnotherConnectionWroteCountsForNothing() {
        var driver = SessionDriver()
        driver.connect()
        driver.isBlocked = true
        driver.subscribe("orders", 1)
        let old = driver.transport
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        driver.input(.written(old, awaited: 1))
        driver.advance(60_000)
        #expect(driver.state(of: "orders") == .pending)
        driver.write(1)
        driver.advance(30_000)
        #expect(driver.take("subscription failed") == ["subscription failed 1 \(BIRD_ERR_TIMEOUT) will retry"])
    }
}
