/// What a server that cannot serve now asks for: the value of Retry-After (RFC 9110 section 10.2.3).
package enum RetryAfter: Equatable, Sendable {
    /// Nobody waits longer than this for a server's sake.
    package static let waitMsMax: Int64 = 60_000

    case seconds(Int64)
    /// A moment of the wall clock, in seconds since 1970, UTC.
    case moment(Int64)

    /// `value`: without blanks around it. nil: neither a number of seconds nor a date.
    package init?(_ value: some Sequence<UInt8>) {
        let bytes = Array(value)
        if !bytes.isEmpty, bytes.allSatisfy(ASCII.isDigit) {
            // A number too large for anything is a long wait, not none.
            self = .seconds(
                bytes.reduce(0) { min(Self.waitMsMax, $0 * 10 + Int64($1 - UInt8(ascii: "0"))) })
        } else if let moment = HTTPDate.secondsSince1970(bytes) {
            self = .moment(moment)
        } else {
            return nil
        }
    }

    /// From 0, for a moment that has passed, to `waitMsMax`. `wallClockMs`: now, in milliseconds since 1970.
    package func waitMs(wallClockMs: Int64) -> Int64 {
        switch self {
        case .seconds(let seconds): return min(seconds, Self.waitMsMax / 1_000) * 1_000
        case .moment(let seconds):
            let (wait, isTooLarge) = (seconds * 1_000).subtractingReportingOverflow(wallClockMs)
            return isTooLarge ? 0 : min(max(wait, 0), Self.waitMsMax)
        }
    }
}
