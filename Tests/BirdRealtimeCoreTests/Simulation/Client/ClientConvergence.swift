@testable import BirdRealtimeCore

/// The end of chaos, and what must be true after it.
extension SimulatedClient {
    private static let neverSubscribed: Set<String> = ["refused-a", "private-denied-a"]

    func heal() throws {
        if program.wantsConnection { try connect() }
    }

    /// Refusals and denials are final until the application asks again; some of them were the fault of chaos.
    func askAgain() throws {
        try heal()
        for name in program.names
        where told.channels[program.wanted[name] ?? .none] == .failed || ChannelKind.of(name) == .encrypted {
            try subscribe(name)
        }
        if program.wantsConnection, program.wantsIdentity { try signIn(refresh: false) }
    }

    func checkConverged(_ edge: ModelEdge) throws {
        guard program.wantsConnection else {
            try require(transport == nil, "holds a transport that nobody wants")
            return
        }
        try require(state == .connected, "is \(state) though the world has healed")
        guard let link = edge.link(of: self), link.transport == transport else {
            throw Wrong(message: "is connected to nothing")
        }
        try require(
            link.seat.connectionID == session.connectionID,
            "has connection id \(session.connectionID), the edge has given \(link.seat.connectionID)")
        var expected = Set(program.names).subtracting(Self.neverSubscribed)
        if program.wantsIdentity {
            try require(link.seat.identity == memberID && session.memberID == memberID, "is not signed in")
            expected.insert(ChannelName.ofMember(memberID))
        }
        let held = Set(link.seat.subscriptions.keys)
        try require(
            held == expected,
            "lost \(expected.subtracting(held).sorted()), holds unwanted \(held.subtracting(expected).sorted())")
        for (name, reference) in program.wanted {
            let state = Self.neverSubscribed.contains(name) ? ChannelState.failed : .subscribed
            try require(
                told.channels[reference] == state, "\(name) is \(String(describing: told.channels[reference]))")
            if ChannelKind.of(name) == .presence {
                let (roster, members) = (told.rosters[reference] ?? [], edge.members(of: name))
                try require(roster.sorted() == members, "the roster of \(name) is \(roster) and not \(members)")
            }
        }
        try require(
            program.openOperations.isEmpty, "operations \(program.openOperations.sorted()) have not ended")
    }

    func finish() throws {
        try disconnect()
        for name in program.names { try unsubscribe(name) }
    }

    func checkFinished(_ edge: ModelEdge) throws {
        try require(
            program.openOperations.isEmpty, "operations \(program.openOperations.sorted()) have not ended")
        try require(session.nextDeadline == nil, "waits for something after the end")
        try require(openQuestions.isEmpty && attempts.openQuestion == nil, "asks something after the end")
        try require(edge.link(of: self) == nil, "is still connected at the edge")
    }
}
