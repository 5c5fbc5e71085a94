import BirdRealtime
import Foundation
import Testing

/// The calls of Bird's own documentation compile as they stand there.
@Suite struct UsageTests {
    /// Calls that need no connection, on a client that opens none.
    @Test func callsOnAClient() throws {
        let bird = BirdRealtime(options: .init(appKey: "your-app-key", region: "us1", autoConnect: false))

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

        let orders = bird.subscribe("orders")
        orders.bind("order-updated") { data in
            print("order changed:", data ?? "")
        }

        guard let room = bird.subscribe("presence-room-42") as? PresenceChannel else {
            Issue.record("no presence channel")
            return
        }
        room.bind(BirdProtocol.Event.subscriptionSucceeded) { _ in
            print("me:", room.myId ?? "?", "members:", Array(room.members.keys))
        }
        room.bind(BirdProtocol.Event.subscriptionSucceeded) { _ in
            renderMembers(room.members)
        }
        room.bind(BirdProtocol.Event.memberAdded) { member in
            print("joined:", member ?? "")
        }
        room.bind(BirdProtocol.Event.subscriptionError) { error in
            print("could not join:", error ?? "")
        }
        bird.member.bind("order.shipped") { data in
            print("addressed to me:", data ?? "")
        }

        try room.trigger("client-typing", data: ["on": true])
        #expect(room.members.isEmpty && room.myId == nil)
        #expect(bird.connectionState == .initialized)
    }

    /// Options with endpoints, in the documentation's order.
    @Test func options() {
        let channels = BirdRealtimeOptions(
            appKey: "your-app-key",
            region: "us1",
            authEndpoint: URL(string: "https://your-backend.example.com/bird/auth")!,
            authHeaders: ["authorization": "Bearer <session token>"]
        )
        #expect(channels.authEndpoint?.path == "/bird/auth")
        let member = BirdRealtimeOptions(
            appKey: "your-app-key",
            region: "us1",
            memberAuthEndpoint: URL(string: "https://your-backend.example.com/bird/auth/member")!
        )
        #expect(member.memberAuthEndpoint?.path == "/bird/auth/member")
    }

    /// These would talk to Bird's servers: they are compiled, which is what this file is about, and not called.
    func callsThatConnect() async throws {
        let bird = BirdRealtime(
            options: .init(
                appKey: "your-app-key",
                region: "us1"
            ))

        let me = try await bird.signin()
        print("signed in as", me.memberId)

        bird.disconnect()  // state: disconnected, no reconnect
        bird.connect()  // reopens and re-subscribes
    }
}

private func showReconnectingBanner() {}
private func hideReconnectingBanner() {}
private func showSignedOutScreen() {}
private func renderMembers(_ members: [String: Member]) {}
