import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// Which delay comes when, under each policy (Bird protocol 7 and 24).
@Suite struct ReconnectPolicyTests {
    private static let stages: [Int64] = [3_000, 9_000, 15_000].flatMap { [Int64](repeating: $0, count: 5) }

    /// Attempts that never open, each with the time from the end of the one before to its beginning.
    private func gaps(of attempts: Int, lastingMs: Int64 = 0, _ driver: inout SessionDriver) -> [Int64] {
        (0..<attempts).map { _ in
            driver.advance(lastingMs)
            driver.drop()
            let ended = driver.now
            while driver.session.state == .unavailable { driver.advanceToDeadline() }
            return driver.now - ended
        }
    }

    @Test("staged: 5 x 3 s, 5 x 9 s, 5 x 15 s, then again, exactly", arguments: [0, 2_999, 14_999])
    func staged(lastingMs: Int64) {
        var driver = SessionDriver { $0.reconnect = .staged }
        driver.input(.connect)
        let gaps = gaps(of: 40, lastingMs: lastingMs, &driver)
        #expect(gaps == (0..<40).map { Self.stages[$0 % 15] }, "however long an attempt lasts")
        #expect(driver.transport.number == 41)
    }

    @Test("an attempt has its whole time, however near the next one would be")
    func attemptsAreBoundedByTheirOwnDeadline() {
        var driver = SessionDriver {
            $0.reconnect = .fixed
            $0.reconnectDelayMs = 50
        }
        driver.input(.connect)
        for _ in 0..<40 {
            let began = driver.now
            while driver.session.state == .connecting { driver.advanceToDeadline() }
            #expect(driver.now - began == 15_000)
            driver.advanceToDeadline()
            #expect(driver.now - began == 15_050)
            #expect(driver.session.state == .connecting)
        }
    }

    @Test func fixed() {
        var driver = SessionDriver {
            $0.reconnect = .fixed
            $0.reconnectDelayMs = 7_000
        }
        driver.input(.connect)
        #expect(gaps(of: 40, &driver) == [Int64](repeating: 7_000, count: 40))
    }

    @Test func stagesOfTheProgram() throws {
        let stages = try ReconnectStages("1x10,2x200")
        var driver = SessionDriver {
            $0.reconnect = .staged
            $0.reconnectStages = stages
        }
        driver.input(.connect)
        #expect(gaps(of: 7, &driver) == [10, 200, 200, 10, 200, 200, 10])
    }

    @Test("each plan is told with its delay, its number and the policy", arguments: ReconnectPolicy.allCases)
    func plansAreTold(policy: ReconnectPolicy) throws {
        var driver = SessionDriver { $0.reconnect = policy }
        driver.connect()
        for attempt in 1...40 as ClosedRange<Int32> {
            driver.drop()
            let told = driver.plan
            let plan = try #require(told)
            #expect((plan.attempt, plan.policy) == (attempt, policy))
            #expect(plan.delayMs == driver.changes.last?.delayMs)
            #expect(driver.changes.last?.policy == policy)
            let planned = driver.now
            driver.advanceToDeadline()
            #expect(driver.now - planned == plan.delayMs)
            #expect(driver.changes.last?.attempt == attempt)
            #expect(driver.changes.last?.policy == nil)
        }
        let told = driver.effects.filter { if case .emit(.connectingIn) = $0 { true } else { false } }
        #expect(told.count == 40)
    }

    // MARK: - What starts a schedule anew

    private func advanced(_ policy: ReconnectPolicy = .staged, attempts: Int = 7) -> SessionDriver {
        var driver = SessionDriver {
            $0.reconnect = policy
            $0.hasFlapGuard = false
        }
        driver.input(.connect)
        _ = gaps(of: attempts, &driver)
        return driver
    }

    @Test func aHandshakeStartsTheScheduleAnew() {
        var driver = advanced()
        driver.handshake()
        driver.drop()
        #expect(driver.plan?.delayMs == 3_000)
        #expect(driver.plan?.attempt == 1)
    }

    @Test func anUpgradeWithoutAHandshakeDoesNot() {
        var driver = advanced()
        driver.input(.transportOpened(driver.transport))
        driver.drop()
        #expect(driver.plan?.delayMs == 9_000)
        #expect(driver.plan?.attempt == 9)
    }

    @Test(
        "the program's own calls do",
        arguments: [[SessionInput.retryNow], [.connect], [.disconnect, .connect]])
    func ownCalls(calls: [SessionInput]) {
        var driver = advanced()
        driver.drop()
        for call in calls { driver.input(call) }
        #expect(driver.session.state == .connecting)
        #expect(driver.changes.last?.attempt == 1)
        driver.drop()
        #expect(driver.plan?.delayMs == 3_000)
        #expect(driver.plan?.attempt == 2, "the program's own attempt was the first")
        #expect(gaps(of: 5, &driver).prefix(4) == [3_000, 3_000, 3_000, 3_000])
    }

    @Test func ownCallsStartTheWindowsOfJitterAnew() {
        for seed in 1...30 as ClosedRange<UInt64> {
            var driver = SessionDriver(seed: seed)
            driver.input(.connect)
            _ = gaps(of: 8, &driver)
            driver.drop()
            driver.input(.retryNow)
            driver.drop()
            #expect((0...1_000).contains(driver.plan?.delayMs ?? -1))
        }
    }

    @Test(
        "retry now acts only while an attempt is planned",
        arguments: [ConnectionState.initialized, .connecting, .connected, .disconnected, .failed])
    func retryNowElsewhere(state: ConnectionState) {
        var driver = SessionDriver()
        if state != .initialized { driver.input(.connect) }
        if state == .connected { driver.handshake() }
        if state == .disconnected { driver.input(.disconnect) }
        if state == .failed { driver.close(4009) }
        #expect(driver.session.state == state)
        _ = driver.take()
        driver.input(.retryNow)
        #expect(driver.take() == [])
        #expect(driver.session.state == state)
    }

