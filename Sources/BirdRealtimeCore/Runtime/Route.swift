import CBirdRealtimeABI
import CCurl

/// The way to a server, the same for the stream and for the POSTs to an authorizer: proxy, addresses, trust, and what went wrong on it.
struct Route {
    let host: String
    let port: UInt16
    let options: ClientOptions
    let proxy: ProxyChoice

    init(host: String, port: UInt16, isSecure: Bool, options: ClientOptions) {
        self.host = host
        self.port = port
        self.options = options
        proxy = ProxyChoice(options: options, host: host, isSecure: isSecure)
    }

    func apply(to transfer: CurlTransfer, resolved: [String]) {
        proxy.apply(to: transfer)
        TrustSettings.apply(options, to: transfer)
        if !resolved.isEmpty { transfer.set(CURLOPT_RESOLVE, list: resolved) }
    }

    /// How far a transfer has come, for one who waited in vain. A SOCKS proxy does not say when it is through.
    func step(of transfer: CurlTransfer) -> String {
        switch proxy {
        case .direct: transfer.hasSocketConnected ? "tls" : "connect"
        case .proxy: transfer.proxyStatus == 200 ? "tls" : "proxy"
        }
    }

    /// Turns a failed transfer into what the program is told: `what` could not be had.
    func fault(_ code: CURLcode, of transfer: CurlTransfer, _ what: String) -> Fault {
        if let fault = System.withoutFDs { return fault }
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
                proxy.isProxied && transfer.proxyStatus != 200
                ? (BIRD_ERR_PROXY, "proxy") : (BIRD_ERR_CONNECT, "connect")
        default: (status, step) = (BIRD_ERR_CONNECT, "connect")
        }
        return Fault(
            status, .connection, field: step, "\(what): \(transfer.words(for: code)).",
            httpStatus: transfer.proxyStatus, curlCode: Int32(code.rawValue), isRetriable: true)
    }
}
