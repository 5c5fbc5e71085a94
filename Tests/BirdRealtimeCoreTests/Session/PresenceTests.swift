import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

@Suite struct PresenceTests {
    private static func joined(
        _ success: String = #"{"presence":{"ids":["m_7"],"hash":{"m_7":{"name":"Noor"}},"count":1}}"#,
        memberData: String? = #"{"member_id":"m_7","member_info":{"name":"Noor"}}"#
    ) -> SessionDriver {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("presence-a", 1)
        driver.grant(memberData: memberData)
        _ = driver.take()
        driver.confirm("presence-a", data: success)
        return driver
    }

    @Test(
        "PRE-01 PRE-03: the success carries the roster in the order of ids, and my id",
        arguments: [
            (
                #"{"presence":{"ids":["m_7","m_8"],"hash":{"m_8":{"name":"Ivo"},"m_7":{"name":"Noor"}},"count":2}}"#,
                #"m_7={"name":"Noor"} m_8={"name":"Ivo"}"#
            ),
            (
                #"{"presence":{"ids":[3,1,2],"hash":{"1":{"a":1},"2":null,"3":[]},"count":3}}"#,
                #"3=[] 1={"a":1} 2=null"#
            ),
            (#"{"presence":{"ids":["a",1,null,{},"","b"],"hash":{"a":1.50},"count":9}}"#, "a=1.50 1 b"),
            (#"{"presence":{"ids":["a","a","b","a"],"hash":{},"count":4}}"#, "a b"),
            (#"{"presence":{"ids":[12345678901234567890],"hash":{}}}"#, "12345678901234567890"),
            (#"{"presence":{"ids":["\u006d_7"],"hash":{"m_\u0037":"x"}}}"#, #"m_7="x""#),
            (#"{"presence":{"hash":{"b":2,"a":1},"count":2}}"#, "a=1 b=2"),
            (#"{"presence":{"ids":null,"hash":{"b":2,"a":1}}}"#, "a=1 b=2"),
            (#"{"presence":{"ids":[],"hash":{"b":2}}}"#, ""), (#"{"presence":{"ids":"a"}}"#, ""),
            (#"{"presence":{}}"#, ""), ("{}", ""), ("broken", ""),
        ])
    func rosters(success: String, expected: String) {
        var driver = Self.joined(success)
        #expect(driver.take() == ["channel 1 subscribed", "subscribed 1 [\(expected)] me m_7"])
    }

    @Test func myIDComesFromTheAuthorization() {
        for (memberData, expected) in [
            (#"{"member_id":"m_7"}"#, "m_7"), (#"{"member_id":7}"#, "7"), (#"{"member_id":null}"#, "none"),
            ("{}", "none"), ("broken", "none"), (nil, "none"),
        ] {
            var driver = Self.joined("{}", memberData: memberData)
            #expect(driver.take("subscribed") == ["subscribed 1 [] me \(expected)"])
        }
    }

    @Test func aLaterAuthorizationWithoutMemberDataClearsMyID() {
        var driver = Self.joined()
        driver.drop()
        driver.advanceToDeadline()
        driver.handshake("2.2")
        driver.grant()
        _ = driver.take()
        driver.confirm("presence-a", data: "{}")
        #expect(driver.take("subscribed")[0].hasPrefix("subscribed 1 [] me none again"))
    }

    @Test("PRE-02 PRE-07: ids are strings, removals carry the last known info")
    func membersComeAndGo() {
        var driver = Self.joined()
        _ = driver.take()
        driver.edge("bird_internal:member_added", "presence-a", data: #"{"member_id":42,"member_info":{"n":1.0}}"#)
        driver.edge("bird_internal:member_added", "presence-a", data: #"{"member_id":"m_9"}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":42}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"m_9"}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"m_7"}"#)
        #expect(
            driver.take() == [
                #"added 1 42={"n":1.0}"#, "added 1 m_9", #"removed 1 42={"n":1.0}"#, "removed 1 m_9",
                #"removed 1 m_7={"name":"Noor"}"#,
            ])
    }

    @Test("PRE-04 PRE-09: a repeated add overwrites and is told again, an unknown removal is ignored")
    func repeatedMembers() {
        var driver = Self.joined()
        _ = driver.take()
        driver.edge("bird_internal:member_added", "presence-a", data: #"{"member_id":"m_1","member_info":1}"#)
        driver.edge("bird_internal:member_added", "presence-a", data: #"{"member_id":"m_1","member_info":2}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"m_1"}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"m_1"}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"unknown"}"#)
        driver.edge("bird_internal:member_added", "presence-a", data: #"{"member_id":"m_1"}"#)
        #expect(driver.take() == ["added 1 m_1=1", "added 1 m_1=2", "removed 1 m_1=2", "added 1 m_1"])
    }

    @Test("PRE-05 PRE-08: rosters are independent")
    func independentRosters() {
        var driver = Self.joined(#"{"presence":{"ids":["m_1"],"hash":{}}}"#)
        driver.subscribe("presence-b", 2)
        driver.grant()
        driver.confirm("presence-b", data: #"{"presence":{"ids":["m_1"],"hash":{}}}"#)
        _ = driver.take()
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"m_1"}"#)
        driver.edge("bird_internal:member_removed", "presence-b", data: #"{"member_id":"m_1"}"#)
        #expect(driver.take() == ["removed 1 m_1", "removed 2 m_1"])
    }

    @Test(arguments: ["{}", #"{"member_id":null}"#, #"{"member_id":""}"#, #"{"member_id":{}}"#, "broken", "[]"])
    func membersWithoutAnIDAreIgnored(data: String) {
        var driver = Self.joined()
        _ = driver.take()
        driver.edge("bird_internal:member_added", "presence-a", data: data)
        driver.edge("bird_internal:member_removed", "presence-a", data: data)
        #expect(driver.take() == [])
    }

    @Test func aSecondSuccessReloadsTheRoster() {
        var driver = Self.joined()
        _ = driver.take()
        driver.confirm("presence-a", data: #"{"presence":{"ids":["m_8"],"hash":{}}}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"m_7"}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"m_8"}"#)
        #expect(driver.take() == ["subscribed 1 [m_8] me m_7 again after 0", "removed 1 m_8"])
    }

    @Test func anEdgeCannotAddMembersForEver() {
        let ids = (1...Roster.membersMax).map(String.init).joined(separator: ",")
        var driver = Self.joined("{\"presence\":{\"ids\":[\(ids)],\"hash\":{}}}")
        _ = driver.take()
        driver.edge("bird_internal:member_added", "presence-a", data: #"{"member_id":"one more"}"#)
        driver.edge("bird_internal:member_added", "presence-a", data: #"{"member_id":"7","member_info":1}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"one more"}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"8"}"#)
        driver.edge("bird_internal:member_added", "presence-a", data: #"{"member_id":"one more"}"#)
        #expect(driver.take() == [Self.isCut, "added 1 7=1", "removed 1 8", "added 1 one more"])
    }

    private static let isCut =
        "error \(BIRD_ERR_SIZE) 0 Members of presence-a are missing in its roster: it holds 100000 members and 4194304 bytes of ids and infos."

    @Test func aFirstRosterHasTheSameBoundsAndItsCutIsToldOnce() {
        let count = Roster.membersMax + 500
        let ids = (1...count).map { "\"\($0)\"" }.joined(separator: ",")
        let data = "{\"presence\":{\"ids\":[\(ids)],\"hash\":{\"7\":\"seven\",\"\(count)\":1}}}"
        let roster = Payload.members(.value(Array(data.utf8)))
        #expect(roster.count == Roster.membersMax && roster.leftOut == 500)
        #expect(roster.members[6] == Member(id: "7", info: Array("\"seven\"".utf8)))
        #expect(roster.members.last?.id == "\(Roster.membersMax)")
        var driver = Self.joined(data)
        #expect(driver.take().last == Self.isCut)
        driver.confirm("presence-a", data: data)
        #expect(!driver.take().contains(Self.isCut))
        driver.edge("bird_internal:member_removed", "presence-a", data: "{\"member_id\":\"\(count)\"}")
        #expect(driver.take() == [])
    }

    @Test func aFirstRosterHasABoundInBytes() {
        let info = String(repeating: "1", count: Roster.bytesMax / 4)
        let hash = (1...5).map { "\"\($0)\":\(info)" }.joined(separator: ",")
        for ids in [#""ids":["1","2","3","4","5"],"#, ""] {
            let roster = Payload.members(.value(Array("{\"presence\":{\(ids)\"hash\":{\(hash)}}}".utf8)))
            #expect(roster.leftOut == 2)
            #expect(roster.members.compactMap(\.info).count == 3)
        }
    }

    @Test func whatIsKnownOfMembersHasABoundInBytes() {
        let info = [UInt8](repeating: 0x31, count: Roster.bytesMax / 4 - 1)
        var members = Roster([Member(id: "a", info: info)])
        let isTaken = ["b", "c", "d", "e", "a"].map { members.add(Member(id: $0, info: info)) }
        #expect(isTaken == [true, true, true, false, true])
        #expect(members.remove(id: "a") != nil && members.add(Member(id: "e", info: info)))
        #expect(!members.add(Member(id: "f", info: nil)) && members.remove(id: "f") == nil)
    }

    @Test("PRE-04: after a resubscribe only the fresh roster counts")
    func freshRoster() {
        var driver = Self.joined()
        driver.unsubscribe(1)
        driver.subscribe("presence-a", 2)
        driver.grant()
        driver.edge("bird_internal:member_added", "presence-a", data: #"{"member_id":"early"}"#)
        _ = driver.take()
        driver.confirm("presence-a", data: #"{"presence":{"ids":["m_8"],"hash":{}}}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"m_7"}"#)
        driver.edge("bird_internal:member_removed", "presence-a", data: #"{"member_id":"early"}"#)
        #expect(driver.take() == ["channel 2 subscribed", "subscribed 2 [m_8] me none"])
    }

}
