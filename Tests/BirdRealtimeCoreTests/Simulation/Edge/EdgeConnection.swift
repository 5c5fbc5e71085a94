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
        /// `frame`: which subscribe frame of the connection for this channel it is; its confirmation says so.
        case subscribe(auth: String?, memberData: String?, frame: Int)
        case unsubscribe
        case signin(auth: String, memberData: String)
        /// The pong says which ping of the connection it answers.
        case ping(Int)
    }

    let manners: Manners
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
    /// Frames about one channel (or the signin) are worked on one after the other.
    var work: [String: [Work]] = [:]

    init(connectionID: String, manners: Manners) {
        connectionIDs = [connectionID]
        self.manners = manners
    }

    var connectionID: String { connectionIDs.last ?? "" }

    /// The edge has yet to work on a subscribe for this channel.
    func isSubscribing(_ channel: String) -> Bool {
        work[channel]?.contains { if case .subscribe = $0 { true } else { false } } ?? false
    }
}
