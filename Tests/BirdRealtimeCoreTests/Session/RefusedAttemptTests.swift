import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// What an edge says before the handshake, or instead of it.
@Suite struct RefusedAttemptTests {
    private static func opened(_ dialect: Dialect) -> SessionDriver {
        var driver = SessionDriver(dialect: dialect)
        driver.subscribe("orders", 1, operation: 3)
        driver.input(.connect)
        driver.input(.transportOpened(driver.transport))
        _ = driver.take()
        return driver
    }

    @Test(
        "S6: before the handshake the code of an error is that of a close: final",
        arguments: [4000, 4001, 4003, 4099, 4300, 4999])
    func refused(code: Int) {
        var driver = Self.opened(.pusher)
        driver.edgeError("no such app", code: code)
        #expect(
            driver.take() == [
                "close 1 1000 error \(code)", "error \(BIRD_ERR_REFUSED) \(code) no such app",
                "state connecting failed",
                "completed 3 \(BIRD_ERR_REFUSED)",
            ])
        #expect(driver.session.nextDeadline == nil)
        #expect(driver.changes.last?.closeCode == Int32(code))
        // What the server does then with the connection is nobody's business.
        driver.drop()
        driver.close(4200)
        #expect(driver.take() == [])
    }

    @Test(
        "S6: the bands of the codes that ask for another attempt hold",
        arguments: [(4100, 1_000, 2_000), (4200, 0, 0), (4299, 0, 0)])
    func bands(code: Int, leastMs: Int64, mostMs: Int64) {
        var driver = Self.opened(.pusher)
        driver.edgeError("busy", code: code)
        #expect(
            Array(driver.take().prefix(3)) == [
                "close 1 1000 error \(code)", "error \(BIRD_ERR_SERVER) \(code) busy", "state connecting unavailable",
            ])
        let plan = driver.plan
        #expect((leastMs...mostMs).contains(plan?.delayMs ?? -1))
        #expect((plan?.reason, plan?.closeCode) == (BIRD_ERR_LOST, Int32(code)))
        #expect(plan?.reasonText == "The edge refused the attempt with error \(code): busy")
    }

    @Test("S6: the same error of one attempt after the other is told once, another one anew")
    func toldOnce() {
        var driver = Self.opened(.pusher)
        for code in [4100, 4100, 4101, 4100] {
            driver.edgeError("busy", code: code)
            while driver.session.state != .connecting { driver.advanceToDeadline() }
            driver.input(.transportOpened(driver.transport))
        }
        #expect(driver.take("error").map { $0.split(separator: " ")[2] } == ["4100", "4101", "4100"])
    }

    @Test(
        "S6: an error without such a code waits for what the server does next; in the dialect bird every error does",
        arguments: [(Dialect.pusher, nil), (.pusher, 1009), (.pusher, 5000), (.bird, 4001)] as [(Dialect, Int?)])
    func others(dialect: Dialect, code: Int?) {
        var driver = Self.opened(dialect)
        driver.edgeError("something", code: code)
        #expect(driver.take() == ["error \(BIRD_ERR_SERVER) \(code ?? 0) something"])
        #expect(driver.session.state == .connecting)
        driver.handshake()
        #expect(driver.session.state == .connected)
    }

    @Test("S6: after the handshake an error ends nothing, whatever its code")
    func connected() {
        var driver = Self.opened(.pusher)
        driver.handshake()
        _ = driver.take()
        driver.edgeError("something", code: 4001)
        // The ping asks what the error was the answer to.
        #expect(driver.take() == ["error \(BIRD_ERR_SERVER) 4001 something", "send ping"])
        #expect(driver.session.state == .connected)
    }

    @Test(
        "S9: a server of the other dialect is known by its greeting, and that is final",
        arguments: [Dialect.bird, .pusher])
    func greetingOfTheOtherDialect(dialect: Dialect) {
        let other = dialect === Dialect.bird ? Dialect.pusher : .bird
        var driver = Self.opened(dialect)
        driver.edge(
            other.connectionEstablished, data: "{\"\(other.connectionIDKey)\":\"1.1\",\"activity_timeout\":120}")
        guard case .error(let fault)? = driver.events.first(where: { if case .error = $0 { true } else { false } })
        else {
            Issue.record("no error")
            return
        }
        #expect((fault.status, fault.field, fault.isRetriable) == (BIRD_ERR_PROTOCOL, "dialect", false))
        #expect(
            fault.message == "The server speaks the dialect \(other.name), and this client is set to \(dialect.name). "
                + "Set dialect to \(other.name), or ws_host to another server.")
        #expect(
            driver.take().filter { !$0.hasPrefix("error") } == [
                "close 1 4001 handshake of the dialect \(other.name)", "state connecting failed",
                "completed 3 \(BIRD_ERR_PROTOCOL)",
            ])
        #expect(driver.session.nextDeadline == nil)
    }

    @Test("S9: once connected, that event means nothing", arguments: [nil, "orders"])
    func greetingLater(channel: String?) {
        var driver = Self.opened(.bird)
        driver.handshake()
        _ = driver.take()
        driver.edge("pusher:connection_established", channel, data: "{\"socket_id\":\"1.1\"}")
        #expect(driver.take() == [])
        #expect(driver.session.state == .connected)
    }
}
