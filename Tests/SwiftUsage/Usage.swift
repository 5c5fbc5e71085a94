// The form is the documentation's.
// swift-format-ignore-file

import BirdRealtime

// The calls of Bird's own documentation for Swift, as they stand there: with this one import, and nothing between them and the
// library. Main.swift has them run.

/// The clients of the documentation, which would talk to Bird's servers: compiled and never made.
func makeClients() {
    do {
        let bird = BirdRealtime(options: .init(appKey: "your-app-key", region: "us1"))
        subscribe(bird)
    }
    do {
        let bird = BirdRealtime(
            options: .init(
                appKey: "your-app-key",
                region: "us1",
                authEndpoint: URL(string: "https://your-backend.example.com/bird/auth")!,
                authHeaders: ["authorization": "Bearer <session token>"]
            ))
        join(bird)
    }
    do {
        let bird = BirdRealtime(
            options: .init(
                appKey: "your-app-key",
                region: "us1",
                memberAuthEndpoint: URL(string: "https://your-backend.example.com/bird/auth/member")!
            ))
        stop(bird)
    }
}

/// The same for an edge of one's own: a host instead of a region, and leave to do without TLS.
func makeClient(_ wsHost: String, _ authEndpoint: String, _ memberAuthEndpoint: String) -> BirdRealtime {
    BirdRealtime(
        options: .init(
            appKey: "your-app-key",
            wsHost: wsHost,
            authEndpoint: URL(string: authEndpoint)!,
            authHeaders: ["authorization": "Bearer m_7"],
            memberAuthEndpoint: URL(string: memberAuthEndpoint)!,
            allowInsecure: true,
            deliveryQueue: DispatchQueue.main
        ))
}

func subscribe(_ bird: BirdRealtime) {
    let orders = bird.subscribe("orders")
    orders.bind("order-updated") { data in
        print("order changed:", data ?? "")
    }
}

func join(_ bird: BirdRealtime) {
    guard let room = bird.subscribe("presence-room-42") as? PresenceChannel else { return }
    room.bind(BirdProtocol.Event.subscriptionSucceeded) { _ in
        print("me:", room.myId ?? "?", "members:", Array(room.members.keys))
    }
    room.bind(BirdProtocol.Event.memberAdded) { member in
        print("joined:", member ?? "")
    }
    room.bind(BirdProtocol.Event.subscriptionError) { error in
        print("could not join:", error ?? "")
    }
}

func render(_ bird: BirdRealtime) {
    guard let room = bird.subscribe("presence-room-1") as? PresenceChannel else { return }

    room.bind(BirdProtocol.Event.subscriptionSucceeded) { _ in
        renderMembers(room.members)
    }
}

func type(_ room: Channel) throws {
    try room.trigger("client-typing", data: ["on": true])
}

func identify(_ bird: BirdRealtime) async throws {
    let me = try await bird.signin()
    print("signed in as", me.memberId)

    bird.member.bind("order.shipped") { data in
        print("addressed to me:", data ?? "")
    }
}

func watch(_ bird: BirdRealtime) {
    bird.onConnectionStateChange { previous, current in
        print(previous, "->", current)
        if current == .unavailable { showReconnectingBanner() }
        if current == .connected { hideReconnectingBanner() }
    }
    bird.onConnectionStateChange { previous, current in
        print("connection: \(previous) → \(current)")
    }
    bird.onSigninError { error in
        print("connection has no identity:", error.message)
    }
    bird.onError { error in
        print(error.code ?? 0, error.message)
    }
    bird.onError { error in
        if error.code == 4009 { showSignedOutScreen() }
    }
    bird.onError { error in
        if error.code == 4009 { print("session ended elsewhere") }
    }
}

func stop(_ bird: BirdRealtime) {
    bird.disconnect() // state: disconnected, no reconnect
}

func start(_ bird: BirdRealtime) {
    bird.connect() // reopens and re-subscribes
}
