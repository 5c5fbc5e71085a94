import BirdRealtimeCore
import CBirdRealtimeABI
public import Foundation

/// Where the connection stands.
public enum ConnectionState: String, Sendable, CaseIterable {
    /// Nothing has been opened yet.
    case initialized
    /// A socket is being opened, or is open and waits for the handshake.
    case connecting
    /// The handshake succeeded: there is a connection id.
    case connected
    /// The connection was lost, a reconnect is planned.
    case unavailable
    /// `disconnect()` was called, or the client gave up; nothing is planned.
    case disconnected
    /// The edge refused the connection, or the options cannot be used; nothing is planned.
    case failed

    init(_ state: BirdRealtimeCore.ConnectionState) {
        self =
            switch state {
            case .initialized: .initialized
            case .connecting: .connecting
            case .connected: .connected
            case .unavailable: .unavailable
            case .disconnected: .disconnected
            case .failed: .failed
            }
    }

    init(record: Int32) {
        self.init(BirdRealtimeCore.ConnectionState(rawValue: record) ?? .failed)
    }
}

/// A change of the connection's state, or the announcement of an attempt, with its reasons.
public struct ConnectionChange: Sendable {
    public let previous: ConnectionState
    public let current: ConnectionState
    /// A sentence for a person: why.
    public let reason: String
    /// The WebSocket close code, nil if there was none.
    public let closeCode: Int?
    /// Attempts since the last handshake.
    public let attempt: Int
    /// Seconds until the next attempt, nil if none is planned.
    public let delay: TimeInterval?
    /// How the attempt was planned: "jitter", "fixed" or "staged"; nil if none is planned.
    public let policy: String?
    /// nil unless connected.
    public let connectionId: String?

    init(_ change: bird_state_change) {
        previous = ConnectionState(record: change.previous)
        current = ConnectionState(record: change.current)
        reason = String(cString: change.reason_text)
        closeCode = change.close_code == 0 ? nil : Int(change.close_code)
        attempt = Int(change.attempt)
        delay = change.delay_ms < 0 ? nil : TimeInterval(change.delay_ms) / 1_000
        let policy = String(cString: change.policy)
        self.policy = policy.isEmpty ? nil : policy
        let id = String(cString: change.connection_id)
        connectionId = id.isEmpty ? nil : id
    }
}
