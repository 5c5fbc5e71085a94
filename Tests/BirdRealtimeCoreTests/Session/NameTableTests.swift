import Testing

@testable import BirdRealtimeCore

@Suite struct NameTableTests {
    private static func names(_ count: Int) -> [String] {
        (0..<count).map { number in
            String(repeating: "n", count: number % 30) + "\(number)"
        }
    }

    @Test func agreesWithADictionary() {
        var random = SplitMix64(seed: 7)
        let names = Self.names(700)
        var table = NameTable(seed: 3)
        var dictionary: [String: UInt64] = [:]
        for step in 1...60_000 as ClosedRange<UInt64> {
            let name = names[Int.random(in: names.indices, using: &random)]
            if dictionary[name] == nil {
                table.insert(name, step)
                dictionary[name] = step
            } else {
                table.remove(name)
                dictionary[name] = nil
            }
            if step % 5_000 == 0 {
                for name in names where table.value(of: name) != dictionary[name] ?? 0 {
                    Issue.record("step \(step): \(name)")
                }
            }
        }
        #expect(table.count == dictionary.count)
    }

    @Test func lengthsAndEndsOfNamesCount() {
        var table = NameTable(seed: 1)
        let names = (0...40).map { String(repeating: "a", count: $0) }
        for (index, name) in names.enumerated() {
            table.insert(name, UInt64(index) + 1)
        }
        for (index, name) in names.enumerated() {
            #expect(table.value(of: name) == UInt64(index) + 1)
            #expect(table.value(of: name + "\0") == 0)
            #expect(table.value(of: name + "b") == 0)
        }
    }

    @Test func onlyTheSameBytesAreTheSameName() {
        var table = NameTable(seed: 1)
        table.insert("caf\u{E9}", 1)
        table.insert("K", 2)
        #expect(table.value(of: "cafe\u{301}") == 0)
        #expect(table.value(of: "\u{212A}") == 0)
        #expect(table.value(of: "caf\u{E9}") == 1)
    }

    @Test func removingWhatIsNotThereDoesNothing() {
        var table = NameTable(seed: 1)
        table.remove("a")
        table.insert("a", 1)
        table.remove("b")
        #expect(table.count == 1)
        #expect(table.value(of: "a") == 1)
    }

    @Test func namesThatComeAndGoLeaveNothingBehind() {
        var table = NameTable(seed: 1)
        for number in 1...100_000 as ClosedRange<UInt64> {
            table.insert("channel-\(number)", number)
            table.remove("channel-\(number)")
        }
        #expect(table.count == 0)
        #expect(table.records.count < 5_000)
    }
}
