/// A channel that the program wants, the member channel of the identity, or a channel that is owed (`Asked`).
struct Subscription: Sendable {
    let name: String
    let kind: ChannelKind
    /// None: the program has left the channel, and the edge has yet to answer (`Asked`).
    var reference: ChannelReference
    var admission = Admission()
    /// What other threads were last told.
    var publicState = ChannelState.idle
    /// From the `member_data` of the authorization last sent to the edge; "my id" once that is confirmed.
    var grantedMemberID: String?
    /// Who is there, as far as the session must know: which ids, and what was last known of each.
    var roster: Roster?
    /// The program knows that members are missing in the roster.
    var hasToldCutRoster = false
    var wasSubscribed = false
    /// The last sign of life before events could be missed.
    var interruptedSince: Instant?

    init(name: String, kind: ChannelKind, reference: ChannelReference) {
        self.name = name
        self.kind = kind
        self.reference = reference
    }

    var isSubscribed: Bool { admission.phase == .admitted }

    var isWanted: Bool { reference != .none }

    var state: ChannelState {
        switch admission.phase {
        case .idle: .idle
        case .queued, .authorizing: .authorizing
        case .pending: .pending
        case .admitted: .subscribed
        case .waiting: admission.isFailureReported ? .idle : .authorizing
        case .denied: .failed
        }
    }
}
