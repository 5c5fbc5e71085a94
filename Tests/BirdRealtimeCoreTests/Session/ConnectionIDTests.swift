import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// A repeated handshake replaces the id of a connection (Bird protocol 4), within bounds.
@Suite struct ConnectionIDTests {
    private static func waiting() -> SessionDriver {
        var driver = SessionDriver()
        driver.connect("1.0")
        for number in 1...8 { driver.subscribe("private-\(number)", UInt64(number)) }
        _ = driver.take()
        return driver
    }

    private static func newID(_ id: String, _ driver: inout SessionDriver) {
        driver.edge("bird:connection_established", data: "{\"connection_id\":\"\(id)\"}")
    }

    @Test("S5: an edge that gives one id after the other is left, and the authorizer is not asked for each")
    func flood() {
        var driver = Self.waiting()
        let transport = driver.transport
        for number in 1...3_000 {
            let handshake = InboundMessage(
                event: "bird:connection_established", data: .string(Array("{\"connection_id\":\"1.\(number)\"}".utf8)))
            driver.input(.message(transport, handshake))
        }
        #expect(driver.questions.count == 16, "for the first id, and for the one that replaced it")
        #expect(
            driver.take().filter { $0.hasPrefix("close") || $0.hasPrefix("error") || $0.hasPrefix("state connected") }
                == [
                    "close 1 1002 connection ids without end",
                    "error \(BIRD_ERR_PROTOCOL) 1002 The edge gave the connection two new ids within 5000 ms: the connection was closed.",
                    "state connected unavailable",
                ])
        let lost = driver.changes.last { $0.current == .unavailable }
        #expect((lost?.reason, lost?.closeCode) == (BIRD_ERR_PROTOCOL, 1002))
        #expect((lost?.delayMs ?? -1) >= 0)
    }

    @Test("S5: ids that are far enough apart replace each other for as long as the connection lives")
    func rotation() {
        var driver = Self.waiting()
        for number in 1...20 {
            Self.newID("1.\(number)", &driver)
            #expect(driver.session.connectionID == "1.\(number)")
            driver.advance(5_000)
            driver.session.noteInbound(now: driver.now)
        }
        #expect(driver.session.state == .connected)
    }

    @Test("S5: the same id again is no new one")
    func same() {
        var driver = Self.waiting()
        Self.newID("1.1", &driver)
        _ = driver.take()
        for _ in 0..<100 { Self.newID("1.1", &driver) }
        #expect(driver.take() == [])
    }

    @Test("S5: another connection begins anew")
    func anotherConnection() {
        var driver = Self.waiting()
        Self.newID("1.1", &driver)
        driver.close(4200)
        driver.advanceToDeadline()
        driver.handshake("2.0")
        Self.newID("2.1", &driver)
        #expect(driver.session.connectionID == "2.1")
    }
}
