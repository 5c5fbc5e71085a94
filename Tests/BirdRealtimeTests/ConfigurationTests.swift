import BirdRealtime
import Foundation
import Synchronization
import Testing

/// Clients that never get as far as a connection: nothing here opens a socket.
@Suite(.timeLimit(.minutes(1)))
struct ConfigurationTests {
    /// Each with the name of the option that must be at fault.
    static let unusable: [(BirdRealtimeOptions, String)] = [
        (.init(appKey: "", region: "us1"), "app_key"),
        (.init(appKey: "line\nbreak", region: "us1"), "app_key"),
        (.init(appKey: "pk"), "region"),
        (.init(appKey: "pk", region: "mars"), "region"),
        (.init(appKey: "pk", wsHost: "host:port:port"), "ws_host"),
        (.init(appKey: "pk", region: "us1", authEndpoint: URL(string: "http://auth.example.com/")), "auth_endpoint"),
        (.init(appKey: "pk", region: "us1", authEndpoint: URL(string: "file:///x")), "auth_endpoint"),
        (.init(appKey: "pk", region: "us1", memberAuthEndpoint: URL(string: "x")), "member_auth_endpoint"),
        (.init(appKey: "pk", region: "us1", authHeaders: ["a b": "c"]), "auth_header"),
        (.init(appKey: "pk", region: "us1", keepAlive: .init(activityTimeout: 0)), "activity_timeout_ms"),
        (.init(appKey: "pk", region: "us1", keepAlive: .init(pongTimeout: -.infinity)), "pong_timeout_ms"),
        (.init(appKey: "pk", region: "us1", connectTimeout: .nan), "connect_timeout_ms"),
        (.init(appKey: "pk", region: "us1", connectTimeout: 1e300), "connect_timeout_ms"),
        (.init(appKey: "pk", region: "us1", proxy: "ftp://proxy"), "proxy"),
        (.init(appKey: "pk", region: "us1", reconnect: .fixed(delay: 0)), "reconnect_delay_ms"),
        (.init(appKey: "pk", region: "us1", reconnect: .jitter(base: .nan)), "backoff_base_ms"),
        (.init(appKey: "pk", region: "us1", reconnect: .staged([])), "reconnect_stages"),
        (.init(appKey: "pk", region: "us1", reconnect: .staged([.init(attempts: 0, delay: 1)])), "reconnect_stages"),
        (.init(appKey: "pk", region: "us1", reconnectAttemptsMax: -1), "reconnect_attempts_max"),
        (.init(appKey: "pk", region: "us1", keepAlive: .init(pongMissesMax: 0)), "pong_misses_max"),
        (.init(appKey: "pk", region: "us1", log: .init(areas: [])), "log_areas"),
        (.init(appKey: "pk", region: "us1", log: .init(file: .init(path: "/nowhere/log"))), "log_file"),
        (.init(appKey: "pk", region: "us1", log: .init(file: .init(path: "/dev/null"))), "log_file"),
        (.init(appKey: "pk", region: "us1", log: .init(file: .init(path: "/tmp/x", filesKept: 0))), "log_files_kept"),
        (.init(appKey: "pk", region: "us1", settings: ["preset": "none"]), "preset"),
        (.init(appKey: "pk", region: "us1", settings: ["no_such_option": "1"]), "no_such_option"),
        (.init(appKey: "pk", region: "us1", settings: ["backoff_max_ms": "soon"]), "backoff_max_ms"),
    ]

    @Test(arguments: unusable)
    func aBadOptionMakesAFailedClientThatSaysWhy(_ options: BirdRealtimeOptions, field: String) async throws {
        var options = options
        options.deliveryQueue = DispatchQueue(label: "delivery")
        let bird = BirdRealtime(options: options)
        #expect(bird.connectionState == .failed)
        let error = try #require(bird.configurationError)
        #expect(error.field == field)
        #expect(!error.message.isEmpty)
        #expect(await first { told in bird.onError { told($0) } } == error)

        // Every call is possible and says the same.
        bird.connect()
        bird.disconnect()
        #expect(bird.connectionState == .failed)
        #expect(bird.connectionId == nil)
        #expect(bird.signedInMember == nil)
        #expect(bird.statistics.attempts == 0)
        await #expect(throws: error) { try await bird.signin() }
        #expect(throws: error) { try bird.flush(timeout: 1) }
        #expect(throws: error) { try bird.close() }
        let channel = bird.subscribe("private-ledger")
        #expect(channel is PrivateChannel)
        #expect(channel.error == error)
        #expect(channel.failed && !channel.subscribed)
        #expect(try channel.trigger("client-x") == false)
        bird.unbind(bird.member.bind("x") { _ in })
        bird.unsubscribe("private-ledger")
        let data = await first { told in channel.bind(BirdProtocol.Event.subscriptionError) { told($0) } }
        #expect(data?["error"]?.string == error.message)
        #expect(data?["will_retry"]?.bool == false)
    }

