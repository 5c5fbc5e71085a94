@testable import BirdRealtimeCore

/// Whose confirmation it was. The edge numbers its confirmations of a channel like the subscribe frames that they answer, which the
/// session does not know.
///
/// The protocol gives errors no channel. Between a leave and the confirmation of what was asked for again, an error may have answered the
/// frame that was left, or the unsubscribe, or nothing of this channel; so after an error nobody can tell by counting whose a confirmation
/// is. Without one everybody can. And a session that has waited long enough gives its own frame up, leaves, and asks again: an answer to
/// the frame given up that comes all the same cannot be told from the answer to the one behind it.
struct Confirmations {
    /// Of the present connection, by channel.
    private var frames: [String: Int] = [:]
    /// How many of them have been left, and the errors heard before the first of those.
    private var left: [String: (count: Int, errorsHeard: Int)] = [:]
    /// How many of them the session has given up by itself.
    private var givenUp: [String: Int] = [:]
    private(set) var errorsHeard = 0
    /// Of earlier connections.
    private var errorsBefore = 0
    /// Frames whose confirmation has come.
    private var confirmed: [String: Int] = [:]

    mutating func subscribed(_ name: String) {
        frames[name, default: 0] += 1
    }

    mutating func unsubscribed(_ name: String) {
        left[name] = (frames[name] ?? 0, left[name]?.errorsHeard ?? errorsHeard)
    }

    mutating func gaveUp(_ name: String) {
        givenUp[name] = frames[name]
    }

    mutating func errorCame() {
        errorsHeard += 1
    }

    mutating func forgetConnection() {
        errorsBefore = errorsHeard
        confirmed = [:]
        frames = [:]
        left = [:]
        givenUp = [:]
    }

    /// A confirmation has come. True: nothing but the last frame accounts for it.
    mutating func isPlain(_ frame: Int, of name: String) -> Bool {
        confirmed[name, default: 0] += 1
        return errorsHeard == errorsBefore && confirmed[name] == frame && frames[name] == frame
    }

    /// The program is told of a success because of this frame. True: it was left, and nobody could know.
    func isMistaken(_ frame: Int, of name: String) throws -> Bool {
        try require(frame <= frames[name] ?? 0, "is told of a success of \(name) that no frame asked for")
        guard let left = left[name], frame <= left.count else { return frame <= givenUp[name] ?? 0 }
        try require(errorsHeard > left.errorsHeard, "credits frame \(frame) for \(name), which it has left since")
        return true
    }
}
