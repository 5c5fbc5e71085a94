import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// Errors of the edge that name a channel, as soketi sends them.
@Suite struct ChannelErrorTests {
    private static func connected(_ dialect: Dialect) -> SessionDriver {
        var driver = SessionDriver(dialect: dialect)
        driver.connect()
        _ = driver.take()
        return driver
    }

    private static func error(_ channel: String, code: Int?, _ driver: inout SessionDriver) {
        let data = "{\"code\":\(code.map(String.init) ?? "null"),\"message\":\"no\"}"
        driver.edge(driver.session.dialect.error, channel, data: data)
    }

    @Test(
        "S8: a subscribed channel hears of it as an error and stays subscribed", arguments: [Dialect.bird, .pusher],
        [nil, 4301, 4009])
    func subscribed(dialect: Dialect, code: Int?) {
        var driver = Self.connected(dialect)
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        _ = driver.take()
        Self.error("orders", code: code, &driver)
        #expect(driver.take() == ["error on 1 orders \(BIRD_ERR_SERVER) \(code ?? 0) no"])
        #expect(driver.state(of: "orders") == .subscribed)
        guard case .channelError(_, let data, let fault)? = driver.events.last else {
            Issue.record("no error")
            return
        }
        #expect(data == .string(Array("{\"code\":\(code.map(String.init) ?? "null"),\"message\":\"no\"}".utf8)))
        #expect((fault.area, fault.channel) == (.channel, "orders"))
        driver.advance(60_000)
        #expect(driver.state(of: "orders") == .subscribed)
    }

    @Test("S8: a pending subscribe is denied by it, and no other", arguments: [Dialect.bird, .pusher])
    func pending(dialect: Dialect) {
        var driver = Self.connected(dialect)
        driver.subscribe("orders", 1, operation: 3)
        driver.subscribe("parcels", 2)
        _ = driver.take()
        Self.error("orders", code: 4009, &driver)
        #expect(
            driver.take() == [
                "error on 1 orders \(BIRD_ERR_SERVER) 4009 no", "channel 1 failed",
                "subscription failed 1 \(BIRD_ERR_DENIED)",
                "completed 3 \(BIRD_ERR_DENIED)",
            ])
        driver.confirm("parcels")
        driver.advance(60_000)
        #expect((driver.state(of: "orders"), driver.state(of: "parcels")) == (.failed, .subscribed))
        // It was the answer: none is due any more.
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        #expect(driver.state(of: "orders") == .subscribed)
    }

    @Test("S8: limits of client events and watchlists are no answer to a subscribe", arguments: [4301, 4302])
    func limits(code: Int) {
        var driver = Self.connected(.pusher)
        driver.subscribe("orders", 1)
        _ = driver.take()
        Self.error("orders", code: code, &driver)
        #expect(driver.take() == ["error on 1 orders \(BIRD_ERR_SERVER) \(code) no"])
        driver.advance(10_000)
        #expect(driver.state(of: "orders") == .pending)
    }

    @Test("S8: what the edge has not been asked for is not refused")
    func notAsked() {
        var driver = Self.connected(.bird)
        driver.subscribe("private-a", 1)
        _ = driver.take()
        Self.error("private-a", code: nil, &driver)
        #expect(driver.take() == ["error on 1 private-a \(BIRD_ERR_SERVER) 0 no"])
        driver.grant()
        driver.confirm("private-a")
        #expect(driver.state(of: "private-a") == .subscribed)
    }

    @Test("S8: a frame that is not written is not refused")
    func notWritten() {
        var driver = Self.connected(.bird)
        driver.isBlocked = true
        driver.subscribe("orders", 1)
        Self.error("orders", code: nil, &driver)
        #expect(driver.state(of: "orders") == .pending)
        driver.isBlocked = false
        driver.confirm("orders")
        #expect(driver.state(of: "orders") == .subscribed)
    }

    @Test(
        "S8: an error about a channel that nobody holds is told with its name, and blames nobody",
        arguments: [Dialect.bird, .pusher])
    func unknownChannel(dialect: Dialect) {
        var driver = Self.connected(dialect)
        driver.subscribe("orders", 1)
        _ = driver.take()
        Self.error("elsewhere", code: nil, &driver)
        #expect(driver.take() == ["error on 0 elsewhere \(BIRD_ERR_SERVER) 0 no"])
        driver.advance(10_000)
        #expect(driver.state(of: "orders") == .pending)
        Self.error(String(repeating: "x", count: 10_000), code: nil, &driver)
        #expect(driver.take() == ["error on 0  \(BIRD_ERR_SERVER) 0 no"], "no channel can be called so")
    }

    @Test("S8: a refused channel is not refused twice")
    func twice() {
        var driver = Self.connected(.bird)
        driver.subscribe("orders", 1)
        Self.error("orders", code: nil, &driver)
        _ = driver.take()
        Self.error("orders", code: nil, &driver)
        #expect(driver.take() == ["error on 1 orders \(BIRD_ERR_SERVER) 0 no"])
    }

    @Test("S8: a failed subscription's error names its channel")
    func failuresNameTheChannel() {
        var driver = Self.connected(.bird)
        driver.subscribe("private-a", 1)
        driver.refuse()
        guard case .subscriptionFailed(_, let fault, _, _)? = driver.events.last else {
            Issue.record("no failure")
            return
        }
        #expect(fault.channel == "private-a")
    }
}
