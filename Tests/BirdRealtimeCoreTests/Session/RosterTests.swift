import Testing

@testable import BirdRealtimeCore

@Suite struct RosterTests {
    private static func member(_ number: Int, info: Int? = nil) -> Member {
        Member(id: "member-\(number)", info: info.map { Array("\($0)".utf8) })
    }

    /// Against a list that is kept in the plainest way.
    @Test(arguments: 1...20)
    func isAListInOrderOfArrival(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        var roster = Roster()
        var list: [Member] = []
        for step in 0..<3_000 {
            let member = Self.member(Int.random(in: 0..<(seed * 20), using: &random), info: step % 3 == 0 ? nil : step)
            let position = list.firstIndex { $0.id == member.id }
            if Bool.random(using: &random) {
                #expect(roster.add(member) == true)
                if let position { list[position] = member } else { list.append(member) }
            } else {
                let gone = position.map { list.remove(at: $0) }
                #expect(roster.remove(id: member.id) == gone)
            }
            #expect(roster.count == list.count)
            if step % 97 == 0 { #expect(roster.members == list) }
        }
        #expect(roster.members == list)
    }

    @Test func everybodyComesAndGoes() {
        var roster = Roster()
        for number in 0..<Roster.membersMax { #expect(roster.add(Self.member(number)) == true) }
        #expect(roster.add(Self.member(Roster.membersMax)) == false)
        var copy = roster.separated()
        for number in stride(from: 0, to: Roster.membersMax, by: 2) {
            #expect(roster.remove(id: "member-\(number)") != nil)
        }
        #expect(roster.count == Roster.membersMax / 2 && roster.members.first?.id == "member-1")
        for number in stride(from: Roster.membersMax - 1, to: 0, by: -2) {
            #expect(roster.remove(id: "member-\(number)") != nil)
        }
        #expect(roster.isEmpty && roster.members == [])
        #expect(copy.count == Roster.membersMax && copy.remove(id: "member-0") != nil)
    }

    /// An edge that changes one member again and again.
    @Test func changesOfAMemberDoNotAddUp() {
        var roster = Roster()
        let info = [UInt8](repeating: 0x31, count: Roster.bytesMax - 16)
        for _ in 0..<50 { #expect(roster.add(Member(id: "a", info: info)) == true) }
        #expect(roster.add(Member(id: "bbbbbbbbbbbbbbbbbbbb", info: nil)) == false)
        #expect(
            roster.add(Member(id: "a", info: nil)) && roster.add(Member(id: "bbbbbbbbbbbbbbbbbbbb", info: nil)) == true)
        #expect(roster.members.map(\.id) == ["a", "bbbbbbbbbbbbbbbbbbbb"])
    }
}
