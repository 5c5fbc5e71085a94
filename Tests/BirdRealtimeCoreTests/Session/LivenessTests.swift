import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

@Suite struct LivenessTests {
    @Test("REC-20 LIV-01 LIV-09: a silent edge is pinged, abandoned and replaced at once")
    func silence() {
        var driver = SessionDriver { $0.pongTimeoutMs = 1_000 }
        driver.connect(activityTimeout: "2")
        _ = driver.take()
        driver.advance(1_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["send ping"])
        driver.advance(999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(
            driver.take() == [
                "close 1 4200 activity timeout abandoned", "state connected unavailable", "lost", "connecting in",
                "state unavailable connecting", "open 2",
            ])
        #expect(driver.changes.first { $0.current == .unavailable }?.delayMs == 0)
        #expect(driver.session.connectionID == "")
    }

    @Test("LIV-11: any inbound bytes are proof of life")
    func anyBytes() {
        var driver = SessionDriver { $0.pongTimeoutMs = 1_000 }
        driver.connect(activityTimeout: "2")
        _ = driver.take()
        for _ in 0..<100 {
            driver.advance(1_000)
            driver.session.noteInbound(now: driver.now)
        }
        #expect(driver.take() == [])
        driver.advance(2_000)
        #expect(driver.take() == ["send ping"])
        driver.advance(999)
        driver.session.noteInbound(now: driver.now)
        driver.advance(1_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["send ping"])
    }

    @Test func pingsKeepTheirIntervalWhenThePongDeadlineIsLonger() {
        var driver = SessionDriver { $0.pongTimeoutMs = 30_000 }
        driver.connect(activityTimeout: "5")
        _ = driver.take()
        for _ in 0..<10 {
            driver.advance(5_000)
            #expect(driver.take() == ["send ping"])
            driver.session.noteInbound(now: driver.now)
        }
        driver.advance(5_000 + 29_999)
        #expect(driver.take() == ["send ping"])
        driver.advance(1)
        #expect(driver.take("close") == ["close 1 4200 activity timeout abandoned"])
    }

    @Test(
        "LIV-10: the program's own timeout counts if it is set and smaller",
        arguments: [
            (nil, nil, 120_000), (nil, "30", 30_000), (nil, "300", 300_000), (30_000, nil, 30_000),
            (30_000, "120", 30_000), (30_000, "10", 10_000), (200, "120", 200), (nil, "0", 1_000), (nil, "0.2", 1_000),
            (nil, "1.5", 1_500), (nil, "-3", 1_000), (nil, "1e300", 86_400_000), (nil, "\"30\"", 120_000),
            (nil, "null", 120_000),
        ] as [(Int64?, String?, Int64)])
    func activityTimeout(own: Int64?, server: String?, expected: Int64) {
        var driver = SessionDriver { $0.activityTimeoutMs = own }
        driver.connect(activityTimeout: server)
        _ = driver.take()
        driver.advance(expected - 1)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["send ping"])
    }

