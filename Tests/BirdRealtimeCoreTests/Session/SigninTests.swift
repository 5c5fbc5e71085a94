import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

@Suite struct SigninTests {
    @Test("SIG-07: signin, its success, then the member channel, then its events")
    func flow() {
        var driver = SessionDriver()
        driver.connect()
        _ = driver.take()
        driver.input(.signin(refresh: false, operation: 3))
        driver.grant("k:s", memberData: #"{"member_id":"m_7"}"#)
        driver.edge("note", "#server-to-user-m_7", data: "{}")
        driver.edge(
            "bird:signin_success", data: #"{"member_data":"{\"member_id\":\"m_7\",\"member_info\":{\"a\":1}}"}"#)
        driver.edge("note", "#server-to-user-m_7", data: "{}")
        #expect(
            driver.take() == [
                "authorize 1 signin for 1.1", #"send signin k:s {"member_id":"m_7"}"#, "identity m_7",
                "channel 99 pending", "send subscribe #server-to-user-m_7", #"signed in m_7={"a":1}"#,
                "completed 3 \(BIRD_OK)",
            ])
        guard case .completed(3, true, nil, let memberData)? = driver.events.last else {
            Issue.record("no completion")
            return
        }
        #expect(memberData == #"{"member_id":"m_7","member_info":{"a":1}}"#)
        #expect(driver.session.memberID == "m_7")
        #expect(driver.route("#server-to-user-m_7") == 0)
        driver.confirm("#server-to-user-m_7")
        #expect(driver.route("#server-to-user-m_7") == 99)
        driver.edge("note", "#server-to-user-m_7", data: "{}")
        #expect(driver.take() == ["channel 99 subscribed", "event 99 note {}"])
    }

    @Test func theMemberChannelCarriesNoLifecycleFrames() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        driver.confirm("#server-to-user-m_7")
        _ = driver.take()
        driver.edge("bird:cache_miss", "#server-to-user-m_7")
        driver.edge("bird_internal:connection_count", "#server-to-user-m_7", data: "{}")
        driver.edge("bird_internal:member_added", "#server-to-user-m_7", data: #"{"member_id":"x"}"#)
        driver.confirm("#server-to-user-m_7")
        driver.unsubscribe(99)
        driver.input(.trigger(ChannelReference(bits: 99), event: "client-x", data: nil))
        #expect(driver.take() == ["client event lost"])
        #expect(driver.route("#server-to-user-m_7") == 99)
    }

    @Test("SIG-07: every later connection signs in again, before authorized channels")
    func reconnect() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        driver.confirm("#server-to-user-m_7")
        driver.subscribe("a", 1)
        driver.confirm("a")
        _ = driver.take()
        driver.drop()
        #expect(
            driver.take() == [
                "state connected unavailable", "lost", "connecting in", "channel 99 idle", "channel 1 idle",
                "identity none",
            ])
        #expect(driver.session.memberID == nil)
        driver.advanceToDeadline()
        driver.handshake("2.2")
        driver.edge("note", "#server-to-user-m_7", data: "{}")
        driver.grant("k:2", memberData: "{}")
        driver.confirmSignin()
        driver.confirm("#server-to-user-m_7")
        driver.edge("note", "#server-to-user-m_7", data: "{}")
        #expect(
            driver.take() == [
                "state unavailable connecting", "open 2", "state connecting connected", "channel 1 pending",
                "send subscribe a", "authorize 2 signin for 2.2", "send signin k:2 {}", "identity m_7",
                "channel 99 pending", "send subscribe #server-to-user-m_7", "signed in m_7", "channel 99 subscribed",
                "event 99 note {}",
            ])
    }

    // MARK: - Client semantics (Bird protocol 11.3)

    @Test func signedInAnswersWithoutTraffic() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        _ = driver.take()
        driver.input(.signin(refresh: false, operation: 8))
        #expect(driver.take() == ["completed 8 \(BIRD_OK)"])
        guard case .completed(8, true, nil, let memberData)? = driver.events.last else {
            Issue.record("no completion")
            return
        }
        #expect(memberData == #"{"member_id":"m_7"}"#)
    }

    @Test("19.2 #7: concurrent calls share one frame and one member channel")
    func concurrentCalls() {
        var driver = SessionDriver()
        driver.connect()
        _ = driver.take()
        for operation in 1...3 as ClosedRange<UInt64> {
            driver.input(.signin(refresh: false, operation: operation))
        }
        driver.grant(memberData: "{}")
        driver.input(.signin(refresh: false, operation: 4))
        driver.confirmSignin()
        driver.confirmSignin()
        let lines = driver.take()
        #expect(lines.filter { $0.hasPrefix("authorize") }.count == 1)
        #expect(lines.filter { $0.hasPrefix("send") } == ["send signin k:s {}", "send subscribe #server-to-user-m_7"])
        #expect(lines.filter { $0.hasPrefix("completed") } == (1...4).map { "completed \($0) \(BIRD_OK)" })
        #expect(lines.filter { $0.hasPrefix("signed in") }.count == 1)
    }

    @Test func refreshSignsInAgainAndKeepsTheMemberChannel() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        driver.confirm("#server-to-user-m_7")
        _ = driver.take()
        driver.input(.signin(refresh: true, operation: 4))
        driver.grant(memberData: "{}")
        driver.confirmSignin()
        #expect(
            driver.take() == [
                "authorize 2 signin for 1.1", "send signin k:s {}", "signed in m_7", "completed 4 \(BIRD_OK)",
            ])
    }

    @Test func refreshDuringASigninIsARoundOfItsOwn() {
        var driver = SessionDriver()
        driver.connect()
        driver.input(.signin(refresh: false, operation: 1))
        driver.input(.signin(refresh: true, operation: 2))
        driver.input(.signin(refresh: true, operation: 3))
        driver.grant("k:1", memberData: "{}")
        _ = driver.take()
        driver.confirmSignin()
        #expect(driver.take("completed") == ["completed 1 \(BIRD_OK)"])
        driver.grant("k:2", memberData: "{}")
        driver.confirmSignin()
        let lines = driver.take()
        #expect(lines.filter { $0.hasPrefix("send signin") } == ["send signin k:2 {}"])
        #expect(lines.filter { $0.hasPrefix("completed") } == ["completed 2 \(BIRD_OK)", "completed 3 \(BIRD_OK)"])
    }

    @Test func aRefreshThatIsRefusedLeavesTheIdentity() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        driver.confirm("#server-to-user-m_7")
        driver.input(.signin(refresh: true, operation: 4))
        _ = driver.take()
        driver.refuse()
        #expect(driver.take() == ["completed 4 \(BIRD_ERR_DENIED)"])
        #expect(driver.session.memberID == "m_7")
        driver.input(.signin(refresh: false, operation: 5))
        #expect(driver.take() == ["completed 5 \(BIRD_OK)"])
    }

    @Test func aRefreshThatJoinsAFailingRoundEndsToo() {
        var driver = SessionDriver()
        driver.connect()
        driver.input(.signin(refresh: false, operation: 0))
        driver.grant(memberData: "{}")
        driver.advance(30_000)
        driver.advanceToDeadline()
        driver.grant(memberData: "{}")
        driver.input(.signin(refresh: true, operation: 2))
        _ = driver.take()
        driver.advance(30_000)
        #expect(driver.take("signin failed") == ["signin failed \(BIRD_ERR_TIMEOUT)"])
        driver.grant(memberData: "{}")
        driver.advance(30_000)
        #expect(driver.take("completed") == ["completed 2 \(BIRD_ERR_TIMEOUT)"])
    }

    @Test func anotherMemberGetsAnotherChannel() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn(as: "m_7")
        driver.confirm("#server-to-user-m_7")
        driver.input(.signin(refresh: true, operation: 0))
        driver.grant(memberData: "{}")
        _ = driver.take()
        driver.confirmSignin(as: "m_8")
        driver.confirm("#server-to-user-m_8")
        #expect(
            driver.take() == [
                "identity m_8", "send unsubscribe #server-to-user-m_7", "channel 99 idle", "channel 99 pending",
                "send subscribe #server-to-user-m_8", "signed in m_8", "channel 99 subscribed",
            ])
        #expect(driver.route("#server-to-user-m_7") == 0)
        #expect(driver.route("#server-to-user-m_8") == 99)
    }

    @Test func aDropFailsTheCallsAndStaysArmed() {
        var driver = SessionDriver()
        driver.input(.signin(refresh: false, operation: 1))
        driver.input(.connect)
        driver.input(.signin(refresh: false, operation: 2))
        _ = driver.take()
        driver.drop()
        #expect(
            driver.take("completed") == ["completed 1 \(BIRD_ERR_LOST)", "completed 2 \(BIRD_ERR_LOST)"])
        driver.input(.signin(refresh: false, operation: 3))
        driver.advanceToDeadline()
        driver.handshake("2.2")
        driver.grant(memberData: "{}")
        driver.confirmSignin()
        #expect(driver.take("completed") == ["completed 3 \(BIRD_OK)"])
    }

    private static let states: [(state: ConnectionState, reach: @Sendable (inout SessionDriver) -> Void)] = [
        (.initialized, { _ in }),
        (.connecting, { $0.input(.connect) }),
        (.connected, { $0.connect() }),
        (
            .unavailable,
            {
                $0.connect()
                $0.drop()
            }
        ),
        (
            .disconnected,
            {
                $0.connect()
                $0.input(.disconnect)
            }
        ),
        (
            .failed,
            {
                $0.connect()
                $0.close(4001)
            }
        ),
    ]

    @Test("callable while a connection is there or to come, refused where none is", arguments: states.indices)
    func everyState(index: Int) {
        let (state, reach) = Self.states[index]
        var driver = SessionDriver()
        reach(&driver)
        #expect(driver.session.state == state)
        _ = driver.take()
        driver.input(.signin(refresh: false, operation: 1))
        guard state != .disconnected, state != .failed else {
            #expect(driver.take() == ["completed 1 \(BIRD_ERR_STATE)"])
            #expect(!driver.session.signin.isArmed)
            return
        }
        #expect(driver.take("completed") == [])
        if state != .connected {
            driver.input(.connect)
            driver.handshake("9.9")
        }
        driver.grant(memberData: "{}")
        driver.confirmSignin()
        #expect(driver.take("completed") == ["completed 1 \(BIRD_OK)"])
    }

    private static let phases: [@Sendable (inout SessionDriver) -> Void] = [
        // Queued behind another question.
        { $0.subscribe("private-a", 1) },
        { _ in },
        { $0.grant(memberData: "{}") },
        { $0.refuse(BIRD_ERR_AUTH, http: 503, isRetriable: true) },
        {
            $0.grant(memberData: "{}")
            $0.edgeError()
        },
    ]

    @Test(
        "a drop in each phase fails the waiting calls once and the next connection signs in", arguments: phases.indices)
    func dropInEachPhase(index: Int) {
        var driver = SessionDriver { $0.authorizationsInFlightMax = 1 }
        driver.connect()
        if index == 0 { Self.phases[0](&driver) }
        driver.input(.signin(refresh: false, operation: 1))
        if index > 0 { Self.phases[index](&driver) }
        driver.input(.signin(refresh: true, operation: 2))
        _ = driver.take()
        driver.drop()
        #expect(driver.take("completed") == ["completed 1 \(BIRD_ERR_LOST)", "completed 2 \(BIRD_ERR_LOST)"])
        driver.advanceToDeadline()
        driver.handshake("2.2")
        _ = driver.take()
        driver.grant("k:new", memberData: "{}")
        driver.confirmSignin()
        #expect(driver.take("send signin") == ["send signin k:new {}"])
        #expect(driver.session.memberID == "m_7")
    }

    @Test("what the authorizer says late, twice or for another connection signs nobody in")
    func lateCredentials() {
        for isGrant in [true, false] {
            for end in [{ $0.drop() }, { $0.advance(10_000) }, { $0.grant("k:1", memberData: "{}") }]
                as [(inout SessionDriver) -> Void]
            {
                var driver = SessionDriver()
                driver.connect()
                driver.input(.signin(refresh: false, operation: 1))
                end(&driver)
                _ = driver.take()
                for _ in 0..<2 {
                    if isGrant {
                        driver.grant("k:late", memberData: "{}", question: driver.questions.count)
                    } else {
                        driver.refuse(question: driver.questions.count)
                    }
                }
                #expect(driver.take() == [])
            }
        }
    }

    @Test("SIG-04: what was fetched for a connection that has gone is dropped")
    func staleCredential() {
        var driver = SessionDriver()
        driver.connect()
        driver.input(.signin(refresh: false, operation: 1))
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        _ = driver.take()
        driver.grant("k:old", memberData: "{}", question: 2)
        #expect(driver.take() == [])
        driver.grant("k:new", memberData: "{}")
        driver.confirmSignin()
        #expect(driver.take("send signin") == ["send signin k:new {}"])
    }

    @Test("19.2 #10: where no connection is to be expected the call ends at once and arms nothing")
    func deadStates() {
        var driver = SessionDriver()
        driver.connect()
        driver.close(4009)
        _ = driver.take()
        driver.input(.signin(refresh: false, operation: 1))
        #expect(driver.take() == ["completed 1 \(BIRD_ERR_STATE)"])
        driver.input(.disconnect)
        _ = driver.take()
        driver.input(.signin(refresh: false, operation: 2))
        #expect(driver.take() == ["completed 2 \(BIRD_ERR_STATE)"])
        driver.connect("2.2")
        #expect(driver.take("authorize") == [])
    }

    @Test func disconnectAndRefusalEndTheCalls() {
        for (end, status) in [(true, BIRD_ERR_STATE), (false, BIRD_ERR_REFUSED)] {
            var driver = SessionDriver()
            driver.connect()
            driver.input(.signin(refresh: false, operation: 1))
            driver.input(.signin(refresh: true, operation: 2))
            _ = driver.take()
            if end {
                driver.input(.disconnect)
            } else {
                driver.close(4009)
            }
            #expect(driver.take("completed") == ["completed 1 \(status)", "completed 2 \(status)"])
        }
    }

    // MARK: - Failures

    @Test("SIG-01 SIG-06: the authorizer's no reaches the caller with endpoint and status")
    func denial() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        driver.input(.signin(refresh: false, operation: 1))
        _ = driver.take()
        driver.refuse()
        #expect(driver.take() == ["completed 1 \(BIRD_ERR_DENIED)"])
        guard case .completed(1, true, let fault?, nil)? = driver.events.last else {
            Issue.record("no completion")
            return
        }
        #expect(fault.httpStatus == 403 && fault.endpoint == "http://127.0.0.1/auth")
        #expect(driver.state(of: "orders") == .subscribed)
        driver.input(.signin(refresh: false, operation: 2))
        #expect(driver.take("authorize").count == 1, "the program may ask again")
    }

    @Test("SIG-01: without a caller the failure is a signin error")
    func automaticSigninFails() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        _ = driver.take()
        driver.refuse()
        #expect(driver.take() == ["signin failed \(BIRD_ERR_DENIED)"])
        driver.advance(100_000)
        #expect(driver.take() == [])
        #expect(driver.session.state == .connected)
    }

    @Test func transientFailuresOfAnAutomaticSigninAreToldOnceAndTriedAgain() {
        var driver = SessionDriver()
        driver.input(.signin(refresh: false, operation: 0))
        driver.connect()
        _ = driver.take()
        for _ in 0..<12 {
            driver.refuse(BIRD_ERR_AUTH, http: 503, isRetriable: true)
            driver.advanceToDeadline()
            driver.session.noteInbound(now: driver.now)
        }
        #expect(driver.take("signin failed") == ["signin failed \(BIRD_ERR_AUTH)"])
        driver.grant(memberData: "{}")
        driver.confirmSignin()
        #expect(driver.take("signed in") == ["signed in m_7"])
    }

    @Test("SIG-03: an edge that ignores signin does not keep the caller")
    func silence() {
        var driver = SessionDriver { $0.answerTimeoutMs = 5_000 }
        driver.connect()
        driver.input(.signin(refresh: false, operation: 1))
        driver.grant(memberData: "{}")
        _ = driver.take()
        driver.advance(4_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(driver.take("completed") == ["completed 1 \(BIRD_ERR_TIMEOUT)"])
        #expect(driver.session.state == .connected)
        driver.input(.signin(refresh: false, operation: 2))
        driver.grant(memberData: "{}")
        driver.confirmSignin()
        #expect(driver.take("completed") == ["completed 2 \(BIRD_OK)"])
    }

    @Test func answersNeedBothStrings() {
        for (auth, memberData) in [("", "{}"), ("k:s", nil), ("k:s", "")] as [(String, String?)] {
            var driver = SessionDriver()
            driver.connect()
            driver.input(.signin(refresh: false, operation: 1))
            _ = driver.take()
            driver.grant(auth, memberData: memberData)
            #expect(driver.take() == ["completed 1 \(BIRD_ERR_AUTH)"])
        }
    }

    @Test func aMissingAuthorizerNamesTheOption() {
        var driver = SessionDriver { $0.hasMemberAuthorizer = false }
        driver.connect()
        driver.input(.signin(refresh: false, operation: 1))
        guard case .completed(1, true, let fault?, nil)? = driver.events.last else {
            Issue.record("no completion")
            return
        }
        #expect(fault.field == "member_auth_endpoint" && fault.message.contains("member_auth_endpoint"))
    }

    @Test(arguments: [
        (#"{"member_data":"{\"member_id\":42}"}"#, "42"), (#"{"member_data":{"member_id":"m_7"}}"#, "m_7"),
        (#"{"member_data":"{\"member_id\":\"\"}"}"#, nil), (#"{"member_data":"{}"}"#, nil),
        (#"{"member_data":"broken"}"#, nil), ("{}", nil), ("broken", nil),
    ])
    func successShapes(data: String, id: String?) {
        var driver = SessionDriver()
        driver.connect()
        driver.input(.signin(refresh: false, operation: 1))
        driver.grant(memberData: "{}")
        _ = driver.take()
        driver.edge("bird:signin_success", data: data)
        #expect(driver.session.memberID == id)
        #expect(driver.take("completed") == ["completed 1 \(id == nil ? BIRD_ERR_IDENTITY : BIRD_OK)"])
        #expect(driver.session.state == .connected)
    }

    @Test func aSuccessThatNobodyAskedForIsIgnored() {
        var driver = SessionDriver()
        driver.connect()
        _ = driver.take()
        driver.confirmSignin()
        #expect(driver.take() == [])
        #expect(driver.session.memberID == nil)
    }

    @Test func signinAsksAgainForARefusedMemberChannel() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        driver.edgeError()
        driver.advance(2_000)
        #expect(driver.take().last == "subscription failed 99 \(BIRD_ERR_DENIED)")
        driver.input(.signin(refresh: false, operation: 6))
        driver.confirm("#server-to-user-m_7")
        #expect(
            driver.take() == [
                "channel 99 pending", "send subscribe #server-to-user-m_7", "completed 6 \(BIRD_OK)",
                "channel 99 subscribed",
            ])
    }

    @Test func aSilentMemberChannelIsAskedForAgain() {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        _ = driver.take()
        driver.advance(30_000)
        #expect(
            driver.take() == ["channel 99 idle", "subscription failed 99 \(BIRD_ERR_TIMEOUT) will retry"])
        driver.advance(1_000)
        #expect(driver.take("send") == ["send subscribe #server-to-user-m_7"])
    }
}
