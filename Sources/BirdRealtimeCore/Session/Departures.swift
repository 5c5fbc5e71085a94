/// Subscribe frames of this connection whose answers nobody waits for any more, because the program left the channel first or an
/// earlier frame was answered. They tell a late confirmation of an old subscription from that of a new one with the same name, and
/// an error about them from one about somebody who waits.
struct Departures: Sendable {
    private struct Departure {
        /// Frames that the edge was told to forget and has yet to answer.
        var certain = 0
        /// Frames whose answer may have been an error, or may never come.
        var doubtful = 0
        /// The edge may answer with an error.
        var isErrorDue = false
        /// The edge has not been told to forget them.
        var isOwed = false
    }

    enum Confirmation {
        /// No frame but those of the present holder accounts for it.
        case expected
        /// An abandoned frame accounts for it, and the edge has been told.
        case late
        /// An abandoned frame may account for it.
        case doubtful
        /// An abandoned frame accounts for it, and the edge has not been told.
        case owed
    }

    /// Beyond this number a late confirmation is taken for one of the new subscription.
    private static let namesMax = 1024

    private var byName: [ExactText: Departure] = [:]

    /// The program left the channel, and the edge is told now.
    mutating func add(_ name: String, frames: Int) {
        guard frames > 0 || byName[ExactText(name)] != nil else { return }
        change(name) {
            // What no error has answered so far will be.
            if $0.isErrorDue {
                $0.certain += $0.doubtful
                $0.doubtful = 0
            }
            $0.certain += frames
            $0.isErrorDue = $0.isErrorDue || frames > 0
        }
    }

    /// The program left the channel, and the edge will be told once it has confirmed it. False: it must be told now.
    mutating func owe(_ name: String, frames: Int) -> Bool {
        change(name) {
            $0.doubtful += frames
            $0.isErrorDue = true
            $0.isOwed = true
        }
    }

    /// The channel is asked for again: true if the edge must be told first that it was left.
    mutating func settle(_ name: String) -> Bool {
        guard byName[ExactText(name)]?.isOwed == true else { return false }
        change(name) {
            $0.certain += $0.doubtful
            $0.doubtful = 0
            $0.isOwed = false
        }
        return true
    }

    /// The answer to another frame has ended the wait for these.
    mutating func addSurplus(_ name: String, frames: Int) {
        guard frames > 0 else { return }
        change(name) {
            $0.doubtful += frames
            $0.isErrorDue = true
        }
    }

    /// The edge is told to forget what it may not know.
    mutating func expectError(_ name: String) {
        change(name) { $0.isErrorDue = true }
    }

    /// The edge has answered a subscribe frame for this name.
    mutating func confirm(_ name: String) -> Confirmation {
        guard var departure = byName[ExactText(name)], departure.certain + departure.doubtful > 0 else {
            return .expected
        }
        let confirmation: Confirmation
        if departure.certain > 0 {
            departure.certain -= 1
            confirmation = .late
        } else {
            departure.doubtful -= 1
            confirmation = departure.isOwed ? .owed : .doubtful
        }
        departure.isOwed = false
        byName[ExactText(name)] = departure.certain + departure.doubtful == 0 ? nil : departure
        return confirmation
    }

    /// An error has come. True if it may have been the answer to one of these; the next is not.
    mutating func takeError() -> Bool {
        guard byName.values.contains(where: { $0.isErrorDue }) else { return false }
        byName = byName.compactMapValues { departure in
            let frames = departure.certain + departure.doubtful
            return frames == 0 ? nil : Departure(doubtful: frames, isOwed: departure.isOwed)
        }
        return true
    }

    mutating func removeAll() {
        byName.removeAll()
    }

    /// False if there are too many names.
    @discardableResult
    private mutating func change(_ name: String, _ body: (inout Departure) -> Void) -> Bool {
        guard byName.count < Self.namesMax || byName[ExactText(name)] != nil else { return false }
        body(&byName[ExactText(name), default: Departure()])
        return true
    }
}
