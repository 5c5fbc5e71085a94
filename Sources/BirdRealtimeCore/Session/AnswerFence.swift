/// Tells which frame an error answers, though errors name none (Bird protocol 16). An error makes the client send a ping. An edge that
/// answers in the order of the frames has answered all that was sent before the ping when its pong comes: what is still without an answer
/// then was refused, by the errors of the meantime, in the order of the frames.
///
/// Pongs carry nothing, so they are counted (`Liveness`). Once one is lost, each counts for the ping before its own, which is late and never
/// wrong: what it leaves open, another ping tells.
struct AnswerFence: Sendable {
    // Of this connection.
    private var frames: UInt64 = 0
    private var pingBeforeLastFrame = PingNumber.none
    /// What frames without an answer may have been refused by, in the order in which it came; and the last frame that was written then.
    private var errors: ArraySlice<(fault: Fault, order: UInt64)> = []
    /// Its pong tells.
    private var pingOfErrors = PingNumber.none

    // Of the edge, on whatever connection.
    /// A success that comes behind the pong of a later ping shows that it does not.
    private(set) var answersInOrder = true
    private(set) var answersPings = false

    /// The pong will tell. Else an error is taken for the answer if exactly one is due.
    var isTrusted: Bool { answersInOrder && answersPings }

    mutating func connectionEnded() {
        frames = 0
        pingBeforeLastFrame = .none
        errors = []
        pingOfErrors = .none
    }

    /// The place of the next frame that awaits an answer.
    mutating func nextFrame(after ping: PingNumber) -> UInt64 {
        frames += 1
        pingBeforeLastFrame = ping
        return frames
    }

    /// No ping that waits for its pong was sent behind all frames.
    func needsPing(pinged: PingNumber, ponged: PingNumber) -> Bool {
        answersInOrder && (pinged == pingBeforeLastFrame || pinged == ponged)
    }

    /// Of more errors than answers that are due, the latest count: a frame may have been written since an earlier one. `ping` was sent behind
    /// all frames.
    mutating func add(_ error: Fault, lastWritten: UInt64, answersDue: Int, until ping: PingNumber) {
        guard answersInOrder else { return }
        pingOfErrors = ping
        errors.append((error, lastWritten))
        if errors.count > answersDue { errors.removeFirst() }
    }

    /// A pong has passed these frames, in their order, and they have no answer. Whether each was refused, and by what.
    mutating func refusals(of passed: [Asked], ponged: PingNumber) -> [Fault?] {
        answersPings = true
        var rest = errors
        let refusals = passed.map { asked -> Fault? in
            // What came before the frame was written is not about it.
            rest = rest.drop { $0.order < asked.order }
            return rest.popFirst()?.fault
        }
        errors = ponged < pingOfErrors ? rest : []
        return refusals
    }

    /// Frames that may have been refused are still to be told from others.
    var hasErrors: Bool { !errors.isEmpty }

    var errorCount: Int { errors.count }

    /// An answer has come behind the pong that should have come behind it.
    mutating func orderIsBroken() {
        answersInOrder = false
        errors = []
    }
}
