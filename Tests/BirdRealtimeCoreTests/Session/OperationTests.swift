import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// Every operation with a number ends exactly once.
@Suite struct OperationTests {
    private static func waiting() -> SessionDriver {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1, operation: 5)
        driver.subscribe("orders", 1, operation: 6)
        _ = driver.take()
        return driver
    }

    private static let ends: [(end: @Sendable (inout SessionDriver) -> Void, status: Int32)] = [
        ({ $0.confirm("orders") }, BIRD_OK),
        ({ $0.unsubscribe(1) }, BIRD_ERR_UNSUBSCRIBED),
        ({ $0.input(.disconnect) }, BIRD_ERR_STATE),
        ({ $0.close(4009) }, BIRD_ERR_REFUSED),
        ({ $0.advance(30_000) }, BIRD_ERR_TIMEOUT),
    ]

    @Test(arguments: ends.indices)
    func subscribeEnds(index: Int) {
        var driver = Self.waiting()
        Self.ends[index].end(&driver)
        let status = Self.ends[index].status
        #expect(driver.take("completed") == ["completed 5 \(status)", "completed 6 \(status)"])
        driver.input(.disconnect)
        #expect(driver.take("completed") == [])
    }

    @Test func aDropKeepsSubscribesWaiting() {
        var driver = Self.waiting()
        driver.drop()
        driver.advanceToDeadline()
        driver.drop()
        driver.advanceToDeadline()
        #expect(driver.take("completed") == [])
        driver.handshake("3.3")
        driver.confirm("orders")
        #expect(driver.take("completed") == ["completed 5 \(BIRD_OK)", "completed 6 \(BIRD_OK)"])
    }

    @Test func successComesBeforeTheCompletion() {
        var driver = Self.waiting()
        driver.confirm("orders")
        #expect(
            driver.take() == [
                "channel 1 subscribed", "subscribed 1", "completed 5 \(BIRD_OK)", "completed 6 \(BIRD_OK)",
            ])
    }

    @Test func onASubscribedChannelTheEndIsAtOnce() {
        var driver = Self.waiting()
        driver.confirm("orders")
        _ = driver.take()
        driver.subscribe("orders", 1, operation: 7)
        #expect(driver.take() == ["completed 7 \(BIRD_OK)"])
    }

    @Test func whereNoConnectionIsToBeExpectedTheEndIsAtOnceAndTheWishStays() {
        for isRefused in [false, true] {
            var driver = SessionDriver()
            driver.connect()
            if isRefused {
                driver.close(4001)
            } else {
                driver.input(.disconnect)
            }
            _ = driver.take()
            driver.subscribe("orders", 1, operation: 7)
            #expect(driver.take() == ["completed 7 \(isRefused ? BIRD_ERR_REFUSED : BIRD_ERR_STATE)"])
            driver.connect("2.2")
            #expect(driver.take("send") == ["send subscribe orders"])
        }
    }

    @Test func beforeTheFirstConnectTheyWait() {
        var driver = SessionDriver()
        driver.subscribe("orders", 1, operation: 7)
        driver.connect()
        driver.confirm("orders")
        #expect(driver.take("completed") == ["completed 7 \(BIRD_OK)"])
    }

    @Test func tooManyForOneAnswerAreRefused() {
        var driver = SessionDriver()
        driver.connect()
        for operation in 1...1_030 as ClosedRange<UInt64> {
            driver.subscribe("orders", 1, operation: operation)
        }
        #expect(driver.take("completed") == (1_025...1_030).map { "completed \($0) \(BIRD_ERR_FULL)" })
        driver.confirm("orders")
        #expect(driver.take("completed").count == 1_024)
    }
}
