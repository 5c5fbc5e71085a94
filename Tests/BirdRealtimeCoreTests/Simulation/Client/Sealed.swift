@testable import BirdRealtimeCore

/// Events of encrypted channels between their arrival and the program, which hears of each, opened or not, once and in order.
struct Sealed {
    /// They have their numbers in their names too, which are not sealed.
    static let prefix = "sealed-"

    private var waiting: [ChannelReference: [(name: String, cameAt: Int64)]] = [:]
    private var lastRefresh: [ChannelReference: Int64] = [:]

    mutating func came(_ name: String, on reference: ChannelReference, _ now: Int64) {
        waiting[reference, default: []].append((name, now))
    }

    mutating func told(_ name: String, on reference: ChannelReference) throws {
        let first = waiting[reference]?.first?.name
        try require(first == name, "tells \(name), and not \(first ?? "nothing"), which came first")
        waiting[reference]?.removeFirst()
    }

    /// Only the program's own unsubscribe drops what waits.
    mutating func ended(_ reference: ChannelReference, byProgram: Bool) throws {
        let rest = waiting.removeValue(forKey: reference) ?? []
        try require(rest.isEmpty || byProgram, "forgets \(rest.map(\.name))")
        lastRefresh[reference] = nil
    }

    mutating func refreshBegan(_ reference: ChannelReference, _ now: Int64) throws {
        let last = lastRefresh[reference] ?? -Session.keyRefreshSpacingMs
        try require(now >= last + Session.keyRefreshSpacingMs, "hammers the authorizer")
        lastRefresh[reference] = now
    }

    /// The program subscribes anew, after which nobody has to wait.
    mutating func subscribed(_ reference: ChannelReference) {
        lastRefresh[reference] = nil
    }

    /// The time until `now` is not counted: nobody could be asked.
    mutating func excuse(_ now: Int64) {
        waiting = waiting.mapValues { $0.map { ($0.name, now) } }
    }

    func check(_ now: Int64, waitMsMax: Int64) throws {
        for (_, events) in waiting {
            guard let oldest = events.first else { continue }
            try require(now <= oldest.cameAt + waitMsMax, "keeps \(oldest.name) waiting since \(oldest.cameAt)")
        }
    }
}
