/// Who asks the authorizer and then the edge: the signin, or a channel of the table. The key of a subscribed channel asks the authorizer
/// alone.
enum Applicant: Hashable, Sendable {
    case signin
    case channel(Int)
    case key(Int)
}

/// One wish on its way: the authorizer is asked, the edge is asked, and what fails for a while is tried again.
/// Subscriptions (Bird protocol 8.1) and the signin (Bird protocol 11.2) go the same way.
struct Admission: Sendable {
    enum Phase: Equatable {
        case idle
        /// Waits until fewer authorizations are in flight.
        case queued
        case authorizing(QuestionID)
        /// The edge has been asked.
        case pending
        case admitted
        /// Until the next try.
        case waiting
        case denied
    }

    var phase = Phase.idle
    /// Changes with every phase and deadline: queue entries and deadlines of an earlier ticket are void.
    var ticket: UInt64 = 0
    var due: Instant?
    /// Transient failures in a row.
    var failures = 0
    /// A transient failure is reported once until somebody asks anew.
    var isFailureReported = false
    var asked = Asked()
    /// The edge's error that is taken for the answer unless a success comes first (Bird protocol 16).
    @Rare var cause: Fault?
    /// Operations that end with this admission.
    var operations: [UInt64] = []

    /// Somebody asks anew: failures count and are reported from the start.
    mutating func renew() {
        failures = 0
        isFailureReported = false
    }

    /// The connection has gone, and with it everything but the wish.
    mutating func forgetConnection() {
        phase = .idle
        ticket += 1
        due = nil
        asked = Asked()
        cause = nil
        renew()
    }
}
