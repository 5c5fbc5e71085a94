import BirdRealtimeCore
import Synchronization

/// Text that becomes a JSON value when somebody looks at it.
final class JSONText: Sendable {
    private let source: [UInt8]
    /// True: JSON by construction. False: to be decided.
    private let isJSON: Bool
    private let parsed = Mutex<JSONNode?>(nil)

    init(json: [UInt8]) {
        source = json
        isJSON = true
    }

    /// The payload of an event. One that is not JSON is the text of a string.
    init(payload: [UInt8]) {
        source = payload
        isJSON = false
    }

    /// nil only for a value of the program's own that is nested too deep to be sent.
    var node: JSONNode? {
        parsed.withLock { parsed in
            if let parsed { return parsed }
            parsed = JSONDocument.parse(source)
            if parsed == nil, !isJSON {
                var quoted: [UInt8] = []
                source.withUnsafeBytes { JSONString.appendQuoted($0, to: &quoted) }
                parsed = JSONDocument.parse(quoted)
            }
            return parsed
        }
    }

    /// The value as JSON.
    var bytes: [UInt8] { isJSON ? source : node?.raw ?? [] }
}
