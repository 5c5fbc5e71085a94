import CBirdRealtimeABI
import CCurl
import Glibc

/// libcurl's process-wide side.
enum CurlGlobal {
    // Guarded by the lock of `Shared`.
    nonisolated(unsafe) private static var hasStarted = false

    /// Once, before the first connection. The exit handler comes after curl_global_init, so that it runs before the TLS library frees its
    /// state: a thread inside TLS at that moment would crash the process.
    static func start() throws(Fault) {
        guard !hasStarted else { return }
        guard curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK else {
            throw Fault(BIRD_ERR_SYSTEM, .system, field: "libcurl", "libcurl could not be initialised.")
        }
        atexit { Shared.holdForExit() }
        hasStarted = true
    }

    /// Turns a failed transfer into what the program is told.
    static func fault(_ code: CURLcode, detail: String, to what: String, isProxied: Bool, httpConnectStatus: Int32)
        -> Fault
    {
        let status: Int32
        let step: String
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST: (status, step) = (BIRD_ERR_RESOLVE, "resolve")
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: (status, step) = (BIRD_ERR_PROXY, "proxy")
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE,
            CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_ENGINE_NOTFOUND, CURLE_USE_SSL_FAILED:
            (status, step) = (BIRD_ERR_TLS, "tls")
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING:
            (status, step) =
                isProxied && httpConnectStatus != 200 ? (BIRD_ERR_PROXY, "proxy") : (BIRD_ERR_CONNECT, "connect")
        default: (status, step) = (BIRD_ERR_CONNECT, "connect")
        }
        let text = detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
        return Fault(
            status, .connection, field: step, "\(what): \(text).", httpStatus: httpConnectStatus,
            curlCode: Int32(code.rawValue), isRetriable: true)
    }
}
