import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

@Suite struct ClientOptionsTests {
    private func client(_ settings: [(String, String)]) throws(Fault) -> Client {
        var options = ClientOptions()
        for (key, value) in settings { try options.set(key, value) }
        return try Client(options)
    }

    @Test func clientWithTheNeededOptionsIsMade() throws {
        let client = try client([("app_key", "k"), ("region", "us1")])
        #expect(client.state == .initialized)
        #expect(client.destroy())
        #expect(!client.destroy())
    }

    @Test(arguments: [
        ([("app_key", "k")], "region"),
        ([("region", "us1")], "app_key"),
        ([("app_key", "k"), ("region", "mars")], "region"),
        ([("app_key", "k"), ("ws_host", "a b")], "ws_host"),
        ([("app_key", "k"), ("ws_host", "host:99999")], "ws_host"),
        ([("app_key", "k"), ("region", "us1"), ("auth_endpoint", "http://example.test/")], "auth_endpoint"),
        ([("app_key", "k"), ("region", "us1"), ("auth_endpoint", "/bird/auth")], "auth_endpoint"),
        ([("app_key", "k"), ("region", "us1"), ("member_auth_endpoint", "https://u:p@h/")], "member_auth_endpoint"),
        ([("app_key", "k"), ("region", "us1"), ("delivery", "queue")], "delivery"),
    ])
    func faultNamesTheOption(_ settings: [(String, String)], _ field: String) {
        #expect(throws: Fault.self) { try client(settings) }
        do throws(Fault) {
            _ = try client(settings)
        } catch let fault {
            #expect(fault.status == BIRD_ERR_VALUE)
            #expect(fault.field == field)
            #expect(fault.message.contains(field) || fault.message.contains("queue"))
        }
    }

    @Test func secretsStayOutOfMessages() {
        var options = ClientOptions()
        do throws(Fault) {
            try options.setAuthHeader("authorization", "Bearer s3cret\n")
            Issue.record("a header with a line break was accepted")
        } catch let fault {
            #expect(!fault.message.contains("s3cret"))
            #expect(fault.message.contains("authorization"))
        }
    }

    @Test func aHeaderIsReplacedByItsName() throws {
        var options = ClientOptions()
        try options.setAuthHeader("X-Token", "1")
        try options.setAuthHeader("x-token", "2")
        #expect(options.authHeaders.all.map(\.value) == ["2"])
    }
}
