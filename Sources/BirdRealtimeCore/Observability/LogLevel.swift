/// How much an entry matters, or how much a sink wants; raw values are `BIRD_LOG_*`.
package enum LogLevel: Int32, Sendable, CaseIterable, Comparable {
    case off = 0
    case error = 1
    case warn = 2
    case info = 3
    case verbose = 4

    package init?(name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }

    package var name: String { "\(self)" }

    package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// What an entry is about; raw values are `BIRD_LOG_AREA_*`, one bit each.
package enum LogArea: Int32, Sendable, CaseIterable {
    /// Attempts, states, plans, liveness.
    case connection = 1
    case channel = 2
    case authorization = 4
    case signin = 8
    /// The way of records to the program.
    case delivery = 16
    /// What the machine's network does.
    case network = 32
    /// Each message, without its contents.
    case wire = 64
    /// Forks, the end of the process, the log itself.
    case process = 128

    package var name: String { "\(self)" }
}

/// A mask of areas.
package struct LogAreas: Equatable, Sendable {
    package private(set) var bits: Int32

    package static let all = LogAreas(bits: LogArea.allCases.reduce(0) { $0 | $1.rawValue })

    private init(bits: Int32) {
        self.bits = bits
    }

    /// "all", or names with commas between them; nil for anything else.
    package init?(names: String) {
        guard names != "all" else {
            self = .all
            return
        }
        bits = 0
        for name in names.utf8.split(separator: UInt8(ascii: ",")) {
            let trimmed = name.drop { $0 == 0x20 }
            guard let area = LogArea.allCases.first(where: { $0.name.utf8.elementsEqual(trimmed) }) else { return nil }
            bits |= area.rawValue
        }
        guard bits != 0 else { return nil }
    }

    package var names: String {
        self == .all
            ? "all" : LogArea.allCases.filter { bits & $0.rawValue != 0 }.map(\.name).joined(separator: ",")
    }
}
