/// What authorizes one subscribe or signin frame.
struct Credentials: Sendable {
    var auth: String?
    var memberData: String?
    var sharedSecret: ChannelKey?

    /// The edge cannot tell a frame with one from a frame with the other.
    func areSame(as other: Credentials?) -> Bool {
        auth == other?.auth && memberData == other?.memberData
    }
}

/// What the edge was asked on this connection for one channel, or for the signin, and has not answered.
///
/// The edge keeps one bit for a channel: subscribed or not. Successes do not say which frame they answer. So no unsubscribe is ever sent
/// behind a subscribe that has no answer: then each success means that the edge holds the channel, whichever frame it answers. A program
/// may leave a channel, and subscribe again, before the answer; this record outlives its holder for that. For each channel:
///
///     nothing      nothing was asked, or the edge was told that the channel is left
///     unanswered   a frame is on its way, for the present holder. Left: nothing is sent, and the channel is owed
///     owed         nobody holds the channel. Success: unsubscribe. Refusal, loss: nothing is sent. Subscribed again: inherited
///     inherited    somebody holds the channel, and the frame is an earlier holder's. The same credentials: adopted, it is unanswered again.
///                  Others: once it has its answer, unsubscribe if that was a success, and subscribe
///     subscribed   Left: unsubscribe at once
///
/// A subscribe that the edge has ignored for the whole answer timeout is sent again, behind the first. The channel may then be subscribed
/// while one of both has no answer: the unsubscribe waits for that, too (`isHeld`), until a pong tells that none will come.
struct Asked: Sendable {
    /// Subscribes or signins without an answer, written or not. More than one after a retry.
    var frames = 0
    /// The place of the last frame among all of this connection, answered or not. 0: nothing was asked, or the answer left no doubt.
    var order: UInt64 = 0
    /// The place of the first since then: a success that comes before that is written answers nothing.
    var firstOrder: UInt64 = 0
    /// The last ping that was sent before that one.
    var ping = PingNumber.none
    /// Frames that an error seems to have answered. The next success is taken for theirs.
    private(set) var guessed: UInt32 = 0
    /// It was asked for a holder that has left.
    var isInherited = false
    /// The edge holds the channel for a holder that has left, and has to be told.
    var isHeld = false
    /// Of the last frame, until it is answered. nil for what needs none.
    @Rare var sent: Credentials?
    /// Of the frame that follows once the inherited one is answered.
    @Rare var next: Credentials?

    mutating func add(order: UInt64, after ping: PingNumber, _ credentials: Credentials) {
        frames += 1
        if self.order == 0 { firstOrder = order }
        self.order = order
        self.ping = ping
        isInherited = false
        sent = credentials.auth == nil ? nil : credentials
        next = nil
    }

    /// With one frame that leaves no doubt. With more it may have been the answer to one that an error seemed to have answered.
    mutating func refusedByName() {
        if frames == 0, firstOrder == order { order = 0 }
    }

    mutating func answered() {
        frames = max(0, frames - 1)
        if frames == 0 { sent = nil }
    }

    /// An error seems to be the answer.
    mutating func answeredByGuess() {
        answered()
        guessed += 1
    }

    /// True: the success may be that of a frame of which a guess was made.
    mutating func takeBackGuess() -> Bool {
        guard guessed > 0 else { return false }
        guessed -= 1
        return true
    }

    /// Nothing has an answer to come.
    mutating func allAnswered() {
        (frames, guessed) = (0, 0)
        sent = nil
    }
}
