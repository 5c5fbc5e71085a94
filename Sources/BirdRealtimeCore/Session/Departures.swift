/// Subscribe frames of this connection whose answers nobody waits for any more, because the program left the channel first.
/// They tell a late confirmation of the old subscription from that of a new one with the same name.
struct Departures: Sendable {
    private struct Departure {
        var frames: Int
        /// An error of the edge may have been the answer.
        var isDoubtful = false
    }

    enum Confirmation {
        /// No frame but those of the present holder accounts for it.
        case expected
        /// An abandoned frame accounts for it.
        case late
        /// An abandoned frame may account for it.
        case doubtful
    }

    /// Beyond this number a late confirmation is taken for one of the new subscription.
    private static let namesMax = 1024

    private var byName: [String: Departure] = [:]
    /// Whether an answer to an abandoned frame is certain to come.
    private(set) var areAnswersDue = false

    mutating func add(_ name: String, frames: Int) {
        guard frames > 0, byName.count < Self.namesMax || byName[name] != nil else { return }
        byName[name] = Departure(frames: frames + (byName[name]?.frames ?? 0))
        areAnswersDue = true
    }

    mutating func confirm(_ name: String) -> Confirmation {
        guard var departure = byName[name] else { return .expected }
        departure.frames -= 1
        byName[name] = departure.frames == 0 ? nil : departure
        areAnswersDue = byName.values.contains { !$0.isDoubtful }
        return departure.isDoubtful ? .doubtful : .late
    }

    mutating func errorCame() {
        guard areAnswersDue else { return }
        byName = byName.mapValues { Departure(frames: $0.frames, isDoubtful: true) }
        areAnswersDue = false
    }

    mutating func removeAll() {
        byName.removeAll()
        areAnswersDue = false
    }
}
