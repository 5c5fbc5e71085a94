import Testing

@testable import BirdRealtimeCore

@Suite struct OptionTableTests {
    /// All that options hold, as text: what is stored where cannot hide from it.
    private func contents(_ options: ClientOptions) -> String {
        var text = ""
        var options = options
        // That something was set is kept beside what was set.
        options.given = []
        dump(options, to: &text)
        return text
    }

    @Test func keysAreUnique() {
        #expect(Set(Option.table.map { "\($0.key)" }).count == Option.table.count)
    }

    @Test func groupsStandTogether() {
        let groups = Option.table.map(\.group.rawValue)
        #expect(groups == groups.sorted())
    }

    @Test(arguments: Option.table.indices) func defaultIsThatOfFreshOptions(_ index: Int) throws {
        let row = Option.table[index]
        var options = ClientOptions()
        let fresh = contents(options)
        if "\(row.defaultText)" != "" {
            try options.set("\(row.key)", "\(row.defaultText)")
            #expect(contents(options) == fresh, "\(row.key)")
        }
        // It is stored at all, so the comparison above can fail.
        for value in other(row) where (try? options.set("\(row.key)", value)) != nil {}
        #expect(contents(options) != fresh, "\(row.key)")
    }

    /// Values of which one at least is good and not the default.
    private func other(_ row: Option) -> [String] {
        switch row.storage {
        case .flag: ["\(row.defaultText)" == "0" ? "1" : "0"]
        case .number(let range, _): ["\(range.lowerBound)", "\(range.upperBound)"]
        case .text:
            [
                "abc", "192.0.2.1", "http://localhost", "1.3", "loop", "drop-oldest", "staged", "1x1", "pusher",
                "error", "wire",
            ]
        }
    }

    @Test func aBadValueLeavesEverythingAsItWas() throws {
        for (key, value) in [("app_key", ""), ("address", "x"), ("tls_verify_name", "a:1"), ("proxy", "x://y")] {
            var options = ClientOptions()
            let fresh = contents(options)
            #expect(throws: Fault.self) { try options.set(key, value) }
            #expect(contents(options) == fresh, "\(key)")
        }
    }
}
