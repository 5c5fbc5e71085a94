import CBirdRealtimeABI
import CCurl

/// The POSTs of every client on this reactor. Reactor thread only.
final class HTTPPosts {
    fileprivate static let inFlightMax = 64

    fileprivate unowned let reactor: Reactor
    private let multis: CurlMultis
    private var waiting = Ring<HTTPPost>()
    /// Of those: cancelled. They are taken out when they are the larger part, as somebody may ask and cancel for as long as the others hang.
    private var cancelled = 0
    private static let cancelledMin = 64
    private var inFlight = 0

    init(reactor: Reactor) {
        self.reactor = reactor
        multis = CurlMultis(reactor: reactor, transfersMax: Self.inFlightMax)
    }

    func shutDown() { multis.shutDown() }

    // In a forked child; see `CurlMulti`.
    func disown() { multis.disown() }
    func closeInherited() { multis.closeInherited() }

    /// Starts a POST, or queues it. `done` comes once, unless it is cancelled; at the `deadline` with a fault that names the step. It may come
    /// before this returns.
    func post(
        _ url: HTTPEndpoint, _ body: HTTPBody, headers: HTTPHeaders, timeoutMs: Int64, deadline: Instant,
        _ done: @escaping (Result<HTTPAnswer, Fault>) -> Void
    ) -> HTTPPost {
        let post = HTTPPost(url: url, body: body, headers: headers, timeoutMs: timeoutMs, posts: self, done: done)
        post.end(at: deadline)
        waiting.append(post)
        startNext()
        return post
    }

    /// For the log.
    static func words(_ result: Result<HTTPAnswer, Fault>) -> String {
        switch result {
        case .success(let answer): "HTTP \(answer.status)"
        case .failure: "no answer"
        }
    }

    private func startNext() {
        while inFlight < Self.inFlightMax, let post = waiting.popFirst() {
            if post.isOver {
                cancelled -= 1
                continue
            }
            inFlight += 1
            post.isCounted = true
            post.resolve(on: reactor)
        }
    }

    fileprivate func ended(_ post: HTTPPost) {
        guard post.isCounted else {
            cancelledWaiting()
            return
        }
        post.isCounted = false
        inFlight -= 1
        startNext()
    }

    private func cancelledWaiting() {
        cancelled += 1
        guard cancelled > Self.cancelledMin, cancelled > waiting.count / 2 else { return }
        for _ in 0..<waiting.count {
            if let post = waiting.popFirst(), !post.isOver { waiting.append(post) }
        }
        cancelled = 0
    }

    fileprivate func add(_ transfer: CurlTransfer, _ trust: TrustState?) -> Bool {
        multis.multi(for: trust)?.add(transfer) ?? false
    }

    fileprivate func sessions(of trust: TrustState?) -> TLSSessions? {
        trust.flatMap(reactor.tlsSessions.sessions)
    }
}

final class HTTPPost {
    private let url: HTTPEndpoint
    private let body: HTTPBody
    private let headers: HTTPHeaders
    private let timeoutMs: Int64
    private let posts: HTTPPosts
    private var done: ((Result<HTTPAnswer, Fault>) -> Void)?
    private var lookUp: NameLookUp?
    private var resolved: [ResolvedName] = []
    private var transfer: PostTransfer?
    private var timer: ReactorTimer?
    fileprivate var isCounted = false

    fileprivate init(
        url: HTTPEndpoint, body: HTTPBody, headers: HTTPHeaders, timeoutMs: Int64,
        posts: HTTPPosts, done: @escaping (Result<HTTPAnswer, Fault>) -> Void
    ) {
        self.url = url
        self.body = body
        self.headers = headers
        self.timeoutMs = timeoutMs
        self.posts = posts
        self.done = done
    }

    var isOver: Bool { done == nil }

    func cancel() {
        guard !isOver else { return }
        done = nil
        if let timer { posts.reactor.setTimer(timer, nil) }
        timer = nil
        lookUp?.abandon()
        lookUp = nil
        transfer?.cleanUp()
        transfer = nil
        posts.ended(self)
    }

    private func finish(_ result: Result<HTTPAnswer, Fault>) {
        let done = self.done
        cancel()
        done?(result)
    }

    fileprivate func end(at deadline: Instant) {
        let timer = ReactorTimer { [weak self] _ in self?.timeIsUp() }
        self.timer = timer
        posts.reactor.setTimer(timer, deadline)
    }

    private func timeIsUp() {
        let step =
            if let transfer {
                "It was at this step: \(url.route.step(of: transfer))"
            } else if lookUp != nil {
                "It was at this step: resolve"
            } else {
                "It waited for its turn behind \(HTTPPosts.inFlightMax) others"
            }
        finish(
            .failure(
                Fault(
                    BIRD_ERR_TIMEOUT, .authorization, field: "auth_timeout_ms",
                    "no answer within \(timeoutMs) ms. \(step).", isRetriable: true)))
    }

