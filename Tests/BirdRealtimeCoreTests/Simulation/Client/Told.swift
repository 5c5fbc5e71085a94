@testable import BirdRealtimeCore

/// What the program has been told, and whether it could have been.
struct Told {
    private static let next: [ConnectionState: Set<ConnectionState>] = [
        .initialized: [.connecting, .disconnected],
        .connecting: [.connected, .unavailable, .disconnected, .failed],
        .connected: [.unavailable, .disconnected, .failed],
        .unavailable: [.connecting, .disconnected],
        .disconnected: [.connecting],
        .failed: [.connecting, .disconnected],
    ]

    private(set) var state = ConnectionState.initialized
    var channels: [ChannelReference: ChannelState] = [:]
    var identity: String?
    /// Channels of whose success the program has been told, and not of their end.
    private(set) var live: Set<ChannelReference> = []
    private(set) var rosters: [ChannelReference: [String]] = [:]
    private var wasSubscribed: Set<ChannelReference> = []
    /// When the last was heard before each of these was lost.
    private var missedSince: [ChannelReference: Int64] = [:]
    private var lastTick: [ChannelReference: Int] = [:]
    /// Channels whose success was that of an earlier subscription: the edge is about to end it, and to begin the present one.
    private var mistaken: Set<ChannelReference> = []
    /// No tick since the last success.
    private var awaitsFirstTick: Set<ChannelReference> = []

    mutating func change(_ change: StateChange) throws {
        try require(change.previous == state, "a state change is lost: \(change.previous) is left in \(state)")
        try require(
            Self.next[state]?.contains(change.current) == true, "goes from \(state) to \(change.current)")
        state = change.current
    }

    var isTerminal: Bool { state == .failed || state == .disconnected }

    mutating func success(
        _ reference: ChannelReference, members: Roster?, isResubscribe: Bool, interruptedMs: Int64, _ now: Int64
    ) throws {
        try require(channels[reference] == .subscribed, "a success comes before its state")
        let isNew = live.insert(reference).inserted
        // A presence channel's roster may come anew.
        try require(isNew || members != nil, "a success comes twice")
        let isAgain = !wasSubscribed.insert(reference).inserted
        try require(isResubscribe == isAgain, "a success does not know whether it is the first")
        let missedMs = missedSince.removeValue(forKey: reference).map { now - $0 } ?? 0
        try require(interruptedMs == missedMs, "an interruption of \(missedMs) ms is told as \(interruptedMs)")
        rosters[reference] = members?.members.map(\.id)
        if isNew { awaitsFirstTick.insert(reference) }
    }

    mutating func mistaken(_ reference: ChannelReference) {
        mistaken.insert(reference)
    }

    /// The member channel has no success event.
    mutating func confirmed(_ reference: ChannelReference) {
        live.insert(reference)
        awaitsFirstTick.insert(reference)
    }

    mutating func ended(_ reference: ChannelReference, lastHeard: Int64) {
        if live.remove(reference) != nil { missedSince[reference] = lastHeard }
        mistaken.remove(reference)
        rosters[reference] = nil
    }

    mutating func added(_ member: Member, to reference: ChannelReference) throws {
        try require(live.contains(reference), "a member comes before the success")
        if rosters[reference]?.contains(member.id) == false { rosters[reference]?.append(member.id) }
    }

    mutating func removed(_ member: Member, from reference: ChannelReference) throws {
        try require(rosters[reference]?.contains(member.id) == true, "an unknown member goes")
        rosters[reference]?.removeAll { $0 == member.id }
    }

    /// Every event while subscribed, once and in order. `isCache`: the last comes again with a success. `mayMiss`: those that did
    /// not open.
    mutating func tick(_ number: Int, on reference: ChannelReference, isCache: Bool, mayMiss: Bool) throws {
        let last = lastTick[reference] ?? 0
        let isFirst = awaitsFirstTick.remove(reference) != nil
        let isMistaken = mistaken.contains(reference)
        let isAgain = (isFirst || isMistaken) && isCache && number == last
        try require(number > last || isAgain, "event \(number) comes twice or out of order behind \(last)")
        try require(
            isFirst || mayMiss || isMistaken || number == last + 1,
            "event \(number) comes behind \(last): some were lost")
        lastTick[reference] = number
    }
}
