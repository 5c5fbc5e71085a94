import CBirdRealtimeABI

/// What went wrong, as every face reports it: the value behind `bird_error`.
package struct Fault: Error, Equatable, Sendable {
    package enum Area: Int32, Sendable {
        case argument = 1
        case connection = 2
        case channel = 3
        case authorization = 4
        case signin = 5
        case system = 6
    }

    /// One of the `BIRD_ERR_*` values.
    package var status: Int32
    package var area: Area
    /// The option, argument or step concerned, or "".
    package var field: String
    /// One line; parts of it may come from outside (`OutsideText.line`).
    package var message: String { didSet { message = OutsideText.line(message) } }
    /// WebSocket close code or code of a `bird:error` frame; 0 when there is none.
    package var code: Int32 = 0
    package var httpStatus: Int32 = 0
    package var curlCode: Int32 = 0
    /// URL of the authorizer asked, or "".
    package var endpoint: String = ""
    /// The channel concerned, or "".
    package var channel: String = ""
    package var isRetriable: Bool = false

    package init(
        _ status: Int32, _ area: Area, field: String = "", _ message: String, code: Int32 = 0, httpStatus: Int32 = 0,
        curlCode: Int32 = 0, endpoint: String = "", isRetriable: Bool = false
    ) {
        self.status = status
        self.area = area
        self.field = field
        self.message = OutsideText.line(message)
        self.code = code
        self.httpStatus = httpStatus
        self.curlCode = curlCode
        self.endpoint = endpoint
        self.isRetriable = isRetriable
    }
}
