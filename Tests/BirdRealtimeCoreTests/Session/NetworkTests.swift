import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// Hints about the network: what they hurry, and how seldom.
@Suite struct NetworkTests {
    /// Waiting for a planned attempt, long enough that nothing else happens meanwhile.
    private func waiting(seed: UInt64 = 1, _ configure: (inout SessionConfiguration) -> Void = { _ in })
        -> SessionDriver
    {
        var driver = SessionDriver(
            {
                $0.reconnect = .fixed
                $0.reconnectDelayMs = 86_400_000
                configure(&$0)
            }, seed: seed)
        driver.connect()
        driver.drop()
        _ = driver.take()
        return driver
    }

    private func connected(_ configure: (inout SessionConfiguration) -> Void = { _ in }) -> SessionDriver {
        var driver = SessionDriver(configure)
        driver.connect()
        _ = driver.take()
        return driver
    }

    private let attempt = ["state unavailable connecting"]

    // MARK: Waiting

    @Test("an attempt that waits begins", arguments: [NetworkHint.up, .resumed])
    func tryNow(hint: NetworkHint) {
        var driver = waiting()
        driver.input(.network(hint, spreadMs: 0))
        #expect(driver.take() == ["connecting in"] + attempt + ["open 2"])
        guard
            case .connectingIn(let plan)? = driver.events.last(where: {
                if case .connectingIn = $0 { true } else { false }
            })
        else {
            Issue.record("nothing was told")
            return
        }
        #expect((plan.delayMs, plan.reason) == (0, BIRD_OK))
        #expect(plan.reasonText == (hint == .up ? "the network came up" : "the machine was suspended"))
    }

    @Test func aNetworkThatGoesBeginsNothing() {
        var driver = waiting()
        let due = driver.session.nextDeadline
        driver.input(.network(.down, spreadMs: 0))
        #expect(driver.take() == [])
        #expect(driver.session.nextDeadline == due)
    }

    @Test func aFlappingNetworkMeansOneAttemptASecond() {
        var driver = waiting()
        let start = driver.now
        for _ in 0..<500 {
            driver.input(.network(.down, spreadMs: 0))
            driver.input(.network(.up, spreadMs: 0))
            driver.advance(20)
            if driver.session.state == .connecting {
                driver.drop()
            }
        }
        let attempts = driver.effects.count { if case .open = $0 { true } else { false } } - 1
        #expect(driver.now - start == 10_000)
        #expect((9...11).contains(attempts))
    }

    @Test func manyClientsSpreadTheirAttempts() {
        var delays: [Int64] = []
        for seed in 1...40 as ClosedRange<UInt64> {
            var driver = waiting(seed: seed)
            let start = driver.now
            driver.input(.network(.up, spreadMs: 1_000))
            #expect(driver.take("state") == [] || driver.session.state == .connecting)
            driver.advance(1_000)
            #expect(driver.session.state == .connecting)
            guard
                case .connectingIn(let plan)? = driver.events.last(where: {
                    if case .connectingIn = $0 { true } else { false }
                })
            else { continue }
            delays.append(plan.delayMs)
            #expect(driver.now - start == 1_000)
        }
        #expect(delays.allSatisfy { (0...1_000).contains($0) })
        #expect((delays.min() ?? 1_000) < 200 && (delays.max() ?? 0) > 800)
    }

    @Test func anAttemptThatIsDueEarlierStays() {
        var driver = SessionDriver()
        driver.connect()
        driver.drop()
        guard let due = driver.session.nextDeadline else {
            Issue.record("nothing is planned")
            return
        }
        driver.advance(due - driver.now - 1)
        _ = driver.take()
        driver.input(.network(.up, spreadMs: 1))
        driver.input(.network(.up, spreadMs: 1))
        driver.advance(1)
        #expect(driver.take("open") == ["open 2"])
    }

    @Test func whatFailedWithoutANetworkDoesNotSlowDownWhatComesAfter() {
        var driver = SessionDriver()
        driver.connect()
        driver.drop()
        for _ in 0..<12 {
            driver.advanceToDeadline()
            driver.drop()
        }
        driver.input(.network(.up, spreadMs: 0))
        #expect(driver.session.state == .connecting)
        driver.drop()
        guard case .connectingIn(let plan)? = driver.events.last else {
            Issue.record("nothing was told")
            return
        }
        #expect((0...2_000).contains(plan.delayMs))
    }

