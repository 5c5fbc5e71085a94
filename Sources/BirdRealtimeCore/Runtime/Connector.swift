import CBirdRealtimeABI
import CCurl
import Glibc

/// Makes connected streams: with TLS and proxies by libcurl, plaintext by itself. Reactor thread only.
final class Connector {
    /// libcurl searches linearly through the handles of a multi at each call.
    private static let handlesPerMultiMax = 64

    private unowned let reactor: Reactor
    fileprivate let multis: CurlMultis

    init(reactor: Reactor) {
        self.reactor = reactor
        multis = CurlMultis(reactor: reactor, transfersMax: Self.handlesPerMultiMax)
    }

    func shutDown() { multis.shutDown() }

    // In a forked child; see `CurlMulti`.
    func disown() { multis.disown() }
    func closeInherited() { multis.closeInherited() }

    /// Starts an attempt. `upgrade` are the first bytes to send; `done` comes once, unless the attempt is cancelled.
    func connect(
        _ address: Edge, _ route: Route, timeoutMs: Int64, upgrade: [UInt8],
        _ done: @escaping (Result<(stream: Stream, sent: Int), Fault>) -> Void
    ) -> ConnectAttempt {
        let attempt = ConnectAttempt(
            address: address, route: route, timeoutMs: timeoutMs, upgrade: upgrade, connector: self, done: done)
        attempt.resolve(on: reactor)
        return attempt
    }
}

/// From a host name to a stream on which the upgrade request has been sent.
final class ConnectAttempt {
    private let address: Edge
    private let route: Route
    private let timeoutMs: Int64
    private let upgrade: [UInt8]
    private let connector: Connector
    private var done: ((Result<(stream: Stream, sent: Int), Fault>) -> Void)?
    private var lookUp: NameLookUp?
    private var resolved: [ResolvedName] = []
    private var transfer: ConnectTransfer?
    private var plain: PlainConnect?

    fileprivate init(
        address: Edge, route: Route, timeoutMs: Int64, upgrade: [UInt8], connector: Connector,
        done: @escaping (Result<(stream: Stream, sent: Int), Fault>) -> Void
    ) {
        self.address = address
        self.route = route
        self.timeoutMs = timeoutMs
        self.upgrade = upgrade
        self.connector = connector
        self.done = done
    }

    /// What the attempt is waiting for.
    var step: String { transfer.map(route.step(of:)) ?? (plain == nil ? "resolve" : "connect") }

    func cancel() {
        done = nil
        lookUp?.abandon()
        lookUp = nil
        transfer?.cleanUp()
        transfer = nil
        plain?.cancel()
        plain = nil
    }

    // In a forked child.
    func disown() {
        done = nil
        transfer?.disown()
        plain?.disown()
    }

    /// What libcurl has is closed elsewhere.
    func closeInherited() { plain?.closeInherited() }

    private func finish(_ result: Result<(stream: Stream, sent: Int), Fault>) {
        let done = self.done
        self.done = nil
        done?(result)
    }

    fileprivate func resolve(on reactor: Reactor) {
        lookUp = route.resolve(on: reactor) { [weak self] answer in
            guard let self else { return }
            lookUp = nil
            switch answer {
            case .success(let names):
                resolved = names
                if address.usesTLS { startTransfer(on: reactor) } else { startPlain(on: reactor) }
            case .failure(let fault): finish(.failure(fault))
            }
        }
    }

    private func startPlain(on reactor: Reactor) {
        let addresses = route.addresses(resolved: resolved)
        plain = PlainConnect(to: addresses, on: reactor) { [weak self] result in
            guard let self else { return }
            plain = nil
            switch result.map(sendUpgrade) {
            case .success(.success(let (fd, sent))): finish(.success((Stream(plain: fd), sent)))
            case .success(.failure(let error)): finish(.failure(route.fault(ofFirstSend: error.message)))
            case .failure(let error): finish(.failure(route.fault(error, addressesTried: addresses.count)))
            }
        }
    }

    private func sendUpgrade(_ fd: Int32) -> Result<(Int32, Int), Errno> {
        let result = upgrade.withUnsafeBytes { bytes in
            System.retrying { send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
        }
        if case .failure = result { System.closeFD(fd) }
        return result.map { (fd, $0) }
    }

    private func startTransfer(on reactor: Reactor) {
        let trust: TrustState?
        do throws(Fault) {
            trust = try route.trustState()
        } catch {
            return finish(.failure(error))
        }
        guard let transfer = ConnectTransfer(), let multi = connector.multis.multi(for: trust) else {
            finish(
                .failure(
                    Fault(BIRD_ERR_SYSTEM, .system, field: "libcurl", "libcurl gave no handle.", isRetriable: true)))
            return
        }
        transfer.set(CURLOPT_URL, route.url)
        transfer.set(CURLOPT_CONNECT_ONLY, 1)
        transfer.set(CURLOPT_FRESH_CONNECT, 1)
        transfer.set(CURLOPT_TCP_NODELAY, 1)
        // The session has the deadline of the whole attempt; this one only keeps a transfer from lying about for ever.
        transfer.set(CURLOPT_CONNECTTIMEOUT_MS, Int(timeoutMs))
        route.apply(to: transfer, resolved: resolved, sessions: trust.flatMap(reactor.tlsSessions.sessions))
        transfer.onFinished = { [weak self] code in self?.connected(code) }
        self.transfer = transfer
        if !multi.add(transfer) {
            finish(
                .failure(
                    Fault(BIRD_ERR_SYSTEM, .system, field: "libcurl", "libcurl took no handle.", isRetriable: true)))
        }
    }

    private func connected(_ code: CURLcode) {
        guard let transfer else { return }
        self.transfer = nil
        guard code == CURLE_OK else {
            let fault = route.fault(code, of: transfer, resolved: resolved)
            transfer.cleanUp()
            finish(.failure(fault))
            return
        }
        // The first send attaches the connection to the handle; without it libcurl drops it as idle.
        var sent = 0
        let sendCode = upgrade.withUnsafeBytes { curl_easy_send(transfer.handle, $0.baseAddress, $0.count, &sent) }
        var fd: curl_socket_t = -1
        guard sendCode == CURLE_OK || sendCode == CURLE_AGAIN, birdcurl_get_socket(transfer.handle, &fd) == CURLE_OK,
            fd >= 0
        else {
            transfer.cleanUp()
            let words = String(cString: curl_easy_strerror(sendCode))
            finish(.failure(route.fault(ofFirstSend: words, curlCode: Int32(sendCode.rawValue))))
            return
        }
        finish(.success((Stream(tls: transfer, fd: fd, route: route), sent)))
    }
}

private final class ConnectTransfer: CurlTransfer {
    var onFinished: ((CURLcode) -> Void)?

    override func finished(_ code: CURLcode) { onFinished?(code) }
}
