import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// Bird protocol 12, 13, 15 and 18, as far as the client goes.
@Suite struct WatchlistTests {
    private static func signedIn(dialect: Dialect = .bird) -> SessionDriver {
        var driver = SessionDriver(dialect: dialect)
        driver.connect()
        driver.signIn()
        driver.confirm("#server-to-user-m_7")
        _ = driver.take()
        return driver
    }

    @Test func eachEntryIsAnEventInTheOrderOfTheFrame() {
        var driver = Self.signedIn()
        driver.edge(
            "bird_internal:watchlist_events",
            data: #"{"events":[{"name":"online","member_ids":["m_8","m_9"]},{"name":"offline","member_ids":["m_1"]}]}"#)
        driver.edge(
            "bird_internal:watchlist_events",
            data: #"{"events":[{"name":"away","member_ids":[]},{"name":"online","member_ids":["m_1"]}]}"#)
        #expect(driver.take() == ["online [m_8 m_9]", "offline [m_1]", "away []", "online [m_1]"])
    }

    @Test(arguments: [
        (#"["m_8",7,7.50,null,true,{},["x"],"",-1]"#, "online [m_8 7 7.50 -1]"),
        ("[]", "online []"),
        (#"["\u006d_8"]"#, "online [m_8]"),
    ])
    func idsAreStrings(ids: String, line: String) {
        var driver = Self.signedIn()
        driver.edge("bird_internal:watchlist_events", data: #"{"events":[{"name":"online","member_ids":\#(ids)}]}"#)
        #expect(driver.take() == [line])
    }

    @Test(arguments: [
        "1", "null", #""online""#, "{}", "[]", #"{"name":"online"}"#, #"{"name":"online","member_ids":"m_8"}"#,
        #"{"name":1,"member_ids":["m_8"]}"#, #"{"name":"","member_ids":["m_8"]}"#, #"{"member_ids":["m_8"]}"#,
        #"{"name":"online","user_ids":["m_8"]}"#,
    ])
    func aBadEntryIsCountedAndItsSiblingsStay(entry: String) {
        var driver = Self.signedIn()
        let siblings = [#"{"name":"online","member_ids":["m_8"]}"#, entry, #"{"name":"offline","member_ids":["m_9"]}"#]
        driver.edge(
            "bird_internal:watchlist_events", data: #"{"events":[\#(siblings.joined(separator: ","))]}"#)
        #expect(driver.take() == ["online [m_8]", "offline [m_9]", "watchlist entries malformed 1"])
    }

    @Test(arguments: [nil, "{}", "[]", "null", #"{"events":{}}"#, "no json"] as [String?])
    func aFrameWithoutEntriesIsCounted(data: String?) {
        var driver = Self.signedIn()
        driver.edge("bird_internal:watchlist_events", data: data)
        #expect(driver.take() == ["watchlist entries malformed 1"])
    }

    @Test func anObjectThatIsNoStringOfJSONIsTakenToo() {
        var driver = Self.signedIn()
        let data = #"{"events":[{"name":"online","member_ids":["m_8"]}]}"#
        driver.input(
            .message(
                driver.transport,
                InboundMessage(event: "bird_internal:watchlist_events", data: .value(Array(data.utf8)))))
        #expect(driver.take() == ["online [m_8]"])
    }

    @Test func onlyOnTheConnectionAndOnlyWhileThereIsOne() {
        var driver = Self.signedIn()
        let data = #"{"events":[{"name":"online","member_ids":["m_8"]}]}"#
        driver.edge("bird_internal:watchlist_events", "#server-to-user-m_7", data: data)
        #expect(driver.take() == [])
        driver.drop()
        _ = driver.take()
        driver.edge("bird_internal:watchlist_events", data: data)
        #expect(driver.take() == [])
        driver.advanceToDeadline()
        _ = driver.take()
        driver.edge("bird_internal:watchlist_events", data: data)
        #expect(driver.take() == [])
    }

    @Test("23: the other dialect has another key")
    func pusher() {
        var driver = SessionDriver(dialect: .pusher)
        driver.input(.connect)
        driver.input(.transportOpened(driver.transport))
        driver.edge("pusher:connection_established", data: #"{"socket_id":"1.1","activity_timeout":120}"#)
        _ = driver.take()
        driver.edge(
            "pusher_internal:watchlist_events", data: #"{"events":[{"name":"online","user_ids":["m_8",9]}]}"#)
        #expect(driver.take() == ["online [m_8 9]"])
    }

    // MARK: - What the edge refuses without closing

    /// The list is too long: the first 100 are kept, and the signin succeeds all the same, whichever of the two comes first.
    @Test(arguments: [true, false]) func aWatchlistTooLongIsToldAndTheSigninSucceeds(errorFirst: Bool) {
        var driver = SessionDriver()
        driver.connect()
        driver.input(.signin(refresh: false, operation: 5))
        driver.grant(memberData: "{}")
        _ = driver.take()
        if errorFirst { driver.edgeError("too long", code: 4302) }
        driver.advance(3_000)
        driver.confirmSignin()
        if !errorFirst { driver.edgeError("too long", code: 4302) }
        let told = driver.take().filter { $0.hasPrefix("error") || $0.hasPrefix("completed") || $0.hasPrefix("signed") }
        #expect(told.sorted() == ["completed 5 \(BIRD_OK)", "error \(BIRD_ERR_SERVER) 4302 too long", "signed in m_7"])
    }

    @Test func aClientEventTooManyIsToldAndNobodyIsBlamed() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("private-a", 1, operation: 5)
        driver.grant()
        _ = driver.take()
        driver.edgeError("slow down", code: 4301)
        driver.advance(3_000)
        #expect(driver.take() == ["error \(BIRD_ERR_SERVER) 4301 slow down"])
        driver.confirm("private-a")
        #expect(driver.take("completed") == ["completed 5 \(BIRD_OK)"])
    }

    // MARK: - What the edge ends (Bird protocol 18)

    @Test(arguments: ["Member connections terminated", "not authorized within timeout"])
    func unauthorizedIsTerminalAndSaysWhy(reason: String) {
        var driver = Self.signedIn()
        driver.subscribe("a", 1)
        driver.confirm("a")
        _ = driver.take()
        driver.close(4009, reason)
        #expect(
            driver.take() == [
                "error \(BIRD_ERR_REFUSED) 4009 \(reason)", "state connected failed", "channel 99 idle",
                "channel 1 idle", "identity none",
            ])
        #expect(driver.changes.last?.reasonText == reason)
        #expect(driver.changes.last?.closeCode == 4009)
        #expect(driver.changes.last?.delayMs == -1)
        driver.advance(86_400_000)
        #expect(driver.take() == [])

        driver.connect("2.2")
        driver.grant(memberData: #"{"member_id":"m_7"}"#)
        driver.confirmSignin()
        driver.confirm("a")
        #expect(driver.state(of: "a") == .subscribed)
        #expect(driver.session.memberID == "m_7")
    }

    // MARK: - Channels

    @Test("15: the miss has its own name, wherever the channel is")
    func cacheMiss() {
        var driver = SessionDriver()
        driver.connect()
        for (number, name) in ["cache-a", "private-cache-a", "presence-cache-a"].enumerated() {
            driver.subscribe(name, UInt64(number + 1))
            if number > 0 { driver.grant(memberData: #"{"member_id":"m_7"}"#) }
            driver.confirm(name)
            _ = driver.take()
            driver.edge("bird:cache_miss", name)
            #expect(driver.take() == ["event \(number + 1) bird:cache_miss -"])
        }
    }

    @Test(
        "FEA-06: a count that is none is ignored",
        arguments: [
            nil, "{}", "5", "null", #"{"connection_count":"5x"}"#, #"{"connection_count":""}"#,
            #"{"connection_count":-1}"#, #"{"connection_count":1.5}"#, #"{"subscription_count":5}"#,
        ] as [String?])
    func malformedCounts(data: String?) {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("a", 1)
        driver.confirm("a")
        _ = driver.take()
        driver.edge("bird_internal:connection_count", "a", data: data)
        #expect(driver.take() == [])
    }

    @Test("FEA-06, 13: counts are told on every kind of channel but the member channel")
    func counts() {
        var driver = Self.signedIn()
        for (number, name) in ["a", "private-a", "presence-a"].enumerated() {
            driver.subscribe(name, UInt64(number + 1))
            if number > 0 { driver.grant(memberData: #"{"member_id":"m_7"}"#) }
            driver.confirm(name)
            _ = driver.take()
            for data in [#"{"connection_count":2}"#, #"{"connection_count":"2"}"#] {
                driver.edge("bird_internal:connection_count", name, data: data)
                #expect(driver.take() == ["count \(number + 1) \(data)"])
            }
        }
        driver.edge("bird_internal:connection_count", "#server-to-user-m_7", data: #"{"connection_count":2}"#)
        #expect(driver.take() == [])
    }
}
