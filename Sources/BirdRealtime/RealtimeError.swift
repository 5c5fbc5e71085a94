import BirdRealtimeCore
import CBirdRealtimeABI

/// What went wrong.
public struct RealtimeError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Of what sort an error is. Tolerate values that this version does not name.
    public struct Kind: RawRepresentable, Sendable, Hashable {
        /// The status of the C interface, one of `BIRD_ERR_*`.
        public let rawValue: Int32

        public init(rawValue: Int32) {
            self.rawValue = rawValue
        }

        /// An argument is malformed or out of range.
        public static let argument = Kind(rawValue: BIRD_ERR_ARGUMENT)
        /// The client was closed.
        public static let closed = Kind(rawValue: BIRD_ERR_CLOSED)
        /// There is no such option.
        public static let option = Kind(rawValue: BIRD_ERR_OPTION)
        /// The option does not accept this value.
        public static let value = Kind(rawValue: BIRD_ERR_VALUE)
        /// Not possible in the present state of the connection.
        public static let state = Kind(rawValue: BIRD_ERR_STATE)
        /// A name of a channel or an event that the protocol does not allow.
        public static let name = Kind(rawValue: BIRD_ERR_NAME)
        /// The channel is not subscribed now.
        public static let notSubscribed = Kind(rawValue: BIRD_ERR_NOT_SUBSCRIBED)
        /// The channel was unsubscribed; subscribe again.
        public static let unsubscribed = Kind(rawValue: BIRD_ERR_UNSUBSCRIBED)
        /// The payload is not JSON.
        public static let payload = Kind(rawValue: BIRD_ERR_PAYLOAD)
        /// Larger than a limit.
        public static let size = Kind(rawValue: BIRD_ERR_SIZE)
        /// A bounded queue is full; try again later.
        public static let full = Kind(rawValue: BIRD_ERR_FULL)
        /// A waiting call was made inside a handler.
        public static let insideHandler = Kind(rawValue: BIRD_ERR_CALLBACK)
        /// The time has passed.
        public static let timeout = Kind(rawValue: BIRD_ERR_TIMEOUT)
        /// The client belongs to the parent process.
        public static let forked = Kind(rawValue: BIRD_ERR_FORKED)
        /// Not available on this kind of channel.
        public static let unsupported = Kind(rawValue: BIRD_ERR_UNSUPPORTED)
        /// The operating system refused a resource.
        public static let system = Kind(rawValue: BIRD_ERR_SYSTEM)
        /// The authorizer or the edge said no.
        public static let denied = Kind(rawValue: BIRD_ERR_DENIED)
        /// The authorizer could not be reached or gave no usable answer.
        public static let authorization = Kind(rawValue: BIRD_ERR_AUTH)
        /// The edge refused the connection for good (close codes 4000 to 4099).
        public static let refused = Kind(rawValue: BIRD_ERR_REFUSED)
        /// The connection was lost.
        public static let lost = Kind(rawValue: BIRD_ERR_LOST)
        /// The host name could not be resolved.
        public static let resolve = Kind(rawValue: BIRD_ERR_RESOLVE)
        /// No connection could be made.
        public static let connect = Kind(rawValue: BIRD_ERR_CONNECT)
        /// No verified TLS session could be made.
        public static let tls = Kind(rawValue: BIRD_ERR_TLS)
        /// The proxy could not be reached, or refused or broke the connection.
        public static let proxy = Kind(rawValue: BIRD_ERR_PROXY)
        /// The server did not accept the WebSocket upgrade.
        public static let upgrade = Kind(rawValue: BIRD_ERR_UPGRADE)
        /// The server broke a protocol.
        public static let protocolViolation = Kind(rawValue: BIRD_ERR_PROTOCOL)
        /// An event of an encrypted channel could not be opened.
        public static let decryption = Kind(rawValue: BIRD_ERR_DECRYPTION)
        /// As many attempts as `reconnectAttemptsMax` allows have failed; `connect()` begins anew.
        public static let gaveUp = Kind(rawValue: BIRD_ERR_GAVE_UP)
        /// The edge accepted a signin without saying which member signed in.
        public static let identity = Kind(rawValue: BIRD_ERR_IDENTITY)
        /// A message of the edge was malformed and is lost.
        public static let malformed = Kind(rawValue: BIRD_ERR_MALFORMED)
        /// The edge reported an error.
        public static let server = Kind(rawValue: BIRD_ERR_SERVER)
    }

    public let kind: Kind
    /// A sentence for a person.
    public let message: String
    /// The code of the wire: of a WebSocket close or of an error of the edge. nil if there is none; never an HTTP status.
    public let code: Int?
    /// The option or argument concerned ("ws_host", "event"), or "".
    public let field: String
    /// The HTTP status of the upgrade, the proxy or the authorizer; nil if there is none.
    public let httpStatus: Int?
    /// The URL of the authorizer that was asked, nil if none was.
    public let endpoint: String?
    /// The name of the channel that failed or that the edge named in its error, nil if there is none.
    public let channel: String?
    /// True if the client tries again by itself, or if the same call may succeed later.
    public let isRetriable: Bool

    public var description: String { message }

    /// An error of your own, for authorizers to throw: `isRetriable` false denies for good, true is asked again.
    public init(_ message: String, isRetriable: Bool = false) {
        self.init(
            Fault(isRetriable ? BIRD_ERR_AUTH : BIRD_ERR_DENIED, .authorization, message, isRetriable: isRetriable))
    }

    init(_ fault: Fault) {
        kind = Kind(rawValue: fault.status)
        message = fault.message
        code = fault.code == 0 ? nil : Int(fault.code)
        field = fault.field
        httpStatus = fault.httpStatus == 0 ? nil : Int(fault.httpStatus)
        endpoint = fault.endpoint.isEmpty ? nil : fault.endpoint
        channel = fault.channel.isEmpty ? nil : fault.channel
        isRetriable = fault.isRetriable
    }

    /// Why a connection came into its present state.
    init(_ change: bird_state_change) {
        self.init(
            Fault(change.reason, .connection, String(cString: change.reason_text), code: change.close_code))
    }

    init(_ error: OpaquePointer) {
        self.init(ErrorObject.at(error).fault)
    }
}
