import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// What one message of the edge can make of the session (docs/security.md).
@Suite struct BoundsTests {
    private static func signedIn() -> SessionDriver {
        var driver = SessionDriver()
        driver.connect()
        driver.signIn()
        driver.confirm("#server-to-user-m_7")
        _ = driver.take()
        return driver
    }

    @Test(arguments: ["x", "\u{E9}", "\u{20AC}", "\u{1F426}"])
    func textsOfTheEdge(character: String) {
        for count in [1, 500, 512, 682, 683, 1_023, 1_024, 1_025, 2_047, 2_048, 2_049, 100_000] {
            let text = String(repeating: character, count: count)
            let cut = EdgeText.cut(text)
            #expect(cut.utf8.count <= EdgeText.bytesMax)
            guard text.utf8.count > EdgeText.bytesMax else {
                #expect(cut == text)
                continue
            }
            #expect(cut.last == "\u{2026}" && cut.dropLast().allSatisfy { String($0) == character })
            #expect(cut.utf8.count > EdgeText.bytesMax - 8)
        }
    }

    @Test func messagesOfErrorsAreCut() {
        let long = String(repeating: "x", count: 100_000)
        for data in ["{\"message\":\"\(long)\"}", "\"\(long)\"", long] {
            #expect(Payload.error(.string(Array(data.utf8))).message?.utf8.count == EdgeText.bytesMax)
        }
    }

    @Test func identitiesThatAreTooLong() {
        let dialect = Dialect.bird
        func identity(id: Int, info: Int) -> Payload.Identity? {
            let memberData =
                "{\"member_id\":\"\(String(repeating: "7", count: id))\",\"member_info\":\(String(repeating: "1", count: info))}"
            var data = ObjectWriter()
            data.member("member_data", memberData)
            return Payload.identity(.string(data.finish()), dialect)
        }
        #expect(
            identity(id: Payload.idBytesMax, info: 1) != nil && identity(id: Payload.idBytesMax + 1, info: 1) == nil)
        #expect(identity(id: 1, info: 65_000) != nil && identity(id: 1, info: Payload.memberDataBytesMax) == nil)
        func connectionID(_ count: Int) -> String? {
            Payload.handshake(
                .string(Array("{\"connection_id\":\"\(String(repeating: "1", count: count))\"}".utf8)), dialect
            ).connectionID
        }
        #expect(connectionID(Payload.idBytesMax) != nil && connectionID(Payload.idBytesMax + 1) == nil)
    }

    @Test func aWatchlistFrame() {
        var driver = Self.signedIn()
        let entry = #"{"name":"online","member_ids":["m_8"]}"#
        let many = [String](repeating: entry, count: Payload.watchlistEntriesMax + 7).joined(separator: ",")
        driver.edge("bird_internal:watchlist_events", data: "{\"events\":[\(many)]}")
        let told = driver.take()
        #expect(told.count == Payload.watchlistEntriesMax + 1 && told.last == "watchlist entries malformed 7")

        let ids = (0..<Payload.watchlistIDsMax + 1).map(String.init).joined(separator: ",")
        let large = "{\"name\":\"offline\",\"member_ids\":[\(ids)]}"
        let watchlist = Payload.watchlist(.value(Array("{\"events\":[\(entry),\(large),\(entry)]}".utf8)), .bird)
        #expect(watchlist.entries.map(\.ids.count) == [1, Payload.watchlistIDsMax - 1])
        #expect(watchlist.malformed == 2)
    }

    @Test func theWatchlist() {
        var watchlist = Watchlist()
        watchlist.take("online", (0..<10_500).map(String.init))
        watchlist.take("offline", ["1", "10400", "new"])
        #expect(watchlist.summary.map(\.ids.count) == [9_999, 1])
    }

    @Test func dataThatIsCutIsToldOnceForEachConnection() {
        var driver = Self.signedIn()
        func cut(_ event: String) -> InboundMessage {
            InboundMessage(event: event, data: .string(Array("{\"message\":\"beg".utf8)), isCut: true)
        }
        driver.input(.message(driver.transport, cut("bird:error")))
        driver.input(.message(driver.transport, cut("bird:error")))
        let told = driver.take()
        #expect(
            told.count == 3
                && told[0].hasPrefix("error \(BIRD_ERR_SIZE) 0 The edge sent bird:error with more than 1048576 bytes"))
        #expect(told[1] == told[2] && told[1].hasSuffix(#"{"message":"beg"#))
    }
}
