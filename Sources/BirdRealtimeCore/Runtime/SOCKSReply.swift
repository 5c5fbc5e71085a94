import CCurl

/// What a SOCKS proxy did instead of connecting, by libcurl's CURLINFO_PROXY_ERROR (RFC 1928 section 6, RFC 1929).
enum SOCKSReply {
    /// nil: libcurl says it better.
    static func words(_ code: Int, hasCredentials: Bool) -> String? {
        switch CURLproxycode(UInt32(clamping: code)) {
        case CURLPX_REPLY_GENERAL_SERVER_FAILURE: "reports a failure of its own"
        case CURLPX_REPLY_NOT_ALLOWED: "does not allow this connection"
        case CURLPX_REPLY_NETWORK_UNREACHABLE: "cannot reach the server's network"
        case CURLPX_REPLY_HOST_UNREACHABLE: "cannot reach the server, or does not know its name"
        case CURLPX_REPLY_CONNECTION_REFUSED: "was refused by the server"
        case CURLPX_REPLY_TTL_EXPIRED: "did not reach the server in time (TTL expired)"
        case CURLPX_REPLY_COMMAND_NOT_SUPPORTED: "does not support connections to servers"
        case CURLPX_REPLY_ADDRESS_TYPE_NOT_SUPPORTED: "does not support this kind of address"
        case CURLPX_REPLY_UNASSIGNED: "gave a reply that SOCKS does not define"
        case CURLPX_USER_REJECTED: "does not accept the user or the password"
        case CURLPX_NO_AUTH:
            hasCredentials
                ? "accepts neither a user and password nor a connection without" : "wants a user and a password"
        case CURLPX_BAD_VERSION: "does not speak SOCKS5"
        case CURLPX_CLOSED: "ended the connection"
        default: nil
        }
    }
}
