import BirdRealtime

// The code of docs/swift.md, which a test holds against this file: compiled and never run.

private struct Order: Codable {
    var sku: String
    var left: Int
}

private struct Session {
    func token() async throws -> String { "" }
    func sign(_ text: String) async throws -> String { text }
}

private func channels(_ data: JSONValue) async throws {
    let bird = BirdRealtime(options: .init(appKey: "your-app-key", region: "us1"))

    let orders = bird.subscribe("orders")
    orders.bind("order-updated") { data in
        print(data?["sku"]?.string ?? "", data?["left"]?.int ?? 0)
    }
    orders.bindGlobal { event, data in
        print(event, data ?? "")
    }

    guard let room = bird.subscribe("presence-lobby") as? PresenceChannel else { return }
    room.bind(BirdProtocol.Event.subscriptionSucceeded) { data in
        print("here:", room.members.keys, "missed:", data?["interrupted_ms"]?.int ?? 0, "ms")
    }
    room.bind(BirdProtocol.Event.memberAdded) { member in
        print("joined:", member?["member_id"] ?? "")
    }
    room.bind(BirdProtocol.Event.subscriptionError) { error in
        print("not here:", error?["error"] ?? "", error?["will_retry"]?.bool ?? false)
    }

    let order = try data.decode(as: Order.self)
    try room.trigger("client-typing", data: ["on": true])
    try room.trigger("client-order", data: JSONValue(encoding: order))

    let token = orders.bind("order-updated") { _ in }
    orders.unbind(token)
    orders.unbind("order-updated")
    orders.unbindAll()

    for try await event in orders.events() {
        print(event.name, event.data ?? "")
    }
}

private func settings(_ session: Session) {
    var options = BirdRealtimeOptions(appKey: "your-app-key", region: "us1")
    options.authEndpoint = URL(string: "https://your-backend.example.com/bird/auth")
    options.headerProvider = { _ in ["authorization": "Bearer \(try await session.token())"] }
    options.authorizer = { connectionId, channelName in
        ChannelAuth(auth: try await session.sign("\(connectionId):\(channelName)"))
    }

    options.reconnect = .staged([.init(attempts: 5, delay: 3), .init(attempts: 5, delay: 9)])
    options.reconnectAttemptsMax = 100
    options.mayReconnect = { attempt in attempt.cause.code == 4100 ? .after(60) : .now }
    options.keepAlive = KeepAlive(activityTimeout: 20, pongTimeout: 10, pongMissesMax: 2)

    options.log = LogOptions(
        handler: { entry in
            if entry.level == .error { print(entry.date, entry.message) }
        },
        console: .warn,
        file: LogFile(path: "/var/log/orders.log", filesKept: 7))
}

private func member(_ bird: BirdRealtime) async throws {
    let me = try await bird.signin()
    print("signed in as", me.memberId)
    bird.member.bind("order.shipped") { data in
        print("for me:", data ?? "")
    }
    let watchlist = bird.member.watchlist
    watchlist.bind("online") { ids in
        print("came:", ids, "now here:", watchlist.online)
    }
}

private func connection(_ bird: BirdRealtime) throws {
    bird.onConnectionStateChange { previous, current in
        print(previous, "->", current)
    }
    bird.onConnectionChange { change in
        print(change.reason, change.closeCode ?? 0)
    }
    bird.onConnectingIn { change in
        print("attempt", change.attempt, "in", change.delay ?? 0, "s")
    }
    bird.onConnectionLost { print("lost") }
    bird.onError { error in
        if error.code == 4009 { print("session ended elsewhere") }
    }

    try bird.setReconnect(.fixed(delay: 10), attemptsMax: 0)
    try bird.setKeepAlive(.init(activityTimeout: 60))
    bird.retryNow()
    bird.networkHint(.up)

    print(bird.statistics.reconnects, bird.statistics.eventsDropped)
    print(bird.dump)
}
