@testable import BirdRealtimeCore

/// How an edge answers what it cannot do.
enum Manners: CaseIterable {
    /// With an error.
    case strict
    /// A subscribe for what is subscribed already is confirmed again, an unsubscribe for what is not is nothing.
    case lenient
    /// As `strict`; and an unsubscribe that comes before the subscribe has been worked on is an error.
    case hasty
}

/// What the edge knows of one connection.
struct EdgeConnection {
    /// A subscription; the member for presence channels.
    struct Seat {
        var memberID: String?
    }

    enum Work {
        /// `frame`: which subscribe frame of the connection for this channel it is; its answer says so.
        case subscribe(channel: String, auth: String?, memberData: String?, frame: Int)
        case unsubscribe(channel: String)
        case signin(auth: String, memberData: String)
        /// The pong says which ping of the connection it answers.
        case ping(Int)
    }

    /// What has become of a subscribe frame.
    enum Fate {
        /// The edge acts as if it had not come.
        case ignored
        case confirmed
        /// With errors, which say so to the simulation and not to the session.
        case refused
        /// By name.
        case refusedByName
        case refusedInSilence
    }

    let manners: Manners
    /// Of each refusal; an edge that says nothing says so once the world has healed.
    let errorsOfRefusal: Int
    /// The last is the present one: an edge may give a new one at any time.
    var connectionIDs: [String]
    var frames = ClientFrames()
    /// Closed by the client or by the edge.
    var isClosed = false
    var isGreeted = false
    var identity: String?
    var subscriptions: [String: Seat] = [:]
    var pings = 0
    /// Subscribe frames by channel, those that the edge ignores included.
    var subscribeFrames: [String: Int] = [:]
    /// By channel, and by number. Not there: the edge has yet to work on it.
    var fates: [String: [Int: Fate]] = [:]
    /// Not all answers came, or came as they should: what has no answer when a pong comes need not have been refused.
    var isBlurred = false
    /// Frames with the same key are worked on one after the other: those about one channel, or all of them.
    var work: [String: [Work]] = [:]

    init(connectionID: String, manners: Manners, errorsOfRefusal: Int) {
        connectionIDs = [connectionID]
        self.manners = manners
        self.errorsOfRefusal = errorsOfRefusal
    }

    var connectionID: String { connectionIDs.last ?? "" }

    /// The edge has yet to work on a subscribe for this channel.
    func isSubscribing(_ channel: String) -> Bool {
        work.values.joined().contains { if case .subscribe(channel, _, _, _) = $0 { true } else { false } }
    }
}
