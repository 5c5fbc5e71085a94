@testable import BirdRealtimeCore

/// One stream of bytes each way between a client and the edge. Bytes keep their order; they come in other pieces than they went, or not
/// at all: a silent link keeps them until it is heard again, and a cut one ends at any byte.
final class Link {
    let client: SimulatedClient
    let transport: TransportID
    /// The edge still has it.
    private(set) var isAtEdge = true
    /// Nobody will ever hear from it again, and nobody is told.
    private(set) var isDead = false
    private var isSilent = false
    private var isCut = false
    private var heldToEdge: [[UInt8]] = []
    private var heldToClient: [[UInt8]] = []
    private var lastArrivalAtEdge: Int64 = 0
    private var lastArrivalAtClient: Int64 = 0
    private unowned let world: World

    // The client's socket.
    /// What has arrived and was not read.
    private(set) var unread: [UInt8] = []
    private(set) var hasEnded = false
    private var isReadScheduled = false
    private var bytesSent = 0
    /// Nothing that lies behind so many bytes may be taken for a message: what stands there breaks the rules.
    private(set) var brokenAfter = Int.max

    /// How long the edge wants to be left alone behind it.
    var restMs: Int64 = 0

    /// What the edge knows of it.
    var seat: EdgeConnection

    init(client: SimulatedClient, transport: TransportID, seat: EdgeConnection, world: World) {
        self.client = client
        self.transport = transport
        self.seat = seat
        self.world = world
    }

    // MARK: - Towards the edge

    func toEdge(_ bytes: [UInt8]) {
        guard !isCut else { return }
        if isSilent {
            heldToEdge.append(bytes)
            return
        }
        lastArrivalAtEdge = max(lastArrivalAtEdge, world.now + delayMs())
        guard world.strikes(.cutTowardsEdge, client) else {
            world.schedule(.bytesToEdge(self, bytes), at: lastArrivalAtEdge)
            return
        }
        let arriving = Int.random(in: 0..<max(1, bytes.count), using: &world.random)
        world.schedule(.bytesToEdge(self, Array(bytes.prefix(arriving))), at: lastArrivalAtEdge)
        world.schedule(.endToEdge(self), at: lastArrivalAtEdge)
        endToClient()
        isCut = true
    }

    // MARK: - Towards the client

    func toClient(_ bytes: [UInt8], breaksRules: Bool = false) {
        guard !isCut else { return }
        bytesSent += bytes.count
        if breaksRules { brokenAfter = min(brokenAfter, bytesSent) }
        if isSilent {
            heldToClient.append(bytes)
            return
        }
        guard world.strikes(.cutTowardsClient, client) else {
            send(bytes)
            return
        }
        send(Array(bytes.prefix(Int.random(in: 0..<max(1, bytes.count), using: &world.random))))
        world.schedule(.endToEdge(self), at: lastArrivalAtClient)
        endToClient()
        isCut = true
    }

    private func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while rest.count > 1, world.strikes(.readSplit, client) {
            let piece = rest.prefix(Int.random(in: 1..<rest.count, using: &world.random))
            rest = rest.dropFirst(piece.count)
            sendPiece(Array(piece))
        }
        sendPiece(Array(rest))
    }

    private func sendPiece(_ bytes: [UInt8]) {
        lastArrivalAtClient = max(lastArrivalAtClient, world.now + delayMs())
        world.schedule(.bytesToClient(self, bytes), at: lastArrivalAtClient)
    }

    /// The end arrives behind everything that was sent.
    func endToClient() {
        guard !isSilent, !isCut else { return }
        lastArrivalAtClient = max(lastArrivalAtClient, world.now + delayMs())
        world.schedule(.endToClient(client, self), at: lastArrivalAtClient)
    }

    func arrived(_ bytes: [UInt8]) throws {
        unread += bytes
        guard !isReadScheduled else { return }
        if world.strikes(.readCoalesced, client) {
            isReadScheduled = true
            world.schedule(.read(client, self), in: 1...2_000)
        } else if client.frozenUntil > world.now {
            isReadScheduled = true
            world.schedule(.read(client, self), at: client.frozenUntil)
        } else {
            try client.readable(self)
        }
    }

    /// What the client reads now.
    func takeUnread() -> [UInt8] {
        isReadScheduled = false
        defer { unread = [] }
        return unread
    }

    func end() { hasEnded = true }

    // MARK: - Faults

    func edgeForgets() { isAtEdge = false }

    func fallSilent(forEver: Bool) {
        isSilent = true
        isDead = isDead || forEver
        if !forEver { world.schedule(.heard(self), in: 0...60_000) }
    }

    func speak() {
        guard isSilent, !isDead else { return }
        isSilent = false
        let (toEdge, toClient) = (heldToEdge, heldToClient)
        (heldToEdge, heldToClient) = ([], [])
        toEdge.forEach(self.toEdge)
        toClient.forEach(send)
        if !isAtEdge { endToClient() }
    }

    private func delayMs() -> Int64 {
        Int64.random(in: world.strikes(.delay, client) ? 0...3_000 : 1...40, using: &world.random)
    }
}
