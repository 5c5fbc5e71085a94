import CLinux
import Glibc

/// Listens to what the kernel tells of links, addresses and routes (rtnetlink), as long as a client of the reactor wants it. Where there is
/// no such socket to be had, clients work without. Reactor thread only.
final class NetworkWatcher: EventSource {
    /// Datagrams read before others get their turn.
    private static let readsPerTurnMax = 32
    /// From one look at the whole to the next, however much happens.
    private static let looksApartMs: Int64 = 100
    /// An answer of the kernel's that has not come to its end by then was lost.
    private static let answerMs: Int64 = 5_000

    /// What is asked for; raw values are the types of the requests.
    private enum Question: UInt16 {
        case links = 18
        case addresses = 22
        case routes = 26
    }

    /// What has to be looked at again.
    private enum Need: Int, Comparable {
        case nothing
        case routes
        case everything

        static func < (left: Need, right: Need) -> Bool { left.rawValue < right.rawValue }

        var questions: [Question] {
            switch self {
            case .nothing: []
            case .routes: [.routes]
            case .everything: [.links, .addresses, .routes]
            }
        }
    }

    private unowned let reactor: Reactor
    private var users = 0
    private var fd: Int32 = -1
    private var cookie: UInt64 = 0
    private var port: UInt32 = 0
    private var sequence: UInt32 = 0
    private var view = NetworkView()
    /// The first has been asked.
    private var questions: [Question] = []
    /// A look has come to its end.
    private var hasLooked = false
    private var need = Need.nothing
    /// Of the next look, or by when the answer must have come.
    private var timer: ReactorTimer?
    private var nextLook = Instant(milliseconds: 0)

    init(reactor: Reactor) {
        self.reactor = reactor
    }

    var isWatching: Bool { fd >= 0 }
    /// Why it is not, although somebody wants it to.
    private(set) var refusal: Errno?

    func join() {
        users += 1
        if users == 1 { open() }
    }

    /// Somebody has got a file descriptor, and there may be one here too. True: it watches from now on.
    func tryAgain() -> Bool {
        guard users > 0, !isWatching else { return false }
        open()
        return isWatching
    }

    func leave() {
        users -= 1
        if users == 0 { shutDown() }
    }

    func shutDown() {
        if let timer { reactor.setTimer(timer, nil) }
        timer = nil
        guard isWatching else { return }
        reactor.unwatch(self)
        closeInherited()
    }

    /// In a forked child, and when the reactor has lost its fds: nothing but the fd itself.
    func closeInherited() {
        System.closeSocket(fd, cookie)
        fd = -1
    }

    private func open() {
        fd = birdlinux_netlink_open(&port)
        cookie = birdlinux_socket_cookie(fd)
        refusal = isWatching ? nil : Errno(code: errno)
        guard isWatching else { return }
        view = NetworkView()
        questions = []
        timer = ReactorTimer { [weak self] now in self?.timerFired(now) }
        reactor.watch(self, fd: fd, EPOLLIN.rawValue)
        need = .everything
        look(reactor.now)
    }

    // MARK: Looking

    private func look(_ now: Instant) {
        questions = need.questions
        need = .nothing
        if questions.first == .links { view.forget() }
        ask(now)
    }

    private func ask(_ now: Instant) {
        guard let question = questions.first, let timer else { return }
        if question == .routes { view.beginRoutes() }
        sequence &+= 1
        // A request that the kernel does not take is one without an answer.
        _ = System.retrying { Int(birdlinux_netlink_ask(fd, question.rawValue, sequence)) }
        reactor.setTimer(timer, now + Self.answerMs)
    }

    private func answerEnded(_ now: Instant) {
        if questions.first == .routes { view.endRoutes() }
        questions.removeFirst()
        guard questions.isEmpty else { return ask(now) }
        hasLooked = true
        nextLook = now + Self.looksApartMs
        if let timer { reactor.setTimer(timer, nil) }
    }

    private func timerFired(_ now: Instant) {
        if !questions.isEmpty {
            questions = []
            need = .everything
        }
        look(now)
    }

    /// After each turn: tells what is known as a whole, and looks again where that is needed, as soon as it may.
    private func goOn(_ now: Instant) {
        guard questions.isEmpty else { return }
        let change = hasLooked || need == .nothing ? view.settle() : NetworkChange()
        hasLooked = false
        if need != .nothing {
            if nextLook <= now { look(now) } else if let timer { reactor.setTimer(timer, nextLook) }
        }
        // Last: a handler may end the client, and with it the watch.
        if !change.isEmpty { reactor.networkChanged(change) }
    }

    // MARK: In

    override func handle(_ events: UInt32, _ now: Instant) {
        for _ in 0..<Self.readsPerTurnMax where isWatching {
            switch System.retrying({ birdlinux_netlink_receive(fd, reactor.scratch, Reactor.scratchBytes) }) {
            case .success(let count):
                take(UnsafeRawBufferPointer(start: reactor.scratch, count: count), now)
                continue
            case .failure(let error) where error.wouldBlock: break
            case .failure(let error) where error.code == ENOBUFS:
                need = .everything
                continue
            case .failure: shutDown()
            }
            break
        }
        goOn(now)
    }

    private func take(_ datagram: UnsafeRawBufferPointer, _ now: Instant) {
        let isWhole = RouteMessage.parse(datagram) { message in
            let isAnswer = message.port == port && message.sequence == sequence && !questions.isEmpty
            guard isAnswer else {
                if view.note(message.content) { need = max(need, .routes) }
                return
            }
            if message.isInterrupted { need = max(need, questions == [.routes] ? .routes : .everything) }
            switch message.content {
            case .done, .refused: answerEnded(now)
            case .defaultRoute(let route, isThere: true): view.addRoute(route)
            case let content: _ = view.note(content)
            }
        }
        if !isWhole { need = .everything }
    }
}
