import BirdRealtime
import Foundation
import Synchronization

/// Tests/CHarness/script/client_script.c on the Swift face: the same options, commands and lines, as far as the face has them. Of
/// completions it knows those of signins. The end of stdin releases the client.
@main
struct SwiftClient {
    static func main() {
        let questions = Questions()
        let settings = CommandLine.arguments.dropFirst().map { argument in
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (key: String(parts[0]), value: parts.count > 1 ? String(parts[1]) : "")
        }
        let queue = DispatchQueue(label: "delivery")
        let script = Script(BirdRealtime(options: options(settings, queue, questions)), queue, questions)
        while let line = readLine() { script.perform(line) }
        script.end()
    }
}

/// One line of JSON, whole whatever other threads say.
func say(_ fields: [String: JSONValue]) {
    output.withLock { $0.write(Data((JSONValue(fields).text + "\n").utf8)) }
}

private let output = Mutex(FileHandle.standardOutput)

private func options(
    _ settings: [(key: String, value: String)], _ queue: DispatchQueue, _ questions: Questions
) -> BirdRealtimeOptions {
    var options = BirdRealtimeOptions(appKey: "", deliveryQueue: queue, autoConnect: false)
    for (key, value) in settings {
        let seconds = Double(value).map { $0 / 1_000 }
        switch key {
        case "app_key": options.appKey = value
        case "region": options.region = value
        case "ws_host": options.wsHost = value
        case "allow_insecure": options.allowInsecure = value == "1"
        case "auth_endpoint": options.authEndpoint = URL(string: value)
        case "member_auth_endpoint": options.memberAuthEndpoint = URL(string: value)
        case "ca_file": options.caFile = value
        case "proxy": options.proxy = value
        case "activity_timeout_ms": options.keepAlive.activityTimeout = seconds
        case "pong_timeout_ms": options.keepAlive.pongTimeout = seconds
        case "connect_timeout_ms": options.connectTimeout = seconds
        case "overflow": options.overflow = Overflow(rawValue: value) ?? .pause
        case "log_level":
            options.log.level = LogLevel(rawValue: value)
            options.log.handler = { entry in
                say([
                    "record": "log", "level": JSONValue(entry.level.rawValue), "message": JSONValue(entry.message),
                    "about": JSONValue(entry.channelName ?? ""),
                ])
            }
        case "authorizer": options.authorizer = { try await questions.authorize($0, $1) }
        case "member_authorizer": options.memberAuthorizer = { try await questions.authorizeMember($0) }
        case "header_provider": options.headerProvider = { try await questions.headers(for: $0) }
        case "may_reconnect": options.mayReconnect = { await questions.decide($0) }
        case _ where key.hasPrefix("header:"): options.authHeaders[String(key.dropFirst(7))] = value
        default: options.settings[key] = value
        }
    }
    return options
}

extension RealtimeError {
    /// The fields that every face prints of an error.
    var fields: [String: JSONValue] {
        [
            "error": JSONValue(statusName), "field": JSONValue(field), "message": JSONValue(message),
            "code": JSONValue(code ?? 0), "http_status": JSONValue(httpStatus ?? 0),
            "endpoint": JSONValue(endpoint ?? ""), "retriable": JSONValue(isRetriable ? 1 : 0),
        ]
    }

    var statusName: String { Self.names[kind] ?? "status \(kind.rawValue)" }

    private static let names: [Kind: String] = [
        .argument: "BIRD_ERR_ARGUMENT", .closed: "BIRD_ERR_CLOSED", .option: "BIRD_ERR_OPTION",
        .value: "BIRD_ERR_VALUE", .state: "BIRD_ERR_STATE", .name: "BIRD_ERR_NAME",
        .notSubscribed: "BIRD_ERR_NOT_SUBSCRIBED", .unsubscribed: "BIRD_ERR_UNSUBSCRIBED",
        .payload: "BIRD_ERR_PAYLOAD", .size: "BIRD_ERR_SIZE", .full: "BIRD_ERR_FULL",
        .insideHandler: "BIRD_ERR_CALLBACK", .timeout: "BIRD_ERR_TIMEOUT", .unsupported: "BIRD_ERR_UNSUPPORTED",
        .system: "BIRD_ERR_SYSTEM", .denied: "BIRD_ERR_DENIED", .authorization: "BIRD_ERR_AUTH",
        .refused: "BIRD_ERR_REFUSED", .lost: "BIRD_ERR_LOST", .resolve: "BIRD_ERR_RESOLVE",
        .connect: "BIRD_ERR_CONNECT", .tls: "BIRD_ERR_TLS", .proxy: "BIRD_ERR_PROXY",
        .upgrade: "BIRD_ERR_UPGRADE", .protocolViolation: "BIRD_ERR_PROTOCOL", .server: "BIRD_ERR_SERVER",
    ]
}
