import BirdRealtimeCore
import Foundation

/// Options of the core, by the keys of its table; it judges the values.
struct Settings {
    private enum Value {
        case text(String)
        case number(Int64)
    }

    private var values: [(key: String, value: Value)] = []

    /// nil, here and below, leaves the option as it is.
    mutating func add(_ key: String, _ text: String?) {
        if let text { values.append((key, .text(text))) }
    }

    mutating func add(_ key: String, _ flag: Bool?) {
        if let flag { values.append((key, .number(flag ? 1 : 0))) }
    }

    mutating func add(_ key: String, _ number: Int?) {
        if let number { values.append((key, .number(Int64(number)))) }
    }

    mutating func add(_ key: String, seconds: TimeInterval?) {
        if let seconds { values.append((key, .number(milliseconds(seconds)))) }
    }

    func apply(to client: Client) throws(Fault) {
        try client.change(values.map(\.key)) { (options) throws(Fault) in try apply(to: &options) }
    }

    func apply(to options: inout ClientOptions) throws(Fault) {
        for (key, value) in values {
            switch value {
            case .text(let text): try options.set(key, text)
            case .number(let number): try options.set(key, number)
            }
        }
    }
}

/// Seconds as the core takes times; what is no time at all stays out of every range.
func milliseconds(_ seconds: TimeInterval) -> Int64 {
    Int64(exactly: (seconds * 1_000).rounded()) ?? (seconds > 0 ? .max : -1)
}