    @Test func theServersTimeoutOutlivesTheConnection() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "7")
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        _ = driver.take()
        driver.advance(7_000)
        #expect(driver.take() == ["send ping"])
    }

    @Test func aDialectMayTakeTheSmallerByDefault() {
        var driver = SessionDriver(dialect: .pusher)
        driver.input(.connect)
        driver.edge("pusher:connection_established", data: "{\"socket_id\":\"1.1\",\"activity_timeout\":300}")
        _ = driver.take()
        driver.advance(120_000)
        #expect(driver.take().count == 1)
    }

    @Test func pingsOfTheEdgeAreAnswered() {
        var driver = SessionDriver()
        driver.connect()
        _ = driver.take()
        driver.edge("bird:ping", data: "{}")
        driver.edge("bird:ping")
        #expect(driver.take() == ["send pong", "send pong"])
    }

    @Test("LIV-08: after a suspend the check is due at once")
    func suspend() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "120")
        _ = driver.take()
        driver.sleep(600_000)
        driver.advance(0)
        #expect(driver.take() == ["send ping"])
        driver.advance(30_000)
        #expect(driver.take("state") == ["state connected unavailable", "state unavailable connecting"])
    }

    @Test("LIV-02: a listener finds out that the edge has gone")
    func listener() {
        var driver = SessionDriver()
        driver.connect(activityTimeout: "10")
        _ = driver.take()
        driver.advance(10_000)
        #expect(driver.take() == ["send ping"])
        driver.drop()  // the edge's kernel, which knows of no connection any more, resets it
        driver.advance(1_000)
        #expect(driver.session.state == .connecting)
    }

    @Test func aPausedReaderPingsAtEachIntervalAndIsNotTakenForDead() {
        var driver = SessionDriver { $0.pongTimeoutMs = 30_000 }
        driver.connect(activityTimeout: "10")
        _ = driver.take()
        for _ in 0..<20 {
            driver.advance(9_999)
            driver.session.noteUnread()
            #expect(driver.take() == [])
            driver.advance(1)
            #expect(driver.take() == ["send ping"])
        }
    }

    @Test("a repeated handshake is no proof of life of its own; its activity timeout holds at once")
    func aRepeatedHandshake() {
        var driver = SessionDriver { $0.pongTimeoutMs = 30_000 }
        driver.connect(activityTimeout: "10")
        _ = driver.take()
        driver.advance(8_000)
        driver.input(
            .message(
                driver.transport,
                InboundMessage(
                    event: "bird:connection_established",
                    data: .string(Array("{\"connection_id\":\"1.1\",\"activity_timeout\":9}".utf8)))))
        driver.advance(999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["send ping"])
        driver.advance(30_000)
        #expect(driver.take("close").count == 1)
    }

    @Test("a ping that nobody waits for changes no deadline, and its number says when it is answered")
    func aPingBesides() {
        var liveness = Liveness(SessionConfiguration(), .bird)
        liveness.begin(serverTimeoutMs: 10_000, Instant(milliseconds: 0))
        let due = liveness.due
        let first = liveness.pingIsSent()
        let second = liveness.pingIsSent()
        #expect(liveness.due == due)
        #expect(!liveness.isAnswered(first))
        #expect(liveness.pongCame() == first)
        #expect(liveness.isAnswered(first) && !liveness.isAnswered(second) && !liveness.isEveryPingAnswered)
        #expect(liveness.pongCame() == second)
        #expect(liveness.isAnswered(first) && liveness.isAnswered(second) && liveness.isEveryPingAnswered)
        #expect(liveness.pongCame() == nil, "nobody asked for it")
        let third = liveness.pingIsSent()
        #expect(!liveness.isAnswered(third))
    }

    @Test("a ping besides does not put off the end of a silent edge")
    func aPingBesidesIsNoLife() {
        var driver = SessionDriver { $0.pongTimeoutMs = 5_000 }
        driver.connect(activityTimeout: "10")
        driver.advance(12_000)
        _ = driver.take()
        var turn = Turn(now: driver.now, random: driver.random)
        driver.session.sendPing(&turn)
        driver.advance(2_999)
        #expect(driver.session.state == .connected)
        driver.advance(1)
        #expect(driver.take("close").count == 1)
    }

    // MARK: - Misses (Bird protocol 24.4)

    private func staged() -> SessionDriver {
        SessionDriver { Preset.staged.apply(to: &$0) }
    }

    @Test("a ping that is not answered is sent again at once, and so many misses are the end")
    func misses() {
        var driver = staged()
        driver.connect(activityTimeout: "120")
        _ = driver.take()
        driver.advance(19_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["send ping"])
        driver.advance(9_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["send ping"])
        driver.advance(9_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(
            driver.take() == [
                "close 1 4200 activity timeout abandoned", "state connected unavailable", "lost", "connecting in",
                "state unavailable connecting", "open 2",
            ])
        let lost = driver.changes.first { $0.current == .unavailable }
        #expect(lost?.reasonText == "The edge has not answered 2 pings in a row, each for 10000 ms.")
        #expect((lost?.delayMs, lost?.reason) == (0, BIRD_ERR_TIMEOUT))
    }

    @Test(
        "a dead link is declared exactly interval + misses x deadline after its last byte, whenever that came",
        arguments: [
            (20_000, 10_000, 2), (120_000, 30_000, 1), (20_000, 10_000, 5), (1_000, 30_000, 1), (1_000, 7_300, 3),
            (5_000, 5_000, 2),
        ] as [(Int64, Int64, Int)])
    func window(intervalMs: Int64, deadlineMs: Int64, misses: Int) {
        let windowMs = intervalMs + Int64(misses) * deadlineMs
        // The last byte comes at any moment of the first pings' life.
        for step in 0...60 as ClosedRange<Int64> {
            var driver = SessionDriver {
                $0.activityTimeoutMs = intervalMs
                $0.pongTimeoutMs = deadlineMs
                $0.pongMissesMax = misses
            }
            driver.connect(activityTimeout: "86400")
            driver.advance(step * (windowMs - 1) / 60)
            driver.session.noteInbound(now: driver.now)
            driver.advance(windowMs - 1)
            #expect(driver.session.state == .connected, "byte \(step)")
            driver.advance(1)
            #expect(driver.session.state == .connecting, "byte \(step)")
        }
    }

    @Test("any inbound byte forgets the misses, and no ping is sent too often")
    func aByteForgetsMisses() {
        var driver = staged()
        driver.connect(activityTimeout: "120")
        for _ in 0..<10 {
            _ = driver.take()
            driver.advance(39_999)
            #expect(driver.take() == ["send ping", "send ping"])
            driver.session.noteInbound(now: driver.now)
        }
        #expect(driver.session.state == .connected)
    }

    @Test func aLatePongOfTheFirstPingIsLife() {
        var driver = staged()
        driver.connect(activityTimeout: "120")
        driver.advance(31_000)
        _ = driver.take()
        driver.edge("bird:pong")
        driver.advance(19_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take() == ["send ping"])
        driver.advance(19_999)
        #expect(driver.take() == ["send ping"])
        driver.advance(1)
        #expect(driver.take("close").count == 1)
    }

    @Test func missesAreThoseOfOneConnection() {
        var driver = staged()
        driver.connect(activityTimeout: "120")
        driver.advance(35_000)
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        _ = driver.take()
        driver.advance(39_999)
        #expect(driver.take() == ["send ping", "send ping"])
        driver.advance(1)
        #expect(driver.take("close").count == 1)
    }

    @Test func aPausedReaderMissesNothing() {
        var driver = staged()
        driver.connect(activityTimeout: "120")
        _ = driver.take()
        for _ in 0..<20 {
            driver.session.noteUnread()
            driver.advance(19_999)
            #expect(driver.take() == [])
            driver.advance(1)
            #expect(driver.take() == ["send ping"])
        }
        driver.advance(19_999)
        #expect(driver.take() == ["send ping"])
        let end = driver.now + 1
        let isDead = [driver.session.isEdgeDead(driver.now), driver.session.isEdgeDead(end)]
        #expect(isDead == [false, true], "the second miss decides")
    }

    @Test func liveCheckCountsForTheFlapGuard() {
        var driver = SessionDriver { $0.pongTimeoutMs = 500 }
        driver.connect(activityTimeout: "1")
        var delays: [Int64] = []
        for _ in 0..<4 {
            driver.advance(1_500)
            delays.append(driver.changes.last { $0.current == .unavailable }?.delayMs ?? -1)
            while driver.session.state != .connecting {
                driver.advanceToDeadline()
            }
            driver.handshake()
        }
        #expect(delays[0] == 0 && delays[1] == 0)
        #expect((1_000...2_000).contains(delays[2]))
        #expect((2_000...4_000).contains(delays[3]))
    }
}
