import CLinux
import Glibc

/// Connects a plaintext socket. It goes to the own machine, or to an address that the program gave (Bird protocol 2.2), never through a
/// proxy: without libcurl, a handle of which takes more memory than all the rest of a client. The addresses are tried in their order, the
/// next one when one has failed or has been silent for a while (RFC 8305 section 5); the first that connects wins. Reactor thread only.
final class PlainConnect {
    /// The "Connection Attempt Delay" of RFC 8305 section 8.
    private static let nextAddressDelayMs: Int64 = 250

    private unowned let reactor: Reactor
    private var untried: ArraySlice<SocketAddress>
    private var trials: [Trial] = []
    private var lastError = Errno(code: EADDRNOTAVAIL)
    private var timer: ReactorTimer?
    private let done: (Result<Int32, Errno>) -> Void

    /// `done` comes once, with the connected fd or the error of the last address, unless the connect is cancelled.
    init(to addresses: [SocketAddress], on reactor: Reactor, _ done: @escaping (Result<Int32, Errno>) -> Void) {
        self.reactor = reactor
        self.done = done
        untried = addresses[...]
        timer = ReactorTimer { [weak self] _ in self?.tryNext() }
        tryNext()
    }

    func cancel() {
        stopTimer()
        untried = []
        for trial in trials { drop(trial) }
        trials = []
    }

    // In a forked child.
    func disown() { untried = [] }
    func closeInherited() { for trial in trials { System.closeFD(trial.fd) } }

    private func tryNext() {
        while let address = untried.popFirst() {
            switch address.connectNonblocking() {
            case .success(let fd) where birdlinux_is_connected(fd) != 0:
                // A server on the own machine has answered already.
                cancel()
                return done(.success(fd))
            case .success(let fd):
                let trial = Trial(fd: fd, owner: self)
                trials.append(trial)
                reactor.watch(trial, fd: fd, EPOLLOUT.rawValue)
                if let timer, !untried.isEmpty { reactor.setTimer(timer, reactor.now + Self.nextAddressDelayMs) }
                return
            case .failure(let error): lastError = error
            }
        }
        guard trials.isEmpty else { return }
        stopTimer()
        done(.failure(lastError))
    }

    fileprivate func ended(_ trial: Trial) {
        if let error = SocketAddress.connectError(trial.fd) {
            lastError = error
            drop(trial)
            trials.removeAll { $0 === trial }
            tryNext()
            return
        }
        reactor.unwatch(trial)
        trials.removeAll { $0 === trial }
        cancel()
        done(.success(trial.fd))
    }

    private func drop(_ trial: Trial) {
        reactor.unwatch(trial)
        System.closeSocket(trial.fd, trial.cookie)
    }

    private func stopTimer() {
        if let timer { reactor.setTimer(timer, nil) }
        timer = nil
    }
}

/// One address.
private final class Trial: EventSource {
    let fd: Int32
    let cookie: UInt64
    private unowned let owner: PlainConnect

    init(fd: Int32, owner: PlainConnect) {
        self.fd = fd
        cookie = birdlinux_socket_cookie(fd)
        self.owner = owner
    }

    override func handle(_ events: UInt32, _ now: Instant) { owner.ended(self) }
}
