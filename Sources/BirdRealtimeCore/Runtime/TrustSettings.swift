import CCurl

/// Whom a TLS connection trusts, and as whom it speaks. Verification is always on.
enum TrustSettings {
    static func apply(_ options: ClientOptions, to transfer: CurlTransfer) {
        transfer.set(CURLOPT_SSL_VERIFYPEER, 1)
        transfer.set(CURLOPT_SSL_VERIFYHOST, 2)
        if let file = options.caFile { transfer.set(CURLOPT_CAINFO, file) }
        if let path = options.caPath { transfer.set(CURLOPT_CAPATH, path) }
        if let certificate = options.clientCertFile { transfer.set(CURLOPT_SSLCERT, certificate) }
        if let key = options.clientKeyFile { transfer.set(CURLOPT_SSLKEY, key) }
    }
}
