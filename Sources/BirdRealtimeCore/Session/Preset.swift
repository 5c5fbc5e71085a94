/// Settings that go together (option preset): how a client reconnects and keeps its connection alive.
package enum Preset: String, CaseIterable, Sendable {
    case `default`
    /// Bird protocol 24.1: a ping after 20 s of silence, a dead link declared 40 s after its last byte, attempts in stages.
    case staged

    func apply(to session: inout SessionConfiguration) {
        let initial = SessionConfiguration()
        session.reconnectStages = initial.reconnectStages
        switch self {
        case .default:
            session.reconnect = initial.reconnect
            session.activityTimeoutMs = initial.activityTimeoutMs
            session.pongTimeoutMs = initial.pongTimeoutMs
            session.pongMissesMax = initial.pongMissesMax
        case .staged:
            session.reconnect = .staged
            session.activityTimeoutMs = 20_000
            session.pongTimeoutMs = 10_000
            session.pongMissesMax = 2
        }
    }
}