    @Test func attemptsInVainCountAsEver() {
        var driver = waiting { $0.reconnectAttemptsMax = 2 }
        for _ in 0..<2 {
            driver.advance(1_000)
            driver.input(.network(.up, spreadMs: 0))
            #expect(driver.session.state == .connecting)
            driver.drop()
        }
        #expect(driver.session.state == .disconnected)
    }

    @Test func aStalledProgramIsNotHurried() {
        var driver = waiting()
        driver.session.isStalled = true
        driver.input(.network(.up, spreadMs: 0))
        #expect(driver.take() == ["connecting in"])
        driver.session.isStalled = false
        driver.input(.timer)
        #expect(driver.take() == attempt + ["open 2"])
    }

    // MARK: May reconnect

    @Test func theProgramIsAskedAsAlways() throws {
        var driver = waiting { $0.asksBeforeReconnect = true }
        driver.input(.network(.up, spreadMs: 0))
        #expect(driver.take() == ["connecting in", "ask 1 for attempt 1"])
        driver.input(.reconnect(try #require(driver.reconnectQuestions.last).id, .proceed(delayMs: 0)))
        #expect(driver.take() == attempt + ["open 2"])
    }

    @Test func anOpenQuestionStaysTheOnlyOne() throws {
        var driver = waiting { $0.asksBeforeReconnect = true }
        driver.input(.network(.up, spreadMs: 0))
        _ = driver.take()
        driver.advance(500)
        driver.input(.network(.up, spreadMs: 0))
        driver.input(.network(.resumed, spreadMs: 0))
        #expect(driver.take() == [])
        driver.input(.reconnect(try #require(driver.reconnectQuestions.last).id, .refuse("not on this line")))
        #expect(driver.take() == ["attempt refused", "connecting in"])
    }

    @Test func aDelayOfTheProgramsIsAskedAboutAgain() throws {
        var driver = waiting { $0.asksBeforeReconnect = true }
        driver.advanceToDeadline()
        driver.input(.reconnect(try #require(driver.reconnectQuestions.last).id, .proceed(delayMs: 3_600_000)))
        _ = driver.take()
        driver.input(.network(.up, spreadMs: 0))
        #expect(driver.take() == ["connecting in", "ask 2 for attempt 1"])
    }

    // MARK: Connecting

    @Test(
        "an attempt that fails because it began too early is made again at once", arguments: [NetworkHint.up, .resumed])
    func tryAfterTheAttempt(hint: NetworkHint) {
        var driver = waiting()
        driver.input(.retryNow)
        driver.advance(100)
        _ = driver.take()
        driver.input(.network(hint, spreadMs: 0))
        #expect(driver.take() == [])
        driver.drop()
        #expect(driver.take().suffix(3) == ["connecting in"] + attempt + ["open 3"])
        // Once: the next failure is one like all others.
        driver.drop()
        #expect(driver.session.state == .unavailable)
    }

    @Test func aHintFromBeforeTheHandshakeIsOld() {
        var driver = SessionDriver {
            $0.reconnect = .fixed
            $0.reconnectDelayMs = 86_400_000
        }
        driver.input(.connect)
        driver.input(.network(.up, spreadMs: 0))
        driver.handshake()
        driver.advance(60_000)
        driver.drop()
        #expect(driver.session.state == .unavailable)
    }

    @Test func aNetworkThatWentAgainIsNone() {
        var driver = waiting()
        driver.input(.retryNow)
        driver.input(.network(.up, spreadMs: 0))
        driver.input(.network(.down, spreadMs: 0))
        driver.drop()
        #expect(driver.session.state == .unavailable)
    }

    // MARK: Connected

    @Test("a connection in doubt is checked", arguments: [NetworkHint.down, .resumed])
    func check(hint: NetworkHint) {
        var driver = connected()
        driver.input(.network(hint, spreadMs: 0))
        #expect(driver.take() == ["send ping"])
        driver.advance(4_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take("close") == ["close 1 4200 activity timeout abandoned"])
        guard
            case .state(let change)? = driver.events.last(where: {
                if case .state(let change) = $0 { change.current == .unavailable } else { false }
            })
        else {
            Issue.record("nothing was told")
            return
        }
        #expect((change.reason, change.delayMs) == (BIRD_ERR_TIMEOUT, 0))
        #expect(change.reasonText.contains("5000 ms"))
    }

    @Test func thePongIsTheAnswer() {
        var driver = connected()
        driver.input(.network(.down, spreadMs: 0))
        driver.advance(4_000)
        driver.edge("bird:pong")
        driver.advance(60_000)
        #expect(driver.take() == ["send ping"])
        #expect(driver.session.state == .connected)
    }

    /// Bytes were under way when the network went, or only the way to the edge has gone.
    @Test func otherBytesMeanAnotherPing() {
        var driver = connected()
        driver.input(.network(.down, spreadMs: 0))
        #expect(driver.take() == ["send ping"])
        for _ in 1...3 {
            driver.advance(4_000)
            driver.session.noteInbound(now: driver.now)
            driver.advance(1_000)
            #expect(driver.take() == ["send ping"])
        }
        driver.advance(4_999)
        #expect(driver.session.state == .connected)
        driver.advance(1)
        #expect(driver.take("close") == ["close 1 4200 activity timeout abandoned"])
    }

    /// Which was sent when nobody knew yet that the network was going to change.
    @Test("S4: the pong of an earlier ping does not end a doubt")
    func anEarlierPongIsNoAnswer() {
        var driver = connected()
        driver.advance(120_000)
        #expect(driver.take() == ["send ping"])
        driver.input(.network(.down, spreadMs: 0))
        #expect(driver.take() == ["send ping"])
        driver.edge("bird:pong")
        driver.advance(5_000)
        #expect(driver.take() == ["send ping"], "the pong is proof of life, and the doubt stays")
        driver.advance(4_999)
        #expect(driver.session.state == .connected)
        driver.advance(1)
        #expect(driver.take("close") == ["close 1 4200 activity timeout abandoned"])
    }

    @Test("S4: the pong of the ping that began a doubt ends it, and so does that of a later one", arguments: [2, 3])
    func theSecondPongIsTheAnswer(pongs: Int) {
        var driver = connected()
        driver.advance(120_000)
        driver.input(.network(.down, spreadMs: 0))
        _ = driver.take()
        driver.edge("bird:pong")
        driver.advance(4_999)
        #expect(driver.take() == [])
        if pongs == 3 {
            driver.advance(1)
            #expect(driver.take() == ["send ping"])
        }
        for _ in 1..<pongs { driver.edge("bird:pong") }
        driver.advance(119_000)
        #expect(driver.take() == [], "the doubt is over")
    }

    @Test("S4: pongs that nobody asked for do not answer the ping of a doubt")
    func unaskedPongs() {
        var driver = connected()
        for _ in 0..<3 { driver.edge("bird:pong") }
        driver.input(.network(.down, spreadMs: 0))
        driver.advance(5_000)
        #expect(driver.take("close").count == 1)
    }

    @Test("S4: a repeated handshake, read late, does not end a doubt", arguments: ["1.1", "1.2"])
    func aRepeatedHandshakeIsNoAnswer(id: String) {
        var driver = connected()
        driver.input(.network(.down, spreadMs: 0))
        #expect(driver.take() == ["send ping"])
        driver.advance(1_000)
        // Read long ago: no bytes come now.
        let handshake = InboundMessage(
            event: "bird:connection_established",
            data: .string(Array("{\"connection_id\":\"\(id)\",\"activity_timeout\":60}".utf8)))
        driver.input(.message(driver.transport, handshake))
        driver.advance(3_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take("close") == ["close 1 4200 activity timeout abandoned"])
    }

    @Test("S4: pings are counted for each connection")
    func countedPerConnection() {
        var driver = connected()
        driver.input(.network(.down, spreadMs: 0))
        driver.advance(2_000)
        driver.input(.network(.down, spreadMs: 0))
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        _ = driver.take()
        driver.advance(10_000)
        driver.input(.network(.down, spreadMs: 0))
        driver.edge("bird:pong")
        driver.advance(60_000)
        #expect(driver.take() == ["send ping"])
    }

    @Test func aShorterDeadlineOfTheProgramsHolds() {
        var driver = connected { $0.pongTimeoutMs = 700 }
        driver.input(.network(.down, spreadMs: 0))
        driver.advance(700)
        #expect(driver.take("close").count == 1)
    }

    @Test func aPingThatWaitsForItsAnswerGetsTheShorterDeadline() {
        var driver = connected()
        driver.advance(120_000)
        #expect(driver.take() == ["send ping"])
        driver.advance(10_000)
        driver.input(.network(.down, spreadMs: 0))
        driver.advance(4_999)
        #expect(driver.take() == ["send ping"], "the pong of the earlier one may be under way already")
        driver.advance(1)
        #expect(driver.take("close").count == 1)
    }

    @Test func oneMissIsEnoughWhereThereIsAReasonToDoubt() {
        var driver = connected {
            $0.pongMissesMax = 3
            $0.pongTimeoutMs = 10_000
        }
        driver.input(.network(.down, spreadMs: 0))
        driver.advance(5_000)
        #expect(
            driver.take().filter { $0.hasPrefix("send") || $0.hasPrefix("close") } == [
                "send ping", "close 1 4200 activity timeout abandoned",
            ])
        driver.handshake("2.2")
        _ = driver.take()
        // The next connection has as many as ever.
        driver.advance(120_000 + 29_999)
        #expect(driver.take() == ["send ping", "send ping", "send ping"])
        driver.advance(1)
        #expect(driver.take("close").count == 1)
    }

    @Test func anAnswerEndsTheDoubt() {
        var driver = connected {
            $0.pongMissesMax = 2
            $0.pongTimeoutMs = 10_000
        }
        driver.input(.network(.down, spreadMs: 0))
        driver.edge("bird:pong")
        driver.advance(120_000 + 19_999)
        #expect(driver.take() == ["send ping", "send ping", "send ping"])
        #expect(driver.session.state == .connected)
    }

    @Test func otherOptionsOfTheProgramsHoldAtOnce() {
        var driver = waiting()
        driver.input(.network(.up, spreadMs: 1_000))
        var changed = SessionConfiguration()
        changed.hasChannelAuthorizer = true
        changed.hasMemberAuthorizer = true
        changed.reconnect = .fixed
        changed.reconnectDelayMs = 3_600_000
        driver.input(.configure(changed))
        driver.advance(1_000)
        #expect(driver.session.state == .connecting, "an attempt that the network hurries is not put off again")
    }

    @Test func aPingWhoseDeadlineIsNearerKeepsIt() {
        var driver = connected()
        driver.advance(120_000 + 27_000)
        _ = driver.take()
        driver.input(.network(.down, spreadMs: 0))
        driver.advance(2_999)
        #expect(driver.take() == ["send ping"])
        driver.advance(1)
        #expect(driver.take("close").count == 1)
    }

    @Test func aDeadlineThatPassedWhileTheMachineSleptIsGivenAnew() {
        var driver = connected()
        driver.advance(120_000)
        driver.sleep(3_600_000)
        _ = driver.take()
        driver.input(.network(.resumed, spreadMs: 0))
        #expect(driver.take() == ["send ping"])
        driver.input(.timer)
        #expect(driver.take() == [], "the edge was not silent, nobody listened")
        driver.advance(5_000)
        #expect(driver.take("close").count == 1)
    }

    @Test func aNetworkThatComesChecksNothing() {
        var driver = connected()
        driver.input(.network(.up, spreadMs: 0))
        #expect(driver.take() == [])
    }

    @Test func aFlappingNetworkMeansOnePingASecond() {
        var driver = connected()
        for _ in 0..<500 {
            driver.input(.network(.down, spreadMs: 0))
            driver.input(.network(.up, spreadMs: 0))
            driver.advance(20)
            driver.session.noteInbound(now: driver.now)
        }
        #expect((9...11).contains(driver.take("send ping").count))
        // The last one counts too.
        driver.input(.network(.down, spreadMs: 0))
        driver.advance(1_000)
        #expect(driver.take("send ping").count == 1)
        #expect(driver.session.state == .connected)
    }

    @Test func aCheckThatHasToWaitIsOfItsConnectionOnly() {
        var driver = connected()
        driver.input(.network(.down, spreadMs: 0))
        driver.session.noteInbound(now: driver.now)
        driver.advance(10)
        driver.input(.network(.down, spreadMs: 0))
        driver.close(4200)
        driver.advanceToDeadline()
        driver.handshake("2.2")
        _ = driver.take()
        driver.advance(5_000)
        #expect(driver.take() == [])
    }

    // MARK: No connection wanted

    @Test("who wants no connection gets none", arguments: [NetworkHint.up, .down, .resumed])
    func noEffect(hint: NetworkHint) {
        var initial = SessionDriver()
        var disconnected = connected()
        disconnected.input(.disconnect)
        var failed = connected()
        failed.close(4009)
        _ = disconnected.take()
        _ = failed.take()
        initial.input(.network(hint, spreadMs: 0))
        disconnected.input(.network(hint, spreadMs: 0))
        failed.input(.network(hint, spreadMs: 0))
        #expect(initial.take() + disconnected.take() + failed.take() == [])
        #expect(initial.session.nextDeadline == nil)
        #expect(disconnected.session.nextDeadline == nil)
        #expect(failed.session.nextDeadline == nil)
    }
}
