import CBirdRealtimeABI

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

/// One connection: frames keep their order in each direction, and a silent link keeps them until it is heard again.
final class Link {
    let client: SimulatedClient
    let transport: TransportID
    /// The last is the present one: an edge may give a new one at any time.
    var connectionIDs: [String]
    var connectionID: String { connectionIDs.last ?? "" }
    /// The edge still has it.
    var isAtEdge = true
    private(set) var isSilent = false
    /// Nobody will ever hear from it again, and nobody is told.
    private(set) var isDead = false
    private var heldToEdge: [[UInt8]] = []
    private var heldToClient: [InboundMessage] = []
    private var lastArrivalAtEdge: Int64 = 0
    private var lastArrivalAtClient: Int64 = 0

    let manners: Manners

    // What the edge knows of it.
    var isGreeted = false
    var identity: String?
    var subscriptions: [String: ModelEdge.Seat] = [:]
    /// Subscribe frames by channel, those that the edge ignores included.
    var subscribeFrames: [String: Int] = [:]
    /// Frames about one channel (or the signin) are worked on one after the other.
    var work: [String: [ModelEdge.Work]] = [:]

    private unowned let world: World

    init(client: SimulatedClient, transport: TransportID, connectionID: String, manners: Manners, world: World) {
        self.client = client
        self.transport = transport
        connectionIDs = [connectionID]
        self.manners = manners
        self.world = world
    }

    var dialect: Dialect { client.dialect }

    /// The edge has yet to work on a subscribe for this channel.
    func isSubscribing(_ channel: String) -> Bool {
        work[channel]?.contains { if case .subscribe = $0 { true } else { false } } ?? false
    }

    func toEdge(_ frame: [UInt8]) {
        if isSilent {
            heldToEdge.append(frame)
            return
        }
        lastArrivalAtEdge = max(lastArrivalAtEdge, world.now + latencyMs())
        world.schedule(.frameToEdge(self, frame), at: lastArrivalAtEdge)
    }

    func toClient(_ message: InboundMessage) {
        if isSilent {
            heldToClient.append(message)
            return
        }
        lastArrivalAtClient = max(lastArrivalAtClient, world.now + latencyMs())
        world.schedule(.frameToClient(self, message), at: lastArrivalAtClient)
    }

    /// The edge's end arrives behind everything that it sent.
    func endToClient(_ end: TransportEnd) {
        guard !isSilent else { return }
        lastArrivalAtClient = max(lastArrivalAtClient, world.now + latencyMs())
        world.schedule(.edgeGone(self, end), at: lastArrivalAtClient)
    }

    func fallSilent(forEver: Bool) {
        isSilent = true
        isDead = isDead || forEver
    }

    func speak() {
        guard isSilent, !isDead else { return }
        isSilent = false
        heldToEdge.forEach(toEdge)
        heldToClient.forEach(toClient)
        heldToEdge = []
        heldToClient = []
        if !isAtEdge {
            endToClient(.failed(Fault(BIRD_ERR_LOST, .connection, "reset", isRetriable: true)))
        }
    }

    private func latencyMs() -> Int64 {
        Int64.random(in: world.happens(onceIn: 10) ? 0...3_000 : 1...40, using: &world.random)
    }
}