    fileprivate func resolve(on reactor: Reactor) {
        lookUp = url.route.resolve(on: reactor) { [weak self] answer in
            guard let self else { return }
            lookUp = nil
            switch answer {
            case .success(let names):
                resolved = names
                start()
            case .failure(let fault): finish(.failure(fault))
            }
        }
    }

    private func start() {
        let trust: TrustState?
        do throws(Fault) {
            trust = try url.route.trustState()
        } catch {
            return finish(.failure(error))
        }
        guard let transfer = PostTransfer() else {
            finish(
                .failure(
                    Fault(BIRD_ERR_SYSTEM, .system, field: "libcurl", "libcurl gave no handle.", isRetriable: true)))
            return
        }
        transfer.set(CURLOPT_URL, url.text)
        transfer.set(CURLOPT_POST, 1)
        transfer.set(CURLOPT_FOLLOWLOCATION, 0)
        transfer.set(CURLOPT_TIMEOUT_MS, Int(timeoutMs))
        // A header of the program's replaces one of ours with the same name.
        let own = [
            "content-type: \(body.type)", "accept: application/json", "expect:", "user-agent: \(Library.userAgent)",
        ]
        let names = Set(headers.all.map { $0.name.lowercased() })
        transfer.set(
            CURLOPT_HTTPHEADER,
            list: own.filter { !names.contains(String($0.prefix { $0 != ":" })) } + headers.lines)
        transfer.note(body.bytes.withUnsafeBytes { birdcurl_set_body(transfer.handle, $0.baseAddress, $0.count) })
        url.route.apply(to: transfer, resolved: resolved, sessions: posts.sessions(of: trust))
        transfer.onFinished = { [weak self] code in self?.ended(code) }
        self.transfer = transfer
        if !posts.add(transfer, trust) {
            finish(
                .failure(
                    Fault(BIRD_ERR_SYSTEM, .system, field: "libcurl", "libcurl took no handle.", isRetriable: true)))
        }
    }

    private func ended(_ code: CURLcode) {
        guard let transfer else { return }
        // What was refused for its size alone was answered all the same.
        guard code == CURLE_OK || transfer.isTooLarge else {
            var fault = url.route.fault(code, of: transfer, resolved: resolved)
            fault.area = .authorization
            finish(.failure(fault))
            return
        }
        var status = 0
        _ = birdcurl_get_long(transfer.handle, CURLINFO_RESPONSE_CODE, &status)
        finish(
            .success(
                HTTPAnswer(
                    status: Int32(clamping: status), body: transfer.body, isTooLarge: transfer.isTooLarge,
                    retryAfterMs: transfer.retryAfter?.waitMs(wallClockMs: System.wallClockMs()),
                    location: transfer.location,
                    contentEncoding: transfer.contentEncoding)))
    }
}

private final class PostTransfer: CurlTransfer {
    /// Of what the server said and a message repeats.
    private static let wordsCharactersMax = 64

    var onFinished: ((CURLcode) -> Void)?
    var body: [UInt8] = []
    var isTooLarge = false
    var retryAfter: RetryAfter?
    var location: String?
    var contentEncoding: String?

    override init?() {
        super.init()
        let me = Unmanaged.passUnretained(self).toOpaque()
        _ = birdcurl_set_write(
            handle,
            { bytes, size, count, userData in
                guard let bytes, let userData else { return 0 }
                return Unmanaged<PostTransfer>.fromOpaque(userData).takeUnretainedValue()
                    .take(UnsafeRawBufferPointer(start: bytes, count: size * count))
            }, me)
        _ = birdcurl_set_header(
            handle,
            { bytes, size, count, userData in
                guard let bytes, let userData else { return 0 }
                Unmanaged<PostTransfer>.fromOpaque(userData).takeUnretainedValue()
                    .takeHeader(
                        String(decoding: UnsafeRawBufferPointer(start: bytes, count: size * count), as: UTF8.self))
                return size * count
            }, me)
    }

    override func finished(_ code: CURLcode) { onFinished?(code) }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard body.count + bytes.count <= HTTPAnswer.bodyBytesMax else {
            isTooLarge = true
            return 0
        }
        body.append(contentsOf: bytes)
        return bytes.count
    }

    private func takeHeader(_ line: String) {
        if line.hasPrefix("HTTP/") {
            // Another answer begins: what came before was a proxy's, or an interim one.
            (retryAfter, location, contentEncoding) = (nil, nil, nil)
            return
        }
        guard let colon = line.firstIndex(of: ":") else { return }
        let isSpace: (Character) -> Bool = { $0.isWhitespace || $0.isNewline }
        var value = line[line.index(after: colon)...].drop(while: isSpace)
        while let last = value.last, isSpace(last) { value.removeLast() }
        switch line[..<colon].lowercased() {
        case "retry-after": retryAfter = RetryAfter(value.utf8)
        case "location": location = OutsideText.place(String(value))
        case "content-encoding": contentEncoding = OutsideText.line(String(value.prefix(Self.wordsCharactersMax)))
        default: break
        }
    }
}
