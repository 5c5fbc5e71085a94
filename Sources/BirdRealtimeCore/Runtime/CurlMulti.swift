import CCurl
import CLinux
import Glibc

/// A transfer in a multi handle.
class CurlTransfer {
    let easy: OpaquePointer
    fileprivate(set) weak var multi: CurlMulti?
    /// Room for libcurl's own words about a failure.
    private let errorText: UnsafeMutablePointer<CChar>
    private var lists: [UnsafeMutablePointer<curl_slist>] = []
    private var sessions: TLSSessions?
    /// libcurl has had no memory for something that was set: what would begin now would lack, say, the program's CA or a header.
    fileprivate private(set) var isIncomplete = false

    init?() {
        guard let easy = curl_easy_init() else { return nil }
        self.easy = OpaquePointer(easy)
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        _ = birdcurl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        _ = birdcurl_set_pointer(easy, CURLOPT_PRIVATE, Unmanaged.passUnretained(self).toOpaque())
        // Timeouts without SIGALRM, sends without SIGPIPE: signals belong to the host.
        set(CURLOPT_NOSIGNAL, 1)
        note(birdcurl_set_sockets(easy))
        // The default offers h2 by ALPN, over which no upgrade is possible.
        set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    }

    deinit {
        cleanUp()
        errorText.deallocate()
    }

    /// CURLAUTH_*, which are macros that Swift does not see.
    private static let authSchemes = [(1, "Basic"), (2, "Digest"), (4, "Negotiate"), (8, "NTLM"), (64, "Bearer")].map {
        (bit: $0.0, name: $0.1)
    }

    private var isCleanedUp = false

    /// Frees the handle and closes its connection.
    func cleanUp() {
        guard !isCleanedUp else { return }
        isCleanedUp = true
        multi?.remove(self)
        curl_easy_cleanup(handle)
        for list in lists { curl_slist_free_all(list) }
        lists = []
        sessions = nil
    }

    /// In a forked child: libcurl's side of it is the parent's and is left alone.
    func disown() {
        isCleanedUp = true
        sessions?.disown()
    }

    var handle: UnsafeMutableRawPointer { UnsafeMutableRawPointer(easy) }

    /// What went wrong, in libcurl's words.
    func words(for code: CURLcode) -> String {
        errorText.pointee == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: errorText)
    }

    /// What setting an option has come to. One that this libcurl does not know is done without.
    func note(_ code: CURLcode) { if code == CURLE_OUT_OF_MEMORY { isIncomplete = true } }

    func set(_ option: CURLoption, _ value: Int) { note(birdcurl_set_long(handle, option, value)) }
    func set(_ option: CURLoption, _ value: String?) { note(birdcurl_set_string(handle, option, value)) }
    func set(_ option: CURLoption, list texts: [String]) {
        var list: UnsafeMutablePointer<curl_slist>?
        for text in texts {
            if let longer = curl_slist_append(list, text) { list = longer } else { isIncomplete = true }
        }
        guard let list else { return }
        lists.append(list)
        note(birdcurl_set_list(handle, option, list))
    }

    /// nil: TLS sessions are neither kept nor taken up again.
    func use(_ sessions: TLSSessions?) {
        guard let sessions else { return set(CURLOPT_SSL_SESSIONID_CACHE, 0) }
        note(sessions.set(on: handle))
        self.sessions = sessions
    }

    /// Why no connection came about, as the system has it.
    var connectError: Errno? {
        var code = 0
        _ = birdcurl_get_long(handle, CURLINFO_OS_ERRNO, &code)
        return code > 0 ? Errno(code: Int32(clamping: code)) : nil
    }

    /// The HTTP status of a proxy's answer to CONNECT, or 0.
    var proxyStatus: Int32 {
        var status = 0
        _ = birdcurl_get_long(handle, CURLINFO_HTTP_CONNECTCODE, &status)
        return Int32(clamping: status)
    }

    /// The ways of authenticating that an HTTP proxy has offered, in the names of RFC 9110 section 11.
    var proxySchemes: [String] {
        var offered = 0
        _ = birdcurl_get_long(handle, CURLINFO_PROXYAUTH_AVAIL, &offered)
        return Self.authSchemes.filter { offered & $0.bit != 0 }.map(\.name)
    }

    /// Why a SOCKS proxy did not connect, a CURLproxycode.
    var proxyError: Int {
        var code = 0
        _ = birdcurl_get_long(handle, CURLINFO_PROXY_ERROR, &code)
        return code
    }

    /// OpenSSL's judgement of the server's certificate; 0 when it has none, or when another TLS library was asked.
    var verifyResult: Int {
        var result = 0
        guard CurlGlobal.hasOpenSSL else { return 0 }
        _ = birdcurl_get_long(handle, CURLINFO_SSL_VERIFYRESULT, &result)
        return result
    }

    /// There is a TCP connection, to the server or to the proxy.
    var hasSocketConnected: Bool {
        // Of a connection that was direct libcurl may tell the time only when TLS is through.
        hasPassed(CURLINFO_CONNECT_TIME_T) || multi?.hasConnectedSocket(of: self) == true
    }

    /// The proxy has connected; of a SOCKS proxy it is known when the TLS session through it is there.
    var isThroughProxy: Bool { proxyStatus == 200 || hasPassed(CURLINFO_APPCONNECT_TIME_T) }

    /// The request is on its way.
    var hasBegunRequest: Bool { hasPassed(CURLINFO_PRETRANSFER_TIME_T) }

    private func hasPassed(_ time: CURLINFO) -> Bool {
        var microseconds: curl_off_t = 0
        _ = birdcurl_get_offset(handle, time, &microseconds)
        return microseconds > 0
    }

    /// The transfer is over; it has not been removed yet.
    func finished(_ code: CURLcode) {}
}

