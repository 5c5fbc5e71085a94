import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

@Suite struct SubscriptionTests {
    // MARK: - The edge cases of Bird protocol 8.1

    @Test("8.1 #1: subscribe is idempotent in every phase")
    func subscribeIsIdempotent() {
        var driver = SessionDriver()
        driver.connect()
        _ = driver.take()
        driver.subscribe("private-a", 1)
        driver.subscribe("private-a", 1)
        driver.grant()
        driver.subscribe("private-a", 1)
        driver.confirm("private-a")
        driver.subscribe("private-a", 1)
        #expect(
            driver.take() == [
                "channel 1 authorizing", "authorize 1 private-a for 1.1", "channel 1 pending",
                "send subscribe private-a k:s", "channel 1 subscribed", "subscribed 1",
            ])
    }

    @Test("8.1 #2: what is wanted before the handshake is asked for after it, public channels first")
    func subscribeBeforeTheHandshake() {
        var driver = SessionDriver()
        driver.subscribe("private-a", 1)
        driver.subscribe("orders", 2)
        driver.input(.signin(refresh: false, operation: 0))
        driver.input(.connect)
        driver.subscribe("prices", 3)
        _ = driver.take()
        driver.handshake()
        #expect(
            driver.take() == [
                "state connecting connected", "channel 2 pending", "send subscribe orders", "channel 3 pending",
                "send subscribe prices", "channel 1 authorizing", "authorize 1 signin for 1.1",
                "authorize 2 private-a for 1.1",
            ])
    }

    @Test("8.1 #3, AUTH-07: an answer for a connection that has gone is dropped")
    func staleAnswer() {
        var driver = SessionDriver()
        driver.connect("1.1")
        driver.subscribe("private-a", 1)
        _ = driver.take()
        driver.drop()
        #expect(
            driver.take() == [
                "state connected unavailable", "lost", "connecting in", "withdraw 1", "channel 1 idle",
            ])
        driver.advanceToDeadline()
        driver.handshake("2.2")
        _ = driver.take()
        driver.grant("k:1.1", question: 2)
        driver.refuse(question: 2)
        #expect(driver.take() == [])
        driver.grant("k:2.2")
        #expect(driver.take() == ["channel 1 pending", "send subscribe private-a k:2.2"])
    }

    @Test("8.1 #4: of two attempts the newer wins even if the older resolves last")
    func overlappingAttempts() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("presence-a", 1)
        driver.unsubscribe(1)
        driver.subscribe("presence-a", 2)
        _ = driver.take()
        driver.grant("k:new", memberData: #"{"member_id":"new"}"#)
        driver.grant("k:old", memberData: #"{"member_id":"old"}"#, question: 2)
        driver.confirm("presence-a", data: #"{"presence":{"ids":["new"],"hash":{},"count":1}}"#)
        #expect(
            driver.take() == [
                "channel 2 pending", #"send subscribe presence-a k:new {"member_id":"new"}"#, "channel 2 subscribed",
                "subscribed 2 [new] me new",
            ])
    }

    @Test("8.1 #5, AUTH-15: unsubscribe while authorizing sends nothing, then or later")
    func unsubscribeWhileAuthorizing() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        _ = driver.take()
        driver.unsubscribe(1)
        driver.grant()
        driver.edge("moved", "private-a", data: "{}")
        #expect(driver.take() == ["withdraw 1", "channel 1 unsubscribed"])
    }

    @Test("8.1 #6, 19.2 #6: an error cancels no authorization")
    func errorWhileAuthorizing() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        _ = driver.take()
        driver.edgeError("Signature check failed", code: 7)
        #expect(driver.take() == ["error \(BIRD_ERR_SERVER) 7 Signature check failed"])
        driver.advance(5_000)
        driver.grant()
        #expect(driver.take() == ["channel 1 pending", "send subscribe private-a k:s"])
    }

    @Test("8.1 #7: after an error a success still counts, and subscribe sends no second frame")
    func errorWhilePending() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.edgeError()
        _ = driver.take()
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        driver.advance(60_000)
        #expect(driver.take() == ["channel 1 subscribed", "subscribed 1"])
    }

    @Test("8.1 #8, AUTH-01: after a failure subscribe tries again at once, and bindings stay with the channel")
    func subscribeAfterFailure() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        driver.refuse(http: 503)
        _ = driver.take()
        driver.advance(60_000)
        #expect(driver.take() == [])
        driver.subscribe("private-a", 1)
        driver.grant()
        driver.confirm("private-a")
        #expect(
            driver.take() == [
                "channel 1 authorizing", "authorize 2 private-a for 1.1", "channel 1 pending",
                "send subscribe private-a k:s", "channel 1 subscribed", "subscribed 1",
            ])
    }

    @Test("8.1 #9: nothing depends on the order in which authorizers answer", arguments: [true, false])
    func answersInAnyOrder(inOrder: Bool) {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        driver.subscribe("private-b", 2)
        _ = driver.take()
        driver.grant("k:1", question: inOrder ? 2 : 1)
        driver.grant("k:2", question: inOrder ? 1 : 2)
        driver.confirm("private-b")
        driver.confirm("private-a")
        let (first, second) = inOrder ? (("a", 1), ("b", 2)) : (("b", 2), ("a", 1))
        #expect(
            driver.take() == [
                "channel \(first.1) pending", "send subscribe private-\(first.0) k:1", "channel \(second.1) pending",
                "send subscribe private-\(second.0) k:2", "channel 2 subscribed", "subscribed 2",
                "channel 1 subscribed", "subscribed 1",
            ])
    }

    // MARK: - Reconnects

    @Test("REC-02 REC-24: each connection subscribes each channel once")
    func reconnectSubscribesOnce() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.confirm("orders")
        driver.advance(1_000)
        driver.session.noteInbound(now: driver.now)
        driver.advance(2_000)
        _ = driver.take()
        driver.close(4200)
        #expect(
            driver.take() == ["state connected unavailable", "lost", "connecting in", "channel 1 idle"])
        driver.advance(500)
        driver.handshake("2.2")
        driver.confirm("orders")
        #expect(
            driver.take() == [
                "state unavailable connecting", "open 2", "state connecting connected", "channel 1 pending",
                "send subscribe orders", "channel 1 subscribed", "subscribed 1 again after 2500",
            ])
        #expect(driver.route("orders") == 1)
    }

    @Test(
        "REC-03 REC-24: subscribing in the connected handler adds nothing",
        arguments: [("chat", "chat"), ("private-chat", "private-chat k:s")])
    func subscribeInTheConnectedHandler(channel: String, frame: String) {
        var driver = SessionDriver()
        driver.input(.connect)
        for connection in 1...3 {
            driver.handshake("1.\(connection)")
            driver.subscribe(channel, 1)
            if channel != frame {
                driver.grant()
            }
            driver.confirm(channel)
            driver.subscribe(channel, 1)
            let lines = driver.take()
            #expect(lines.filter { $0.hasPrefix("send") } == ["send subscribe \(frame)"])
            #expect(lines.filter { $0.hasPrefix("subscribed") }.count == 1)
            driver.drop()
            while driver.session.state != .connecting {
                driver.advanceToDeadline()
            }
        }
    }

    @Test func interruptionSpansAllConnectionsWithoutASuccess() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        driver.grant()
        driver.confirm("private-a")
        let lost = driver.now
        driver.drop()
        for connection in 2...4 {
            driver.advanceToDeadline()
            driver.handshake("1.\(connection)")
            driver.advance(700)
            driver.drop()
        }
        driver.advanceToDeadline()
        driver.handshake("1.9")
        driver.grant()
        _ = driver.take()
        driver.confirm("private-a")
        #expect(driver.take("subscribed") == ["subscribed 1 again after \(driver.now - lost)"])
        driver.unsubscribe(1)
        driver.subscribe("private-a", 2)
        driver.grant()
        driver.confirm("private-a")
        #expect(driver.take("subscribed") == ["subscribed 2"], "a new channel has missed nothing")
    }

    @Test func aDeniedChannelIsTriedAgainOnTheNextConnection() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        driver.refuse()
        driver.drop()
        driver.advanceToDeadline()
        _ = driver.take()
        driver.handshake("2.2")
        #expect(
            driver.take() == ["state connecting connected", "channel 1 authorizing", "authorize 2 private-a for 2.2"])
    }

    // MARK: - Unsubscribe

    @Test func unsubscribeSendsAFrameOnlyForWhatTheEdgeKnows() {
        var driver = SessionDriver()
        driver.subscribe("idle", 1)
        driver.unsubscribe(1)
        #expect(driver.take() == ["channel 1 unsubscribed"])
        driver.connect()
        driver.subscribe("pending", 2)
        driver.subscribe("subscribed", 3)
        driver.confirm("subscribed")
        driver.subscribe("private-denied", 4)
        driver.refuse()
        _ = driver.take()
        driver.unsubscribe(2)
        driver.unsubscribe(3)
        driver.unsubscribe(4)
        driver.unsubscribe(4)
        driver.unsubscribe(77)
        #expect(
            driver.take() == [
                "channel 2 unsubscribed", "send unsubscribe subscribed",
                "channel 3 unsubscribed", "channel 4 unsubscribed",
            ])
        #expect(driver.route("subscribed") == 0)
        driver.drop()
        driver.advanceToDeadline()
        _ = driver.take()
        driver.handshake("2.2")
        #expect(driver.take() == ["state connecting connected"])
    }

    @Test("AUTH-16: leaving and rejoining a hundred times ends subscribed, frames in the order of calls")
    func leaveAndRejoin() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("presence-a", 1)
        driver.grant("k:0")
        driver.confirm("presence-a")
        _ = driver.take()
        for round in 1...100 as ClosedRange<UInt64> {
            driver.unsubscribe(round)
            driver.subscribe("presence-a", round + 1)
            driver.grant("k:\(round)")
            #expect(
                driver.take("send") == ["send unsubscribe presence-a", "send subscribe presence-a k:\(round)"])
            driver.confirm("presence-a")
            #expect(driver.take("subscribed") == ["subscribed \(round + 1) [] me none"])
            #expect(driver.route("presence-a") == round + 1)
        }
    }

    @Test("AUTH-16: whoever subscribes again before the answer takes the frame that is under way")
    func lateConfirmation() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        #expect(driver.take("send") == ["send subscribe orders"])
        driver.edge("moved", "orders", data: "{}")
        #expect(driver.take() == [])
        #expect(driver.state(of: "orders") == .pending)
        driver.confirm("orders")
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2"])
    }

    @Test func oneConfirmationOfAnAbandonedChannelIsAnswered() {
        var driver = SessionDriver()
        driver.connect()
        for reference in 1...3 as ClosedRange<UInt64> {
            driver.subscribe("orders", reference)
            driver.unsubscribe(reference)
        }
        #expect(driver.take("send") == ["send subscribe orders"])
        for _ in 1...3 {
            driver.confirm("orders")
        }
        #expect(driver.take() == ["send unsubscribe orders"])
    }

    @Test func anErrorDoesNotSwallowTheConfirmation() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.unsubscribe(1)
        driver.subscribe("orders", 2)
        driver.edgeError()
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2"])
    }

    @Test func theEdgeIsToldThatNobodyWantsWhatItConfirmsTooLate() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.edgeError()
        driver.advance(2_000)
        driver.unsubscribe(1)
        _ = driver.take()
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders"])
    }

    // MARK: - Silence of the edge

    @Test func silenceIsToldOnceAndTriedAgain() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1, operation: 5)
        _ = driver.take()
        driver.advance(29_999)
        #expect(driver.take() == [])
        driver.advance(1)
        #expect(
            driver.take() == [
                "channel 1 idle", "subscription failed 1 \(BIRD_ERR_TIMEOUT) will retry",
                "completed 5 \(BIRD_ERR_TIMEOUT)",
            ])
        driver.advanceToDeadline()
        #expect(driver.take() == ["channel 1 pending", "send subscribe orders"])
        driver.advance(30_000)
        #expect(driver.take() == ["channel 1 idle"])
        driver.advanceToDeadline()
        driver.confirm("orders")
        #expect(
            driver.take() == ["channel 1 pending", "send subscribe orders", "channel 1 subscribed", "subscribed 1"])
    }

    @Test func aLateConfirmationEndsTheWaitForARetry() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        driver.grant()
        driver.advance(30_000)
        _ = driver.take()
        driver.confirm("private-a")
        driver.advance(60_000)
        #expect(driver.take("channel") == ["channel 1 subscribed"])
    }

    @Test func whatTheEdgeHasNotAnsweredIsLeftWhenItHas() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.advance(30_000)
        _ = driver.take()
        driver.unsubscribe(1)
        #expect(driver.take() == ["channel 1 unsubscribed"])
        driver.confirm("orders")
        #expect(driver.take() == ["send unsubscribe orders"])
    }

    @Test func subscribeDuringTheWaitForARetryTriesAtOnceAndIsToldAnew() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.advance(30_000)
        _ = driver.take()
        driver.subscribe("orders", 1, operation: 9)
        #expect(driver.take() == ["channel 1 pending", "send subscribe orders"])
        driver.advance(30_000)
        #expect(
            driver.take().contains("completed 9 \(BIRD_ERR_TIMEOUT)"), "an operation that joined a retry ends too")
    }

    @Test func anOperationThatJoinsARunningRetryEnds() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.advance(30_000)
        driver.advanceToDeadline()
        #expect(driver.state(of: "orders") == .pending)
        driver.subscribe("orders", 1, operation: 9)
        _ = driver.take()
        driver.advance(30_000)
        #expect(
            driver.take() == [
                "channel 1 idle", "subscription failed 1 \(BIRD_ERR_TIMEOUT) will retry",
                "completed 9 \(BIRD_ERR_TIMEOUT)",
            ])
    }

    // MARK: - Frames for channels

    @Test func subscriptionErrorFramesAreDenials() {
        for event in ["bird_internal:subscription_error", "bird:subscription_error"] {
            var driver = SessionDriver()
            driver.connect()
            driver.subscribe("orders", 1, operation: 3)
            _ = driver.take()
            driver.edge(event, "orders", data: #"{"code":4310,"message":"full"}"#)
            #expect(
                driver.take() == [
                    "channel 1 failed", "subscription failed 1 \(BIRD_ERR_DENIED)", "completed 3 \(BIRD_ERR_DENIED)",
                ])
            driver.advance(60_000)
            #expect(driver.take() == [])
            driver.edge(event, "unknown", data: "{}")
            #expect(driver.take() == [])
        }
    }

    /// Bird's own shape, those of protocol-7 servers, and what is in none of them.
    @Test(
        "S7: all that a refusal says is kept, and its data reach the program as they came",
        arguments: [
            (#"{"code":4310,"message":"full"}"#, "full", 4310),
            (#"{"type":"AuthError","error":"not allowed","status":401}"#, "AuthError: not allowed", 401),
            (#"{"type":"LimitReached","error":"too many","status":4004}"#, "LimitReached: too many", 4004),
            (#"{"error":"no","message":"no","code":1,"status":2}"#, "no", 1),
            (#"{"type":"AuthError"}"#, "AuthError", 0),
            (#"{"error":"","message":"why","status":null}"#, "why", 0), (#""no""#, "no", 0), ("no", "no", 0),
            ("{}", nil, 0), (#"{"error":{"x":1},"status":1.5}"#, nil, 0), ("", nil, 0),
        ] as [(String, String?, Int32)])
    func refusalsAreKeptWhole(data: String, text: String?, code: Int32) {
        for event in ["bird_internal:subscription_error", "bird:subscription_error"] {
            var driver = SessionDriver()
            driver.connect()
            driver.subscribe("orders", 1)
            driver.edge(event, "orders", data: data)
            let detail = text.map { ": \($0)" } ?? "."
            var fault = Fault(
                BIRD_ERR_DENIED, .channel, "The edge refused the subscription of orders\(detail)", code: code)
            fault.channel = "orders"
            #expect(
                driver.events.last
                    == .subscriptionFailed(
                        ChannelReference(bits: 1), fault, data: .string(Array(data.utf8)), willRetry: false))
        }
    }

    @Test("PRE-10: internal names never reach the program, other lifecycle names do")
    func lifecycleNames() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        driver.edge("moved", "orders", data: "{}")
        driver.confirm("orders")
        _ = driver.take()
        driver.edge("bird_internal:whatever", "orders", data: "{}")
        driver.edge("bird_internal:member_added", "orders", data: #"{"member_id":"m"}"#)
        driver.edge("bird_internal:connection_count", "orders", data: #"{"connection_count":5}"#)
        driver.edge("bird:cache_miss", "orders")
        driver.edge("moved", "orders", data: "{}")
        driver.edge("moved", "elsewhere", data: "{}")
        driver.edge("moved")
        driver.edge("bird_internal:watchlist_events", data: "{}")
        driver.confirm("orders")
        #expect(
            driver.take() == [
                #"count 1 {"connection_count":5}"#, "event 1 bird:cache_miss -", "event 1 moved {}",
                "watchlist entries malformed 1",
            ])
    }

    @Test func routesLeadToSubscribedChannelsOnly() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        #expect(driver.route("orders") == 0)
        driver.confirm("orders")
        #expect(driver.route("orders") == 1)
        #expect(driver.route("order") == 0)
        #expect(driver.route("orders2") == 0)
        #expect(driver.route("") == 0)
        driver.drop()
        #expect(driver.route("orders") == 0)
    }

    // MARK: - Client events (Bird protocol 14)

    @Test("CEV-01 CEV-04 CEV-05: client events go to subscribed private and presence channels, in the order of calls")
    func clientEvents() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        driver.subscribe("orders", 2)
        driver.confirm("orders")
        driver.input(.trigger(ChannelReference(bits: 1), event: "client-x", data: nil))
        driver.input(.trigger(ChannelReference(bits: 2), event: "client-x", data: nil))
        driver.input(.trigger(ChannelReference(bits: 77), event: "client-x", data: nil))
        #expect(driver.take("client event lost").count == 3)
        driver.grant()
        driver.confirm("private-a")
        _ = driver.take()
        driver.input(.trigger(ChannelReference(bits: 1), event: "client-x", data: Array("{\"on\":true}".utf8)))
        driver.unsubscribe(1)
        #expect(
            driver.effects.contains(
                .send(
                    driver.transport, Array(#"{"event":"client-x","channel":"private-a","data":{"on":true}}"#.utf8),
                    .clientEvent)))
        #expect(
            driver.take() == [
                "send client-x private-a", "send unsubscribe private-a", "channel 1 unsubscribed",
            ])
    }

    @Test("CEV-02: client events are not replayed")
    func clientEventsAreNotReplayed() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1)
        driver.grant()
        driver.confirm("private-a")
        driver.input(.trigger(ChannelReference(bits: 1), event: "client-x", data: nil))
        driver.drop()
        driver.input(.trigger(ChannelReference(bits: 1), event: "client-y", data: nil))
        driver.advanceToDeadline()
        driver.handshake("2.2")
        driver.grant()
        driver.confirm("private-a")
        let lines = driver.take()
        #expect(lines.filter { $0.contains("client-") } == ["send client-x private-a"])
        #expect(lines.filter { $0 == "client event lost" }.count == 1)
    }

    @Test("CEV-03: the rate limit's error touches nothing", arguments: [4301, 4302])
    func rateLimit(code: Int) {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("orders", 1)
        _ = driver.take()
        driver.edgeError("slow down", code: code)
        driver.advance(20_000)
        #expect(driver.take() == ["error \(BIRD_ERR_SERVER) \(code) slow down"])
        driver.confirm("orders")
        #expect(driver.state(of: "orders") == .subscribed)
    }
}
