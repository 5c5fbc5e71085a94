import BirdRealtimeCore
import Testing

@Suite struct DialectTests {
    @Test func birdNames() {
        let bird = Dialect.bird
        #expect(bird.connectionEstablished == "bird:connection_established")
        #expect(bird.internalConnectionCount == "bird_internal:connection_count")
        #expect(bird.connectionCount == "bird:connection_count")
        #expect(bird.watchlistEvents == "bird_internal:watchlist_events")
        #expect(bird.signinSuccess == "bird:signin_success")
        #expect(bird.memberIDKey == "member_id" && bird.identityIDKey == "member_id")
        #expect(bird.channelDataKey == "member_data" && bird.identityKey == "member_data")
    }

    @Test func pusherNames() {
        let pusher = Dialect.pusher
        #expect(pusher.connectionEstablished == "pusher:connection_established")
        #expect(pusher.internalConnectionCount == "pusher_internal:subscription_count")
        #expect(pusher.connectionIDKey == "socket_id")
        // The id of the identity is spelled otherwise than that of presence.
        #expect(pusher.memberIDKey == "user_id" && pusher.identityIDKey == "id")
        #expect(pusher.channelDataKey == "channel_data" && pusher.identityKey == "user_data")
        #expect(pusher.needsAuthStatus200 && pusher.authEncoding == .form)
    }

    @Test("what the client tells of has the names of every dialect; other names are their own")
    func toldEvents() {
        let names = [
            ("subscription_succeeded", "subscription_succeeded"), ("subscription_error", "subscription_error"),
            ("member_added", "member_added"), ("member_removed", "member_removed"),
            ("connection_count", "subscription_count"), ("cache_miss", "cache_miss"),
            ("decryption_error", "decryption_error"),
        ]
        for (bird, pusher) in names {
            for name in ["bird:\(bird)", "pusher:\(pusher)"] {
                #expect(Dialect.bird.ownName(of: name) == "bird:\(bird)")
                #expect(Dialect.pusher.ownName(of: name) == "pusher:\(pusher)")
            }
        }
        for name in ["moved", "pusher:moved", "bird:moved", "bird_internal:member_added", "client-x", ""] {
            #expect(Dialect.bird.ownName(of: name) == name)
            #expect(Dialect.pusher.ownName(of: name) == name)
        }
    }

    @Test func byName() {
        #expect(Dialect.named("bird") === Dialect.bird)
        #expect(Dialect.named("pusher") === Dialect.pusher)
        #expect(Dialect.named("Bird") == nil)
    }
}

@Suite struct OutboundMessageTests {
    @Test func birdFrames() {
        let memberData = #"{"member_id":"m_7","member_info":{"name":"Noor"}}"#
        let frames = [
            OutboundMessage.subscribe(channel: "orders"),
            OutboundMessage.subscribe(channel: "private-ledger", auth: "pk:ab"),
            OutboundMessage.subscribe(channel: "presence-lobby", auth: "pk:ab", memberData: memberData),
            OutboundMessage.subscribe(channel: "#server-to-user-m_7"),
            OutboundMessage.unsubscribe(channel: "orders"),
            OutboundMessage.signin(auth: "pk:ab", memberData: memberData),
            OutboundMessage.ping(),
            OutboundMessage.pong(),
            OutboundMessage.clientEvent("client-typing", channel: "private-ledger", data: Array(#"{"on":true}"#.utf8)),
            OutboundMessage.clientEvent("client-typing", channel: "private-ledger", data: nil),
        ]
        let quoted = #""{\"member_id\":\"m_7\",\"member_info\":{\"name\":\"Noor\"}}""#
        #expect(
            frames.map(text) == [
                #"{"event":"bird:subscribe","data":{"channel":"orders"}}"#,
                #"{"event":"bird:subscribe","data":{"channel":"private-ledger","auth":"pk:ab"}}"#,
                #"{"event":"bird:subscribe","data":{"channel":"presence-lobby","auth":"pk:ab","member_data":\#(quoted)}}"#,
                ##"{"event":"bird:subscribe","data":{"channel":"#server-to-user-m_7"}}"##,
                #"{"event":"bird:unsubscribe","data":{"channel":"orders"}}"#,
                #"{"event":"bird:signin","data":{"auth":"pk:ab","member_data":\#(quoted)}}"#,
                #"{"event":"bird:ping"}"#,
                #"{"event":"bird:pong"}"#,
                #"{"event":"client-typing","channel":"private-ledger","data":{"on":true}}"#,
                #"{"event":"client-typing","channel":"private-ledger"}"#,
            ])
        for frame in frames {
            #expect(isValue(frame))
        }
    }

    @Test func pusherFrames() {
        let frames = [
            OutboundMessage.subscribe(channel: "orders", dialect: .pusher),
            OutboundMessage.subscribe(channel: "presence-x", auth: "k:a", memberData: "{}", dialect: .pusher),
            OutboundMessage.signin(auth: "k:a", memberData: "{}", dialect: .pusher),
            OutboundMessage.ping(dialect: .pusher),
            OutboundMessage.pong(dialect: .pusher),
        ]
        #expect(
            frames.map(text) == [
                #"{"event":"pusher:subscribe","data":{"channel":"orders","auth":""}}"#,
                #"{"event":"pusher:subscribe","data":{"channel":"presence-x","auth":"k:a","channel_data":"{}"}}"#,
                #"{"event":"pusher:signin","data":{"auth":"k:a","user_data":"{}"}}"#,
                #"{"event":"pusher:ping","data":{}}"#,
                #"{"event":"pusher:pong","data":{}}"#,
            ])
    }

    @Test func hostileNamesStayStrings() {
        let name = "client-\",\"channel\":\"x\"}\n"
        let frame = OutboundMessage.clientEvent(name, channel: "private-\\", data: Array("1".utf8))
        #expect(scan(frame).message?.event == Array(name.utf8))
        #expect(scan(frame).message?.channel == Array("private-\\".utf8))
    }
}
