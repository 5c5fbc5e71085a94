import CBirdRealtimeABI
import CCurl

/// The way to a server, the same for the stream and for the POSTs to an authorizer: proxy, addresses, trust, and what went wrong on it.
final class Route: Sendable {
    struct Name: Equatable, Sendable {
        let host: String
        let port: UInt16
        let isProxy: Bool
    }

    private let host: String
    private let port: UInt16
    /// Takes the place of the host name's addresses.
    private let address: String?
    private let isSecure: Bool
    /// Whom the server's certificate must be for, and the option that says so.
    private let verified: (name: String, option: String)
    /// Of an authorizer: whom messages name.
    private let authorizer: String?
    private let trust: TrustSettings
    private let proxy: Proxy?

    init(
        host: String, port: UInt16, isSecure: Bool, address: String? = nil, verified: (name: String, option: String),
        authorizer: String? = nil, trust: TrustSettings, proxy: ProxyChoice?
    ) throws(Fault) {
        self.host = host
        self.port = port
        self.address = address
        self.isSecure = isSecure
        self.verified = verified
        self.authorizer = authorizer
        self.trust = trust
        // Plaintext is for the own machine, and a name alone does not prove that.
        guard isSecure || address.map({ IPAddress($0)?.isLoopback == true }) ?? true else {
            throw Fault(
                BIRD_ERR_VALUE, .argument, field: "address",
                "Option address must be a loopback address for plaintext (allow_insecure), as 127.0.0.1 or ::1.")
        }
        self.proxy = isSecure ? try (proxy ?? ProxyChoice()).proxy(to: host, port: port) : nil
    }

    /// What failed, for messages. The fault of an authorization names the URL itself.
    private var purpose: String { authorizer == nil ? "connection to \(place)" : "answer" }

    /// host:port
    private var place: String { "\(Self.bracketed(host)):\(port)" }

    /// For messages: where it leads, and through what.
    var name: String {
        place + (address.map { " at \($0)" } ?? "")
            + (proxy.map { " through the \($0.kind.rawValue) proxy \($0.name)" } ?? "")
    }

    var proxyName: String? { proxy.map { "\($0.kind.rawValue)://\($0.name)" } }

    // MARK: Names

    /// What is looked up here, so that libcurl never does: the name of whom it connects to, and behind a SOCKS proxy that wants addresses
    /// the server's.
    var names: [Name] {
        var names: [Name] = []
        if let proxy { names.append(Name(host: proxy.host, port: proxy.port, isProxy: true)) }
        if proxy == nil || proxy?.kind == .socks5, address == nil {
            names.append(Name(host: host, port: port, isProxy: false))
        }
        return names.filter { IPAddress($0.host) == nil }
    }

    /// The names that somebody has to be asked for.
    var unknownNames: [Name] { names.filter { !IPAddress.isLocalhost($0.host) } }

    private var knownNames: [ResolvedName] {
        names.filter { IPAddress.isLocalhost($0.host) }
            .map { ResolvedName(host: $0.host, port: $0.port, addresses: IPAddress.localhost) }
    }

    /// The answer comes at once when there is nothing to look up, else later on the reactor thread.
    func resolve(on reactor: Reactor, _ answer: @escaping (Result<[ResolvedName], Fault>) -> Void) -> NameLookUp? {
        let known = knownNames
        let names = unknownNames
        if names.isEmpty {
            answer(.success(known))
            return nil
        }
        return NameLookUp(names, on: reactor) { found in answer(found.map { known + $0 }) }
    }

    static func unresolvable(_ fault: Fault) -> Fault {
        var fault = fault
        fault.status = BIRD_ERR_PROXY
        fault.message = "The proxy \(fault.message)"
        return fault
    }

    /// For a socket of our own: what is connected to, in the order to try.
    func addresses(resolved: [ResolvedName]) -> [SocketAddress] {
        let texts = address.map { [$0] } ?? resolved.first { $0.host == host }?.addresses ?? [host]
        return texts.compactMap { IPAddress($0) }.filter { isSecure || $0.isLoopback }.map {
            SocketAddress($0, port: port)
        }
    }

    // MARK: The transfer

    /// For a transfer that only connects. The name in it is the one that libcurl sends as SNI and verifies.
    var url: String { "\(isSecure ? "https" : "http")://\(Self.bracketed(verified.name)):\(port)/" }

    private static func bracketed(_ host: String) -> String {
        host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
    }

    /// What counts for trust now; nil for plaintext. A fault names the file that cannot be used.
    func trustState() throws(Fault) -> TrustState? {
        guard isSecure else { return nil }
        do throws(TrustProblem) {
            return try trust.state()
        } catch {
            throw System.withoutFDs
                ?? Fault(
                    BIRD_ERR_TLS, .connection, field: error.field, "No \(purpose): \(error.text).", isRetriable: true)
        }
    }

    /// `sessions`: for the trust state that holds now.
    func apply(to transfer: CurlTransfer, resolved: [ResolvedName], sessions: TLSSessions?) {
        Proxy.apply(proxy, to: transfer)
        trust.apply(to: transfer)
        if isSecure { transfer.use(sessions) } else { transfer.note(birdcurl_allow_only_loopback(transfer.handle)) }
        if address != nil || verified.name != host {
            transfer.set(CURLOPT_CONNECT_TO, list: ["::\(Self.bracketed(address ?? host)):\(port)"])
        }
        if !resolved.isEmpty { transfer.set(CURLOPT_RESOLVE, list: resolved.map(\.entry)) }
    }

