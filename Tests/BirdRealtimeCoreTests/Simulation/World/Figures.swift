@testable import BirdRealtimeCore

/// What has happened in one or many worlds: a hole in what is tried is a zero here.
struct Figures {
    static let states: [ConnectionState] = [
        .initialized, .connecting, .connected, .unavailable, .disconnected, .failed,
    ]

    var worlds = 0
    var sessions = 0
    var steps = 0
    var virtualMs: Int64 = 0
    var connections = 0
    var framesToEdge = 0
    var framesToClients = 0
    var events = 0
    var operations = 0
    /// Successes that were those of an earlier subscription of the same name, which nobody could know.
    var mistakenConfirmations = 0
    var closeCodes: Set<UInt16> = []
    private var calls: [String: Int] = [:]
    /// By fault, and by the state of the session that it struck.
    private var faults = [[Int]](
        repeating: [Int](repeating: 0, count: states.count), count: FaultKind.allCases.count)

    mutating func count(_ kind: FaultKind, in state: ConnectionState) {
        faults[kind.rawValue][Int(state.rawValue)] += 1
    }

    mutating func count(call: String) {
        calls[call, default: 0] += 1
    }

    func times(_ kind: FaultKind) -> Int { faults[kind.rawValue].reduce(0, +) }

    /// Faults that have not happened.
    var missing: [FaultKind] { FaultKind.allCases.filter { times($0) == 0 } }

    mutating func add(_ other: Figures) {
        worlds += other.worlds
        sessions += other.sessions
        steps += other.steps
        virtualMs += other.virtualMs
        connections += other.connections
        framesToEdge += other.framesToEdge
        framesToClients += other.framesToClients
        events += other.events
        operations += other.operations
        mistakenConfirmations += other.mistakenConfirmations
        closeCodes.formUnion(other.closeCodes)
        calls.merge(other.calls, uniquingKeysWith: +)
        for kind in faults.indices {
            for state in faults[kind].indices { faults[kind][state] += other.faults[kind][state] }
        }
    }

    /// Faults by the state of the session they struck, and the calls of the applications.
    var table: String {
        var lines = [Self.row("fault", Self.states.map { "\($0)" } + ["in all"])]
        for kind in FaultKind.allCases {
            lines.append(Self.row("\(kind)", (faults[kind.rawValue] + [times(kind)]).map { $0 == 0 ? "-" : "\($0)" }))
        }
        let calls = calls.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        return lines.joined(separator: "\n") + "\ncalls: \(calls)\nclose codes: \(closeCodes.count) of 4000, "
            + "successes taken for those of a later subscription: \(mistakenConfirmations)"
    }

    private static func row(_ title: String, _ cells: [String]) -> String {
        padded(title, 22, onRight: true) + cells.map { padded($0, 13, onRight: false) }.joined()
    }

    private static func padded(_ text: String, _ width: Int, onRight: Bool) -> String {
        let blanks = String(repeating: " ", count: max(0, width - text.utf8.count))
        return onRight ? text + blanks : blanks + text
    }

    var closingLine: String {
        let struck = faults.reduce(0) { $0 + $1.reduce(0, +) }
        return "\(worlds) worlds, \(sessions) sessions, \(steps) steps, \(virtualMs / 1_000) virtual seconds, "
            + "\(struck) faults of \(FaultKind.allCases.count - missing.count) kinds out of \(FaultKind.allCases.count), "
            + "\(connections) connections, \(framesToEdge) frames to the edge, \(framesToClients) to clients, "
            + "\(events) events, \(operations) operations ended"
    }
}