/// A multi handle driven by the reactor. Reactor thread only.
final class CurlMulti {
    private unowned let reactor: Reactor
    private let multi: UnsafeMutableRawPointer
    private var transfers: [UnsafeMutableRawPointer: CurlTransfer] = [:]
    private var sockets: [Int32: CurlSocket] = [:]
    private var timer: ReactorTimer?
    private var isClosed = false
    /// The pair of sockets that libcurl wakes itself with, -1 where it is not known.
    private var wakeFDs: [Int32]

    init?(reactor: Reactor) {
        var reader: Int32 = -1
        var writer: Int32 = -1
        guard let multi = birdcurl_multi_init(&reader, &writer) else { return nil }
        wakeFDs = [reader, writer]
        self.reactor = reactor
        self.multi = UnsafeMutableRawPointer(multi)
        timer = ReactorTimer { [weak self] _ in self?.timeIsUp() }
        _ = birdcurl_multi_set_callbacks(
            multi,
            { easy, fd, what, userData, _ in
                guard let userData else { return 0 }
                Unmanaged<CurlMulti>.fromOpaque(userData).takeUnretainedValue().watch(fd, what, of: easy)
                return 0
            },
            { _, timeoutMs, userData in
                guard let userData else { return 0 }
                let me = Unmanaged<CurlMulti>.fromOpaque(userData).takeUnretainedValue()
                if let timer = me.timer {
                    me.reactor.setTimer(timer, timeoutMs < 0 ? nil : System.now() + Int64(timeoutMs))
                }
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { close() }

    var count: Int { transfers.count }

    func add(_ transfer: CurlTransfer) -> Bool {
        guard !transfer.isIncomplete else { return false }
        transfer.multi = self
        transfers[transfer.handle] = transfer
        guard curl_multi_add_handle(multi, transfer.handle) == CURLM_OK else {
            transfers[transfer.handle] = nil
            transfer.multi = nil
            return false
        }
        return true
    }

    func remove(_ transfer: CurlTransfer) {
        guard transfers.removeValue(forKey: transfer.handle) != nil else { return }
        curl_multi_remove_handle(multi, transfer.handle)
        transfer.multi = nil
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        for transfer in Array(transfers.values) { transfer.cleanUp() }
        for socket in sockets.values { reactor.unwatch(socket) }
        sockets = [:]
        if let timer { reactor.setTimer(timer, nil) }
        curl_multi_cleanup(multi)
    }

    // MARK: In a forked child

    /// Nothing reaches libcurl any more.
    func disown() {
        isClosed = true
        for transfer in transfers.values { transfer.disown() }
    }

    func closeInherited() {
        disown()
        for fd in wakeFDs { System.closeFD(fd) }
        wakeFDs = []
    }

    private func timeIsUp() {
        let watched = sockets.count
        act(CURL_SOCKET_TIMEOUT, 0)
        // libcurl 7.88 gives up a silent address by a timer, and tries the next one only when it is called again.
        if sockets.count < watched { act { birdcurl_multi_act_on_all(multi, &$0) } }
        // A timer of whole milliseconds may fire before libcurl's time has come, and libcurl tells the same time only once: it is asked.
        var leftMs = -1
        guard !isClosed, curl_multi_timeout(multi, &leftMs) == CURLM_OK, leftMs >= 0, let timer else { return }
        reactor.setTimer(timer, System.now() + Int64(max(leftMs, 1)))
    }

    fileprivate func act(_ fd: Int32, _ what: Int32) {
        act { curl_multi_socket_action(multi, fd, what, &$0) }
    }

    private func act(_ call: (inout Int32) -> CURLMcode) {
        guard !isClosed else { return }
        var running: Int32 = 0
        // The TLS library reads the program's CA file meanwhile.
        _ = System.holdingStandardFDs { call(&running) }
        var left: Int32 = 0
        while !isClosed, let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                let transfer = transfers[UnsafeMutableRawPointer(easy)]
            else { continue }
            transfer.finished(message.pointee.data.result)
        }
    }

    fileprivate func hasConnectedSocket(of transfer: CurlTransfer) -> Bool {
        sockets.values.contains { $0.easy == transfer.handle && birdlinux_is_connected($0.watchedFD) != 0 }
    }

    private func watch(_ fd: Int32, _ what: Int32, of easy: UnsafeMutableRawPointer?) {
        if what == CURL_POLL_REMOVE {
            if let socket = sockets.removeValue(forKey: fd) { reactor.unwatch(socket) }
            return
        }
        let socket = sockets[fd] ?? CurlSocket(multi: self)
        sockets[fd] = socket
        socket.easy = easy
        var events: UInt32 = 0
        if what & CURL_POLL_IN != 0 { events |= EPOLLIN.rawValue }
        if what & CURL_POLL_OUT != 0 { events |= EPOLLOUT.rawValue }
        reactor.watch(socket, fd: fd, events)
    }
}

private final class CurlSocket: EventSource {
    private weak var multi: CurlMulti?
    /// Whose it is at present.
    var easy: UnsafeMutableRawPointer?

    init(multi: CurlMulti) {
        self.multi = multi
    }

    override func handle(_ events: UInt32, _ now: Instant) {
        var what: Int32 = 0
        if events & (EPOLLIN.rawValue | EPOLLHUP.rawValue) != 0 { what |= CURL_CSELECT_IN }
        if events & EPOLLOUT.rawValue != 0 { what |= CURL_CSELECT_OUT }
        if events & EPOLLERR.rawValue != 0 { what |= CURL_CSELECT_ERR }
        multi?.act(watchedFD, what)
    }
}
