import BirdRealtimeCore
import CBirdRealtimeABI

/// Names one bound handler, to unbind it.
public struct BindingToken: Sendable, Hashable {
    /// 0: a handler that is bound to nothing.
    let number: UInt64

    static let none = BindingToken(number: 0)
}

typealias RecordBody = @Sendable (bird_record) -> Void

/// A closure as the core's handler and its user data.
final class Handler: Sendable {
    private let body: RecordBody

    private init(_ body: @escaping RecordBody) {
        self.body = body
    }

    /// Owned by the binding, whose destructor releases it.
    static func userData(_ body: @escaping RecordBody) -> UnsafeMutableRawPointer {
        Unmanaged.passRetained(Handler(body)).toOpaque()
    }

    static let call: RecordHandler = { record, userData in
        guard let record, let userData else { return }
        // The binding keeps the handler until no call of it can be running.
        Unmanaged<Handler>.fromOpaque(userData)._withUnsafeGuaranteedRef { $0.body(record.pointee) }
    }

    static let release: Destructor = { userData in
        guard let userData else { return }
        Unmanaged<Handler>.fromOpaque(userData).release()
    }
}

extension Client {
    /// A registration that the core refuses (a name that is none, a channel or a client that has ended) is told by `onError`.
    func token(_ register: (Client) throws(Fault) -> UInt64) -> BindingToken {
        do throws(Fault) {
            return BindingToken(number: try register(self))
        } catch {
            report(error)
            return .none
        }
    }

    func observe(_ kind: Int32, body: @escaping RecordBody) throws(Fault) -> UInt64 {
        try observe(1 << UInt64(kind), Handler.call, userData: Handler.userData(body), destructor: Handler.release)
    }

    /// `event` nil: every application event, on every channel.
    func bind(_ event: String?, body: @escaping RecordBody) throws(Fault) -> UInt64 {
        try withBytes(of: event) { (bytes) throws(Fault) in
            try bind(bytes, Handler.call, userData: Handler.userData(body), destructor: Handler.release)
        }
    }
}

extension Client {
    /// nil: the handlers of every application event.
    func unbind(_ event: String?, of channel: BirdRealtimeCore.Channel? = nil) throws(Fault) {
        try withBytes(of: event) { (bytes) throws(Fault) in try unbind(bytes, of: channel) }
    }
}

extension BirdRealtimeCore.Channel {
    /// `event` nil: every application event.
    func bind(_ event: String?, body: @escaping RecordBody) throws(Fault) -> UInt64 {
        try withBytes(of: event) { (bytes) throws(Fault) in
            try bind(bytes, Handler.call, userData: Handler.userData(body), destructor: Handler.release)
        }
    }
}

private func withBytes<Result>(
    of text: String?, _ body: (UnsafeRawBufferPointer?) throws(Fault) -> Result
) throws(Fault) -> Result {
    guard let text else { return try body(nil) }
    return try Array(text.utf8).withUnsafeBufferPointer { (bytes) throws(Fault) in
        try body(UnsafeRawBufferPointer(bytes))
    }
}
