import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// A server that refuses the upgrade and says when to come back.
@Suite struct UpgradeRefusalTests {
    private static let fault = Fault(
        BIRD_ERR_UPGRADE, .connection, field: "upgrade", "busy", httpStatus: 503, isRetriable: true)

    private func refused(
        _ retryAfterMs: Int64, _ configure: (inout SessionConfiguration) -> Void = { _ in }
    ) -> SessionDriver {
        var driver = SessionDriver(configure)
        driver.input(.connect)
        driver.input(.transportEnded(driver.transport, .refused(Self.fault, retryAfterMs: retryAfterMs)))
        return driver
    }

    @Test("S10: the wait is that of the policy on top of what the server asks for, at most a minute")
    func waitIsAtLeastWhatTheServerAsksFor() {
        for (wish, wait) in [(0, 0), (5_000, 5_000), (60_000, 60_000), (.max, 60_000), (-7, 0)] as [(Int64, Int64)] {
            var driver = refused(wish)
            #expect((wait...wait + 1_000).contains(driver.changes.last?.delayMs ?? -1))
            #expect(driver.changes.last?.reason == BIRD_ERR_UPGRADE)
            #expect(driver.take("error").count == 1)
            driver = refused(wish) {
                $0.reconnect = .fixed
                $0.reconnectDelayMs = 2_000
            }
            #expect(driver.changes.last?.delayMs == wait + 2_000)
        }
    }

    @Test func manyClientsDoNotComeBackAtOnce() {
        var delays: Set<Int64> = []
        var driver = refused(10_000)
        for _ in 0..<20 {
            delays.insert(driver.changes.last?.delayMs ?? -1)
            while driver.session.state == .unavailable { driver.advanceToDeadline() }
            driver.input(.transportEnded(driver.transport, .refused(Self.fault, retryAfterMs: 10_000)))
        }
        #expect(delays.count > 10 && delays.allSatisfy { $0 >= 10_000 })
    }

    @Test func whatIsPlannedAnewWaitsForIt() {
        var driver = refused(10_000) { $0.reconnect = .fixed }
        driver.advance(1_000)
        var changed = SessionConfiguration()
        changed.reconnect = .fixed
        changed.reconnectDelayMs = 1
        driver.input(.configure(changed))
        #expect(driver.session.nextDeadline == driver.now + 9_001)
    }

    @Test func aHintAboutTheNetworkWaitsForIt() {
        var driver = refused(10_000) {
            $0.reconnect = .fixed
            $0.reconnectDelayMs = 20_000
        }
        driver.advance(1_000)
        driver.input(.network(.up, spreadMs: 0))
        #expect(driver.take("open") == ["open 1"])
        #expect(driver.session.nextDeadline == driver.now + 9_000)
        driver.advanceToDeadline()
        #expect(driver.take("open") == ["open 2"])
    }

    @Test func permissionIsAskedForBehindIt() {
        var driver = refused(10_000) {
            $0.asksBeforeReconnect = true
            $0.reconnect = .fixed
            $0.reconnectDelayMs = 0
        }
        driver.advance(9_999)
        #expect(driver.take("ask") == [])
        driver.advance(1)
        #expect(driver.take("ask").count == 1)
    }

    @Test(arguments: [SessionInput.connect, .retryNow])
    func theProgramsOwnCallDoesNotWait(_ call: SessionInput) {
        var driver = refused(10_000)
        driver.input(call)
        #expect(driver.take("open") == ["open 1", "open 2"])
    }
}