    /// How far a transfer has come, for one who waited in vain. A SOCKS proxy does not say when it is through.
    func step(of transfer: CurlTransfer) -> String {
        if transfer.hasBegunRequest, authorizer != nil { return "answer" }
        if proxy != nil { return transfer.proxyStatus == 200 ? "tls" : "proxy" }
        return transfer.hasSocketConnected ? "tls" : "connect"
    }

    // MARK: What went wrong

    /// Turns a failed transfer into what the program is told.
    func fault(_ code: CURLcode, of transfer: CurlTransfer, resolved: [ResolvedName]) -> Fault {
        if let fault = System.withoutFDs { return fault }
        if let fault = tlsFault(code, of: transfer) { return fault }
        let status: Int32
        let step: String
        var words = transfer.words(for: code)
        switch code {
        case CURLE_OPERATION_TIMEDOUT: (status, step) = (BIRD_ERR_TIMEOUT, self.step(of: transfer))
        default:
            if let proxy, !transfer.isThroughProxy {
                (status, step) = (BIRD_ERR_PROXY, "proxy")
                words = "the proxy \(proxy.name) \(deed(of: proxy, code, transfer) ?? "broke the connection: \(words)")"
            } else {
                (status, step) = (BIRD_ERR_CONNECT, "connect")
                if code == CURLE_COULDNT_CONNECT, let error = transfer.connectError { words = error.message }
            }
        }
        let connected = proxy?.host ?? host
        let count = resolved.first { $0.host == connected }?.addresses.count ?? 1
        if code == CURLE_COULDNT_CONNECT || step == "connect", count > 1 {
            words += " (the last of \(count) addresses tried)"
        }
        return Fault(
            status, .connection, field: step, "No \(purpose): \(words).",
            httpStatus: status == BIRD_ERR_PROXY ? transfer.proxyStatus : 0, curlCode: Int32(code.rawValue),
            isRetriable: true)
    }

    /// A server that has connected does not accept the upgrade. `words`: what it says of that.
    func fault(ofUpgrade fault: Fault, words: String?, wantsTLS: Bool) -> Fault {
        var fault = fault
        var reason = fault.message.prefix(1).lowercased() + fault.message.dropFirst()
        if reason.hasSuffix(".") { reason.removeLast() }
        if let words { reason += ": \(words)" }
        let hint = wantsTLS && !isSecure ? " The port may want TLS; allow_insecure sends plaintext." : ""
        fault.message = "No \(purpose): \(reason).\(hint)"
        return fault
    }

    /// The connection was there and has gone before the upgrade was sent.
    func fault(ofFirstSend words: String, curlCode: Int32 = 0) -> Fault {
        System.withoutFDs
            ?? Fault(
                BIRD_ERR_LOST, .connection, field: "connection",
                "No \(purpose): it broke before the upgrade was sent: \(words).", curlCode: curlCode, isRetriable: true)
    }

    /// Why a socket of our own has no connection.
    func fault(_ error: Errno, addressesTried count: Int) -> Fault {
        if error.isWithoutFDs { return System.noFD(error) }
        let which = count > 1 ? " (the last of \(count) addresses tried)" : ""
        return Fault(
            BIRD_ERR_CONNECT, .connection, field: "connect", "No \(purpose): \(error.message)\(which).",
            isRetriable: true)
    }

    /// nil: TLS was not the problem.
    func tlsFault(_ code: CURLcode, of transfer: CurlTransfer) -> Fault? {
        let words = transfer.words(for: code)
        guard let problem = TLSProblem(code, words: words, verifyResult: transfer.verifyResult) else { return nil }
        let text = problem.text(trust, name: verified.name, nameOption: verified.option)
        // Who answers may be the proxy.
        let way = proxy.map { " through the proxy \($0.name)" } ?? ""
        return Fault(
            BIRD_ERR_TLS, .connection, field: problem.field(trust), "No \(purpose)\(way): \(text) (libcurl: \(words))",
            curlCode: Int32(code.rawValue), isRetriable: true)
    }

    /// Of an HTTP proxy that refuses the request.
    private func wish(of proxy: Proxy, _ schemes: [String]) -> String {
        if !schemes.isEmpty, !schemes.contains("Basic") {
            return "offers only \(schemes.joined(separator: ", ")) authentication, and this library supports only Basic"
        }
        return proxy.hasCredentials ? "does not accept the user or the password" : "wants a user and a password"
    }

    private func deed(of proxy: Proxy, _ code: CURLcode, _ transfer: CurlTransfer) -> String? {
        switch (code, transfer.proxyStatus) {
        case (CURLE_PROXY, _): SOCKSReply.words(transfer.proxyError, hasCredentials: proxy.hasCredentials)
        // tinyproxy answers 401 to credentials that it does not accept.
        case (_, let status) where status == 407 || status == 401:
            wish(of: proxy, transfer.proxySchemes) + " (HTTP \(status))"
        case (_, let status) where (100...199).contains(status):
            "gave an interim answer (HTTP \(status)), which libcurl takes for the final one"
        case (_, let status) where status != 0: "refused to connect to \(place) (HTTP \(status))"
        case (CURLE_COULDNT_CONNECT, _): "could not be reached: \(transfer.words(for: code))"
        default: nil
        }
    }
}