    // MARK: - Bands

    private func delays(_ policy: ReconnectPolicy, after code: UInt16, _ delayMs: Int64 = 4_000) -> [Int64] {
        var driver = SessionDriver {
            $0.reconnect = policy
            $0.reconnectDelayMs = delayMs
            $0.hasFlapGuard = false
        }
        driver.connect()
        return (0..<7).map { _ in
            driver.close(code)
            defer { driver.advanceToDeadline() }
            return driver.plan?.delayMs ?? -1
        }
    }

    @Test(arguments: [1000, 1001, 1006, 1011, 4300] as [UInt16])
    func otherCodesFollowThePolicy(code: UInt16) {
        #expect(delays(.fixed, after: code) == [Int64](repeating: 4_000, count: 7))
        #expect(delays(.staged, after: code) == Array(Self.stages.prefix(7)))
    }

    @Test("4200 to 4299 do not wait under any policy, and count", arguments: ReconnectPolicy.allCases)
    func atOnce(policy: ReconnectPolicy) {
        #expect(delays(policy, after: 4200) == [Int64](repeating: 0, count: 7))
        #expect(delays(policy, after: 4299) == [Int64](repeating: 0, count: 7))
        var driver = SessionDriver { $0.reconnect = .staged }
        driver.input(.connect)
        for _ in 0..<5 {
            driver.close(4201)
            driver.advanceToDeadline()
        }
        driver.drop()
        #expect(driver.plan?.delayMs == 9_000)
    }

    @Test("4100 to 4199 wait a second at least under every policy")
    func overCapacity() {
        #expect(delays(.fixed, after: 4100, 20) == [Int64](repeating: 1_000, count: 7))
        #expect(delays(.fixed, after: 4199) == [Int64](repeating: 4_000, count: 7))
        #expect(delays(.staged, after: 4100) == Array(Self.stages.prefix(7)))
        #expect(delays(.jitter, after: 4100).allSatisfy { (1_000...30_000).contains($0) })
    }

    @Test("refused codes are terminal under every policy", arguments: ReconnectPolicy.allCases)
    func refused(policy: ReconnectPolicy) {
        var driver = SessionDriver {
            $0.reconnect = policy
            $0.asksBeforeReconnect = true
        }
        driver.connect()
        driver.subscribe("a", 1, operation: 5)
        driver.input(.signin(refresh: false, operation: 6))
        _ = driver.take()
        driver.close(4009, "Member connections terminated")
        let lines = driver.take()
        #expect(
            lines.prefix(2) == [
                "error \(BIRD_ERR_REFUSED) 4009 Member connections terminated", "state connected failed",
            ])
        #expect(lines.contains("completed 5 \(BIRD_ERR_REFUSED)") && lines.contains("completed 6 \(BIRD_ERR_REFUSED)"))
        let failed = driver.changes.last
        #expect((failed?.reasonText, failed?.closeCode) == ("Member connections terminated", 4009))
        // Nothing but the program's connect brings it back: a session that was replaced must not replace the other one.
        driver.input(.retryNow)
        driver.configure {
            $0.reconnect = .fixed
            $0.reconnectDelayMs = 1
            $0.pongTimeoutMs = 1
        }
        driver.subscribe("b", 2)
        driver.advance(86_400_000)
        driver.input(.reconnect(QuestionID(number: 1), .proceed(delayMs: 0)))
        #expect(driver.take("open") == [])
        #expect(driver.session.state == .failed)
        #expect(driver.session.nextDeadline == nil)
        driver.input(.connect)
        driver.handshake("2.2")
        #expect(driver.session.state == .connected)
    }

    // MARK: - The flap guard

    @Test("the flap guard slows every policy, and never hurries one", arguments: [ReconnectPolicy.fixed, .staged])
    func flapGuard(policy: ReconnectPolicy) {
        var driver = SessionDriver {
            $0.reconnect = policy
            $0.reconnectDelayMs = 3_000
        }
        driver.connect()
        var delays: [Int64] = []
        for _ in 0..<12 {
            driver.drop()
            delays.append(driver.plan?.delayMs ?? -1)
            driver.advanceToDeadline()
            driver.handshake()
        }
        #expect(delays.prefix(3) == [3_000, 3_000, 3_000], "1 to 2 s would be sooner")
        #expect((3_000...4_000).contains(delays[3]))
        #expect((4_000...8_000).contains(delays[4]))
        #expect(delays.suffix(4).allSatisfy { (15_000...30_000).contains($0) })
        driver.configure { $0.hasFlapGuard = false }
        driver.drop()
        #expect(driver.plan?.delayMs == 3_000)
    }

    @Test("attempts that never open are no connections that die young")
    func theGuardLooksAtConnections() {
        var driver = SessionDriver {
            $0.reconnect = .fixed
            $0.reconnectDelayMs = 100
        }
        driver.input(.connect)
        #expect(gaps(of: 40, &driver) == [Int64](repeating: 100, count: 40))
    }

    @Test("a dead link reconnects at once under every policy", arguments: ReconnectPolicy.allCases)
    func livenessReconnectsAtOnce(policy: ReconnectPolicy) {
        var driver = SessionDriver {
            $0.reconnect = policy
            $0.pongTimeoutMs = 1_000
        }
        driver.connect(activityTimeout: "20")
        driver.advance(21_000)
        #expect(driver.session.state == .connecting)
        #expect(driver.plan?.delayMs == 0)
    }
}
