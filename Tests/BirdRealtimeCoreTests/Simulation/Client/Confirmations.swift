@testable import BirdRealtimeCore

/// Whose answer it was. The edge numbers the answers to subscribe frames of a channel like the frames, which the session does not know.
///
/// A session that sends no unsubscribe behind a subscribe without an answer can take each success at its word. It has to send a second
/// subscribe behind a first that the edge ignores, and it has to take an error for the answer to a frame where the edge says nothing better.
/// An edge that answers in order, pings among all else, lets it know of each frame whether its answer has come or is lost, and leaves no
/// excuse. With another edge the channels that this happened to are `doubtful` until the connection ends.
struct Confirmations {
    /// Of the present connection, by channel.
    private(set) var frames: [String: Int] = [:]
    /// What the authorizer has granted for them last, and what the last frame has.
    private var granted: [String: String] = [:]
    private var sent: [String: String] = [:]
    /// How many pings were sent before the last of them.
    private var pings: [String: Int] = [:]
    /// How many of them were sent when the channel was left.
    private var left: [String: Int] = [:]
    /// Whose answer has come.
    private var answered: [String: Set<Int>] = [:]
    private(set) var doubtful: Set<String> = []
    private(set) var errorsHeard = 0

    /// A subscribe frame goes out.
    mutating func subscribed(_ name: String, _ fates: [Int: EdgeConnection.Fate], auth: String?, pings: Int) {
        if !open(name, fates).isEmpty { doubtful.insert(name) }
        frames[name, default: 0] += 1
        sent[name] = auth
        self.pings[name] = pings
    }

    mutating func wanted(_ name: String) { granted[name] = nil }

    mutating func granted(_ name: String, _ auth: String) { granted[name] = auth }

    /// The program is told of a denial. It must be the answer to the authorization that was granted last.
    func checkDenial(of name: String) throws {
        try require(
            granted[name] == nil || granted[name] == sent[name],
            "takes the answer to another authorization for a denial of \(name)")
    }

    /// So many pongs have passed the only frame of the channel.
    func isPassed(_ name: String, pongs: Int) -> Bool { frames[name] == 1 && pings[name] ?? .max < pongs }

    /// An unsubscribe frame goes out.
    mutating func unsubscribed(_ name: String, _ fates: [Int: EdgeConnection.Fate], isInOrder: Bool) throws {
        let open = open(name, fates)
        try require(
            open.isEmpty || !isInOrder && doubtful.contains(name),
            "leaves \(name) behind the frames \(open), which have no answer")
        left[name] = frames[name]
    }

    /// Frames whose answer is still to come.
    private func open(_ name: String, _ fates: [Int: EdgeConnection.Fate]) -> [Int] {
        let count = frames[name] ?? 0
        guard count > 0 else { return [] }
        return (1...count).filter { frame in
            if let fate = fates[frame], fate == .ignored || fate == .refusedInSilence { return false }
            return answered[name]?.contains(frame) != true
        }
    }

    mutating func answerCame(_ frame: Int, of name: String) {
        answered[name, default: []].insert(frame)
    }

    func hasAnswer(_ frame: Int, of name: String) -> Bool { answered[name]?.contains(frame) == true }

    /// An error was taken for the answer to a frame, and was not.
    mutating func mistaken(_ name: String) {
        doubtful.insert(name)
    }

    mutating func errorCame() {
        errorsHeard += 1
    }

    mutating func forgetConnection() {
        frames = [:]
        (granted, sent) = ([:], [:])
        pings = [:]
        left = [:]
        answered = [:]
        doubtful = []
    }

    /// The channel was not left since this frame.
    func isPresent(_ frame: Int, of name: String) -> Bool { frame > left[name] ?? 0 }

    /// One frame has asked for the channel, and nobody has left it.
    func isOnlyFrame(of name: String) -> Bool { frames[name] == 1 && left[name] == nil }

    /// The program is told of a success because of this frame. True: the channel was left since, and nobody could know.
    func isMistaken(_ frame: Int, of name: String, isInOrder: Bool) throws -> Bool {
        try require(frame <= frames[name] ?? 0, "is told of a success of \(name) that no frame asked for")
        guard !isPresent(frame, of: name) else { return false }
        try require(
            !isInOrder && doubtful.contains(name), "credits frame \(frame) for \(name), which it has left since")
        return true
    }
}
