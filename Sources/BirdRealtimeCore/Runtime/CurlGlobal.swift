import CBirdRealtimeABI
import CCurl
import Glibc

/// libcurl's process-wide side.
enum CurlGlobal {
    // Guarded by the lock of `Shared`.
    nonisolated(unsafe) private static var hasStarted = false

    /// Or one of its descendants, which number verification results alike.
    static let hasOpenSSL = ["OpenSSL", "LibreSSL", "BoringSSL", "quictls"].contains {
        String(cString: birdcurl_tls_library()).mentions($0)
    }

    /// What the configuration of OpenSSL demands (MinProtocol in openssl.cnf), but never less than TLS 1.2: libcurl would put its own default in
    /// the place of the system's.
    static let policyMinimum: TLSVersion = birdcurl_policy_tls_min() > 0x0303 ? .v1_3 : .v1_2

    /// Once, before the first connection that takes it: the TLS library takes longer to start than all the rest, and a megabyte. The exit
    /// handler comes once more after curl_global_init, so that it runs before the TLS library frees its state: a thread inside TLS at that
    /// moment would crash the process.
    static func start() throws(Fault) {
        guard !hasStarted else { return }
        let code = System.holdingStandardFDs { curl_global_init(Int(CURL_GLOBAL_DEFAULT)) }
        guard code == CURLE_OK else {
            throw Fault(BIRD_ERR_SYSTEM, .system, field: "libcurl", "libcurl could not be initialised.")
        }
        atexit { Shared.holdForExit() }
        hasStarted = true
    }
}
