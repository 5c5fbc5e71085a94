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

    @Test func stateChangesSayWhyHowOftenAndWhatIsPlanned() throws {
        var driver = SessionDriver()
        driver.input(.connect)
        driver.input(
            .transportEnded(driver.transport, .failed(Fault(BIRD_ERR_CONNECT, .connection, "refused", curlCode: 7))))
        var changes = driver.changes
        #expect(changes.map(\.current) == [.connecting, .unavailable])
        #expect(changes.map(\.attempt) == [1, 1])
        #expect(changes.map(\.reason) == [BIRD_OK, BIRD_ERR_CONNECT])
        #expect(changes[1].reasonText == "refused")
        #expect((0...1_000).contains(changes[1].delayMs))
        #expect(driver.session.nextDeadline == driver.now + changes[1].delayMs)

        driver.advanceToDeadline()
        driver.handshake("2.2")
        driver.close(4201, "no pong")
        changes = Array(driver.changes.dropFirst(2))
        #expect(changes.map(\.current) == [.connecting, .connected, .unavailable])
        #expect(changes.map(\.attempt) == [2, 0, 0])
        #expect(changes.map(\.connectionID) == ["", "2.2", ""])
        #expect(changes[2].closeCode == 4201)
        #expect(changes[2].delayMs == 0)
        #expect(changes[2].reasonText.contains("no pong"))
        var planned = changes[2]
        planned.attempt = 1
        #expect(driver.events.last == .connectingIn(planned), "its number is that of the attempt to come")
        #expect(driver.changes.map(\.policy) == [nil, .jitter, nil, nil, .jitter])
    }

    @Test("LIV-13: a loss is told once, before the attempt that follows")
    func lossIsToldOnce() {
        var driver = SessionDriver()
        driver.connect()
        _ = driver.take()
        driver.close(1006)
        #expect(driver.take() == ["state connected unavailable", "lost", "connecting in"])
        driver.advanceToDeadline()
        #expect(driver.take() == ["state unavailable connecting", "open 2"])
        driver.close(1006)
        #expect(driver.take() == ["state connecting unavailable", "connecting in"])
    }

    // MARK: - Bands (Bird protocol 7.1)

    @Test("REC-06: refused codes are terminal and told once", arguments: [4000, 4001, 4003, 4004, 4007, 4009, 4099])
    func refusedCodesAreTerminal(code: UInt16) {
        for isConnected in [false, true] {
            var driver = SessionDriver()
            driver.input(.connect)
            if isConnected {
                driver.handshake()
            }
            _ = driver.take()
            driver.close(code, "Member connections terminated")
            let state = isConnected ? "connected" : "connecting"
            #expect(
                driver.take() == [
                    "error \(BIRD_ERR_REFUSED) \(code) Member connections terminated", "state \(state) failed",
                ])
            #expect(driver.changes.last?.closeCode == Int32(code))
            #expect(driver.session.nextDeadline == nil)
            driver.advance(60_000)
            driver.input(.retryNow)
            #expect(driver.take() == [])
            driver.input(.connect)
            #expect(driver.take() == ["state failed connecting", "open 2"])
        }
    }

    @Test("LIM-06: an error that announces a refusal is not told again by the close")
    func announcedRefusal() {
        var driver = SessionDriver()
        driver.connect()
        _ = driver.take()
        driver.edgeError("The quota is used up", code: 4004)
        driver.close(4004, "over quota")
        #expect(
            driver.take() == ["error \(BIRD_ERR_SERVER) 4004 The quota is used up", "state connected failed"])
        #expect(driver.changes.last?.reason == BIRD_ERR_REFUSED && driver.changes.last?.closeCode == 4004)
        driver.advance(60_000)
        #expect(driver.take() == [])
        // On another connection it is news, and so is another code.
        driver.input(.connect)
        driver.close(4004)
        #expect(driver.take("error").count == 1)
        driver.connect()
        driver.edgeError("The quota is used up", code: 4004)
        driver.close(4009)
        #expect(driver.take("error").count == 2)
    }

    @Test func refusalWithoutReasonHasASentence() throws {
        var driver = SessionDriver()
        driver.connect()
        driver.close(4009)
        #expect(driver.take("error") == ["error \(BIRD_ERR_REFUSED) 4009 The edge refused the connection."])
    }

    @Test(arguments: [1000, 1001, 1005, 1006, 1011, 3000, 4300, 4301, 4999] as [UInt16])
    func otherCodesBackOff(code: UInt16) {
        expectDelays(0...1_000, after: code)
    }

    @Test(arguments: [4200, 4201, 4202, 4299] as [UInt16])
    func reconnectNowCodesDoNotWait(code: UInt16) {
        expectDelays(0...0, after: code)
    }

    @Test(arguments: [4100, 4199] as [UInt16])
    func overCapacityCodesWaitASecondAtLeast(code: UInt16) {
        expectDelays(1_000...2_000, after: code)
    }

    private func expectDelays(_ range: ClosedRange<Int64>, after code: UInt16) {
        var delays: Set<Int64> = []
        for seed in 1...100 as ClosedRange<UInt64> {
            var driver = SessionDriver(seed: seed)
            driver.connect()
            driver.close(code)
            #expect(driver.session.state == .unavailable)
            let delayMs = driver.changes.last?.delayMs ?? -1
            #expect(range.contains(delayMs))
            delays.insert(delayMs)
        }
        // Full jitter uses the whole window.
        let width = range.upperBound - range.lowerBound
        #expect((delays.max() ?? 0) - (delays.min() ?? 0) >= width * 8 / 10)
    }

    @Test("REC-08: over capacity waits at least a second, longer each time, never beyond the maximum")
    func overCapacityGrows() {
        var sums = [Int64](repeating: 0, count: 8)
        for seed in 1...50 as ClosedRange<UInt64> {
            var driver = SessionDriver(seed: seed)
            driver.input(.connect)
            for attempt in sums.indices {
                driver.close(4100)
                let delayMs = driver.changes.last?.delayMs ?? -1
                #expect((1_000...30_000).contains(delayMs))
                sums[attempt] += delayMs
                driver.advanceToDeadline()
            }
        }
        #expect(sums[0] < sums[1] && sums[1] < sums[2] && sums[2] < sums[3])
    }

    @Test func backoffWindowsDoubleUpToTheMaximum() {
        let windows: [Int64] = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
        var highest = [Int64](repeating: 0, count: windows.count)
        for seed in 1...200 as ClosedRange<UInt64> {
            var driver = SessionDriver(seed: seed)
            driver.input(.connect)
            for attempt in windows.indices {
                driver.drop()
                let delayMs = driver.changes.last?.delayMs ?? -1
                #expect((0...windows[attempt]).contains(delayMs))
                highest[attempt] = max(highest[attempt], delayMs)
                driver.advanceToDeadline()
            }
        }
        for (window, high) in zip(windows, highest) {
            #expect(high > window * 9 / 10)
        }
    }

    @Test func handshakeStartsTheWindowsAnew() {
        var driver = SessionDriver { $0.hasFlapGuard = false }
        driver.input(.connect)
        for _ in 0..<8 {
            driver.drop()
            driver.advanceToDeadline()
        }
        driver.handshake()
        driver.drop()
        #expect((0...1_000).contains(driver.changes.last?.delayMs ?? -1))
    }

    @Test("REC-14: the program's disconnect starts the windows anew")
    func disconnectStartsTheWindowsAnew() {
        for seed in 1...30 as ClosedRange<UInt64> {
            var driver = SessionDriver(seed: seed)
            driver.input(.connect)
            for _ in 0..<8 {
                driver.drop()
                driver.advanceToDeadline()
            }
            driver.input(.disconnect)
            driver.input(.connect)
            #expect(driver.changes.last?.attempt == 1)
            driver.drop()
            #expect((0...1_000).contains(driver.changes.last?.delayMs ?? -1))
        }
    }

    @Test func attemptsAreBoundedByTheOptionsWindows() {
        var driver = SessionDriver {
            $0.backoffBaseMs = 10
            $0.backoffMaxMs = 40
        }
        driver.input(.connect)
        for _ in 0..<30 {
            driver.drop()
            #expect((0...40).contains(driver.changes.last?.delayMs ?? -1))
            driver.advanceToDeadline()
        }
        driver.close(4100)
        #expect(driver.changes.last?.delayMs == 40)
    }

    // MARK: - Flap guard

    @Test("REC-07: closes that mean now slow down when connections keep dying young", arguments: [true, false])
    func flapGuard(handshakes: Bool) {
        var driver = SessionDriver()
        let start = driver.now
        driver.input(.connect)
        var dials = 1
        var delays: [Int64] = []
        while driver.now < start + 10_000 {
            driver.input(.transportOpened(driver.transport))
            if handshakes {
                driver.handshake()
            }
            driver.close(4200)
            delays.append(driver.changes.last?.delayMs ?? -1)
            driver.advanceToDeadline()
            dials += 1
        }
        #expect(delays.prefix(2) == [0, 0])
        #expect((1_000...2_000).contains(delays[2]))
        #expect((2_000...4_000).contains(delays[3]))
        #expect(dials <= 20)

        driver.handshake()
        driver.advance(5_000)
        driver.close(4200)
        #expect(driver.changes.last?.delayMs == 0, "a connection that lasted ends the row")
    }

    @Test("LIM-07: an edge that is full and says so without a code is dialled slowly", arguments: [true, false])
    func aFullEdge(handshakes: Bool) {
        var driver = SessionDriver()
        driver.input(.connect)
        var delays: [Int64] = []
        for _ in 0..<100 {
            if handshakes {
                driver.handshake()
                driver.close(1000)
            } else {
                driver.drop()
            }
            delays.append(driver.changes.last?.delayMs ?? -1)
            driver.advanceToDeadline()
        }
        #expect(delays.prefix(3).reduce(0, +) < 8_000)
        // Half of the longest wait, on the average.
        #expect(delays.suffix(50).reduce(0, +) > 50 * 12_000)
    }

    @Test func flapGuardStopsAtHalfAMinute() {
        var driver = SessionDriver()
        driver.input(.connect)
        for _ in 0..<40 {
            driver.handshake()
            driver.close(4200)
            driver.advanceToDeadline()
        }
        driver.handshake()
        driver.close(4200)
        #expect((15_000...30_000).contains(driver.changes.last?.delayMs ?? -1))
    }

    @Test func flapGuardIsAnOption() {
        var driver = SessionDriver { $0.hasFlapGuard = false }
        driver.connect()
        for _ in 0..<10 {
            driver.close(4200)
            #expect(driver.changes.last?.delayMs == 0)
            driver.advanceToDeadline()
            driver.handshake()
        }
    }

    @Test func anOversizedMessageIsToldAndReconnectsAtOnceUnderTheFlapGuard() {
        var driver = SessionDriver()
        let fault = Fault(BIRD_ERR_SIZE, .connection, field: "message_bytes_max", "a message of 20 MiB", code: 1009)
        for (round, range) in [0...0, 0...0, 1_000...2_000].enumerated() {
            if round == 0 {
                driver.connect()
            } else {
                driver.advanceToDeadline()
                driver.handshake()
            }
            _ = driver.take()
            driver.input(.transportEnded(driver.transport, .failed(fault)))
            #expect(driver.take("error") == ["error \(BIRD_ERR_SIZE) 1009 a message of 20 MiB"])
            #expect(range.contains(Int(driver.changes.last?.delayMs ?? -1)))
            #expect(driver.changes.last?.closeCode == 1009)
        }
    }

    // MARK: - Explicit calls (Bird protocol 7.4)

    @Test("REC-11 REC-13: connect while waiting dials now, once")
    func connectWhileWaiting() {
        for input in [SessionInput.connect, .retryNow] {
            var driver = SessionDriver()
            driver.connect()
            driver.drop()
            _ = driver.take()
            for _ in 0..<5 {
                driver.input(input)
            }
            #expect(driver.take() == ["state unavailable connecting", "open 2"])
            driver.handshake("2.2")
            driver.advance(60_000)
            #expect(driver.take("open") == [])
        }
    }

    @Test("REC-12: disconnect while waiting ends the plan")
    func disconnectWhileWaiting() {
        var driver = SessionDriver()
        driver.connect()
        driver.drop()
        _ = driver.take()
        driver.input(.disconnect)
        #expect(driver.take() == ["state unavailable disconnected"])
        #expect(driver.session.nextDeadline == nil)
        driver.advance(60_000)
        driver.input(.retryNow)
        driver.input(.disconnect)
        #expect(driver.take() == [])
    }

    @Test("SHD-11: disconnect ends in disconnected, whatever the state was, and once")
    func disconnectInEveryState() {
        let ways: [(String, (inout SessionDriver) -> Void)] = [
            ("initialized", { _ in }), ("connecting", { $0.input(.connect) }), ("connected", { $0.connect() }),
            (
                "unavailable",
                {
                    $0.connect()
                    $0.drop()
                }
            ),
            (
                "failed",
                {
                    $0.connect()
                    $0.close(4001)
                }
            ),
            (
                "disconnected",
                {
                    $0.connect()
                    $0.input(.disconnect)
                }
            ),
        ]
        for (state, enter) in ways {
            var driver = SessionDriver()
            enter(&driver)
            #expect("\(driver.session.state)" == state)
            _ = driver.take()
            driver.input(.disconnect)
            #expect(driver.take("state") == (state == "disconnected" ? [] : ["state \(state) disconnected"]))
            driver.input(.disconnect)
            driver.advance(3_600_000)
            #expect(driver.take() == [], "after \(state)")
            #expect(driver.session.nextDeadline == nil)
        }
    }

    @Test func disconnectClosesWhateverIsOpen() {
        for isConnected in [false, true] {
            var driver = SessionDriver()
            driver.input(.connect)
            if isConnected {
                driver.handshake()
            }
            _ = driver.take()
            driver.input(.disconnect)
            let state = isConnected ? "connected" : "connecting"
            #expect(driver.take() == ["close 1 1000 client disconnect", "state \(state) disconnected"])
            #expect(driver.changes.last?.reason == BIRD_OK)
            #expect(driver.session.connectionID == "")
        }
    }

    @Test("19.2 #1, REC-05, REC-23: what an old transport still says is not heard")
    func staleTransports() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        let old = driver.transport
        driver.input(.disconnect)
        driver.input(.connect)
        driver.handshake("2.2")
        driver.confirm("orders")
        _ = driver.take()
        driver.input(.message(old, InboundMessage(event: "moved", channel: "orders")))
        driver.input(.message(old, InboundMessage(event: "bird:ping")))
        driver.input(.transportOpened(old))
        driver.input(.transportStep(old, "tls"))
        driver.input(.transportEnded(old, .closed(code: 4009, reason: "late")))
        #expect(driver.take() == [])
        #expect(driver.session.state == .connected)
        #expect(driver.state(of: "orders") == .subscribed)
    }

    @Test("REC-25: disconnect and connect in answer to an error")
    func disconnectAndConnectInAnErrorHandler() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        driver.grant("k:1")
        driver.confirm("private-a")
        driver.advance(150_000)
        #expect(driver.session.state == .connecting, "the pong deadline has passed and the redial has begun")
        driver.input(.disconnect)
        driver.input(.connect)
        _ = driver.take()
        driver.handshake("3.3")
        driver.grant("k:3")
        driver.confirm("private-a")
        #expect(
            driver.take() == [
                "state connecting connected", "channel 1 authorizing", "authorize 2 private-a for 3.3",
                "channel 1 pending", "send subscribe private-a k:3", "channel 1 subscribed",
                "subscribed 1 again after 150000",
            ])
    }

    // MARK: - Attempts that fail

    @Test("REC-16: each cause of failing attempts is an error once, and the wait reaches the maximum")
    func failingAttempts() {
        var driver = SessionDriver()
        driver.input(.connect)
        _ = driver.take()
        let redirect = Fault(
            BIRD_ERR_UPGRADE, .connection, field: "upgrade", "301 to wss://other.test/", httpStatus: 301,
            isRetriable: true)
        var delays: [Int64] = []
        for _ in 0..<40 {
            driver.input(.transportEnded(driver.transport, .failed(redirect)))
            delays.append(driver.changes.last?.delayMs ?? -1)
            driver.advanceToDeadline()
        }
        #expect((delays.max() ?? 0) > 20_000)
        #expect(driver.take("error") == ["error \(BIRD_ERR_UPGRADE) 0 301 to wss://other.test/"])
        var other = redirect
        other.httpStatus = 503
        other.message = "503"
        driver.input(.transportEnded(driver.transport, .failed(other)))
        #expect(driver.take("error") == ["error \(BIRD_ERR_UPGRADE) 0 503"])
        driver.advanceToDeadline()
        driver.handshake()
        driver.drop()
        driver.advanceToDeadline()
        #expect(driver.take("error") == [], "a loss is told by the state")
        driver.input(.transportEnded(driver.transport, .failed(other)))
        #expect(driver.take("error") == ["error \(BIRD_ERR_UPGRADE) 0 503"], "the handshake was in between")
    }

    @Test("REC-18: an attempt that never opens ends at its deadline and names the step")
    func attemptDeadline() throws {
        var driver = SessionDriver { $0.connectTimeoutMs = 5_000 }
        driver.input(.connect)
        driver.input(.transportStep(driver.transport, "tls"))
        _ = driver.take()
        driver.advance(4_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(
            driver.take() == [
                "close 1  abandoned",
                "error \(BIRD_ERR_TIMEOUT) 0 No handshake from the edge within 5000 ms. It was at this step: tls.",
                "state connecting unavailable", "connecting in",
            ])
        guard
            case .error(let fault) = try #require(
                driver.events.first(where: { if case .error = $0 { true } else { false } }))
        else { return }
        #expect(fault.field == "tls")
    }

    @Test("REC-19: an upgrade without a handshake ends at the same deadline and backs off")
    func handshakeDeadline() {
        var driver = SessionDriver()
        driver.input(.connect)
        driver.advance(5_000)
        driver.input(.transportOpened(driver.transport))
        _ = driver.take()
        driver.advance(9_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take("close") == ["close 1 4200 handshake timeout abandoned"])
        #expect(driver.session.state == .unavailable || driver.session.state == .connecting)
        #expect((0...1_000).contains(driver.changes[1].delayMs))
    }

    // MARK: - Handshakes (Bird protocol 4)

    @Test(arguments: [
        "{}", "{\"socket_id\":\"1.1\"}", "{\"connection_id\":\"\"}", "{\"connection_id\":42}",
        "{\"connection_id\":null}", "not JSON", "[]",
    ])
    func handshakeWithoutIDIsRefusedOnce(data: String) {
        var driver = SessionDriver()
        driver.input(.signin(refresh: false, operation: 7))
        driver.input(.connect)
        driver.input(.transportOpened(driver.transport))
        _ = driver.take()
        driver.edge("bird:connection_established", data: data)
        let lines = driver.take()
        #expect(lines.count == 4)
        #expect(lines[0].hasPrefix("error \(BIRD_ERR_PROTOCOL) 0 Handshake missing connection_id"))
        #expect(
            lines.dropFirst() == [
                "close 1 4001 handshake missing connection_id", "state connecting failed",
                "completed 7 \(BIRD_ERR_PROTOCOL)",
            ])
        driver.close(4001, "handshake missing connection_id")
        driver.advance(60_000)
        #expect(driver.take() == [])
    }

    @Test func repeatedHandshakeReplacesTheIDAndNothingElse() {
        var driver = SessionDriver()
        driver.connect("1.1")
        driver.subscribe("orders", 1)
        driver.subscribe("private-a", 2)
        driver.confirm("orders")
        _ = driver.take()
        driver.edge("bird:connection_established", data: "{\"connection_id\":\"2.2\"}")
        #expect(driver.session.connectionID == "2.2")
        #expect(
            driver.take() == [
                "withdraw 1", "authorize 2 private-a for 2.2",
            ], "a signature for the old id would be refused")
        driver.grant("k:old", question: 2)
        #expect(driver.take() == [])
        driver.edge("bird:connection_established", data: "{}")
        driver.edge("bird:connection_established", data: "{\"connection_id\":\"2.2\"}")
        #expect(driver.take() == [])
        #expect(driver.session.connectionID == "2.2")
    }

    @Test func handshakeDataMayBeAValue() {
        var driver = SessionDriver()
        driver.input(.connect)
        driver.input(
            .message(
                driver.transport,
                InboundMessage(
                    event: "bird:connection_established", data: .value(Array("{\"connection_id\":\"1.1\"}".utf8)))))
        #expect(driver.session.state == .connected)
    }

    @Test func framesBeforeTheHandshakeDoNothing() {
        var driver = SessionDriver()
        driver.subscribe("orders", 1)
        driver.input(.connect)
        driver.input(.transportOpened(driver.transport))
        _ = driver.take()
        driver.edge("bird:ping")
        driver.edge("bird:pong")
        driver.edge("bird:signin_success", data: #"{"member_data":"{\"member_id\":\"m\"}"}"#)
        driver.confirm("orders")
        driver.edge("moved", "orders", data: "{}")
        #expect(driver.take() == [])
        #expect(driver.session.state == .connecting)
    }
}

extension SessionDriver {
    var changes: [StateChange] {
        events.compactMap {
            if case .state(let change) = $0 { change } else { nil }
        }
    }
}
