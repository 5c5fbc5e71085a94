import Testing

@testable import BirdRealtimeCore

/// Names and ids are the same when their bytes are, not when they look alike.
@Suite struct ExactNamesTests {
    /// An é of one character and one of two; the standard library calls them equal.
    private static let (composed, decomposed) = ("\u{E9}", "e\u{301}")

    @Test func aConfirmationOfANameThatOnlyLooksAlikeIsNobodys() {
        var driver = SessionDriver()
        driver.connect()
        driver.subscribe("a;b", 1)
        // The Greek question mark looks like a semicolon.
        driver.confirm("a\u{37E}b")
        #expect(driver.state(of: "a;b") == .pending)
        driver.confirm("a;b")
        #expect(driver.state(of: "a;b") == .subscribed)
    }

    @Test func membersWhoLookAlikeHaveTheirOwnInfos() {
        let (one, two) = (Self.composed, Self.decomposed)
        let data = #"{"presence":{"ids":["\#(one)","\#(two)"],"hash":{"\#(one)":1,"\#(two)":2}}}"#
        let members = Payload.members(.string(Array(data.utf8))).members
        #expect(members.map { Array($0.id.utf8) } == [Array(one.utf8), Array(two.utf8)])
        #expect(members.map(\.info) == [Array("1".utf8), Array("2".utf8)])
    }

    @Test func membersWhoLookAlikeHaveTheirOwnPlacesOnTheRoster() {
        var roster = Roster([Member(id: Self.composed, info: nil)])
        #expect(roster.add(Member(id: Self.decomposed, info: nil)) == true)
        #expect(roster.members.count == 2)
        #expect(roster.remove(id: Self.composed) != nil)
        #expect(roster.members.map { Array($0.id.utf8) } == [Array(Self.decomposed.utf8)])
    }

    @Test func watchedMembersWhoLookAlikeAreTwo() {
        var watchlist = Watchlist()
        watchlist.take("online", [Self.composed])
        watchlist.take("offline", [Self.decomposed])
        #expect(watchlist.summary.map(\.name) == ["online", "offline"])
    }
}
