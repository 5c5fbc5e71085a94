/// What an authorizer is asked with.
struct HTTPBody: Equatable {
    /// The value of content-type.
    var type: String
    var bytes: [UInt8]
}

/// What an authorizer's HTTP answer comes to.
struct HTTPAnswer {
    static let bodyBytesMax = 262_144

    var status: Int32
    var body: [UInt8]
    /// The body was larger than `bodyBytesMax` and is not whole.
    var isTooLarge = false
    /// Retry-After in milliseconds.
    var retryAfterMs: Int64?
    var location: String?
    var contentEncoding: String?
}
