import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

@Suite struct ConnectionTests {
    @Test func connectOpensOneTransportAndTheHandshakeConnects() {
        var driver = SessionDriver()
        driver.input(.connect)
        #expect(driver.take() == ["state initialized connecting", "open 1"])
        driver.input(.connect)
        #expect(driver.take() == [])
        driver.input(.transportOpened(driver.transport))
        #expect(driver.session.state == .connecting)
        driver.handshake("4242.1357")
        #expect(driver.take() == ["state connecting connected"])
        #expect(driver.session.connectionID == "4242.1357")
    }
}