    @Test func theRegionsAreThoseOfTheDialect() {
        func error(_ region: String, _ dialect: Dialect) -> RealtimeError? {
            let options = BirdRealtimeOptions(appKey: "pk", region: region, autoConnect: false, dialect: dialect)
            return BirdRealtime(options: options, deliveryQueue: DispatchQueue(label: "delivery")).configurationError
        }
        #expect(error("us1", .bird) == nil)
        #expect(error("mt1", .bird)?.field == "region")
        #expect(error("mt1", .pusher) == nil)
    }

    @Test(arguments: ["", "two words", "#server-to-user-m_7", "ümlaut", String(repeating: "x", count: 165)])
    func aBadNameMakesAFailedChannel(_ name: String) async throws {
        let bird = idleClient()
        let told = await first { told in
            bird.onError { told($0) }
            bird.subscribe(name)
        }
        let channel = bird.subscribe(name)
        #expect(channel.failed && !channel.subscribed)
        let error = try #require(channel.error)
        #expect(error.kind == .name)
        let data = await first { told in channel.bind(BirdProtocol.Event.subscriptionError) { told($0) } }
        #expect(data?["error"]?.string == error.message)
        #expect(data?["will_retry"]?.bool == false)
        #expect(told == error)
    }

    @Test func theClassOfAChannelFollowsItsName() {
        let bird = idleClient()
        #expect(type(of: bird.subscribe("orders")) == Channel.self)
        #expect(type(of: bird.subscribe("private-ledger")) == PrivateChannel.self)
        #expect(type(of: bird.subscribe("private-encrypted-x")) == EncryptedChannel.self)
        #expect(bird.subscribe("presence-lobby") is PresenceChannel)
        #expect(bird.subscribe("orders") === bird.subscribe("orders"))
        let orders = bird.subscribe("orders")
        bird.unsubscribe("orders")
        #expect(bird.subscribe("orders") !== orders)
    }

    @Test func whatCannotBeSentIsRefused() throws {
        let bird = idleClient()
        let ledger = bird.subscribe("private-ledger")
        #expect(try ledger.trigger("client-typing", data: ["on": true]) == false)
        #expect(throws: RealtimeError.self) { try ledger.trigger("typing") }
        #expect(throws: RealtimeError.self) { try ledger.trigger("client-" + String(repeating: "x", count: 200)) }
        #expect(throws: RealtimeError.self) {
            try ledger.trigger("client-x", data: JSONValue(String(repeating: "x", count: 10_240)))
        }
        var deep: JSONValue = 1
        for _ in 0..<600 { deep = [deep] }
        #expect(throws: RealtimeError.self) { try ledger.trigger("client-x", data: deep) }
        #expect(throws: RealtimeError.self) { try bird.subscribe("orders").trigger("client-x") }
        #expect(throws: RealtimeError.self) { try bird.member.trigger("client-x") }
    }

    @Test func aRefusedRegistrationIsToldByOnError() async throws {
        let bird = idleClient()
        let error = await first { told in
            bird.onError { told($0) }
            bird.subscribe("orders").bind("") { _ in }
        }
        #expect(error.kind == .name)
        #expect(error.field == "event")
    }

    @Test func aReleasedClientReleasesItsHandlers() {
        final class Witness: Sendable {}
        weak var witness: Witness?
        weak var client: BirdRealtime?
        do {
            let bird = idleClient()
            let kept = Witness()
            bird.subscribe("orders").bind("x") { _ in withExtendedLifetime(kept) {} }
            bird.onError { _ in withExtendedLifetime(kept) {} }
            bird.bindGlobal { _, _, _ in withExtendedLifetime(kept) {} }
            (client, witness) = (bird, kept)
        }
        #expect(client == nil)
        #expect(witness == nil)
    }

    @Test func aClientMayBeReleasedByItsOwnHandler() async {
        final class Owner: Sendable {
            let bird: Mutex<BirdRealtime?>

            init(_ bird: BirdRealtime) {
                self.bird = Mutex(bird)
            }
        }
        let owner = Owner(idleClient())
        weak let bird = owner.bird.withLock { $0 }
        let _: RealtimeError = await first { told in
            bird?.onError { error in
                owner.bird.withLock { $0 = nil }
                told(error)
            }
            bird?.subscribe("two words")
        }
        #expect(bird == nil)
    }

    @Test func signinNeedsAnAuthorizerAndAConnection() async {
        await #expect(throws: RealtimeError.self) { try await idleClient().signin() }
        let bird = BirdRealtime(
            options: .init(
                appKey: "pk", region: "us1", memberAuthEndpoint: URL(string: "https://localhost/"),
                deliveryQueue: DispatchQueue(label: "delivery"), autoConnect: false))
        let waiting = Task { try await bird.signin() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    private func idleClient() -> BirdRealtime {
        let bird = BirdRealtime(
            options: .init(
                appKey: "pk", region: "us1", deliveryQueue: DispatchQueue(label: "delivery"), autoConnect: false))
        #expect(bird.configurationError == nil)
        #expect(bird.connectionState == .initialized)
        return bird
    }

    /// The first value that a handler is called with.
    private func first<Value: Sendable>(_ bind: (@escaping @Sendable (Value) -> Void) -> Void) async -> Value {
        let (values, continuation) = AsyncStream.makeStream(of: Value.self)
        bind { continuation.yield($0) }
        for await value in values { return value }
        fatalError("the stream has no end")
    }
}
