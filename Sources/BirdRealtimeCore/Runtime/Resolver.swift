import CBirdRealtimeABI
import CLinux
import Glibc

/// Host names to addresses, on at most two threads of its own: getaddrinfo can hang for as long as a name server is silent, and neither
/// the reactor nor a destroy may wait for that. Threads start on need and end when there is nothing to look up. Nothing is remembered:
/// only those who ask for a name while it waits or is being looked up share one answer.
enum Resolver {
    private static let threadsMax = 2
    private static let waitingNamesMax = 1_024
    private static let addressesMax = 16

    typealias Answer = Result<[String], Fault>

    /// One caller's interest in a look-up.
    /// `@unchecked Sendable`: `answer` is the reactor thread's.
    final class Ticket: @unchecked Sendable {
        fileprivate let host: String
        private weak let reactor: Reactor?
        private var answer: ((Answer) -> Void)?

        fileprivate init(_ host: String, _ reactor: Reactor, _ answer: @escaping (Answer) -> Void) {
            self.host = host
            self.reactor = reactor
            self.answer = answer
        }

        /// On the reactor thread: no answer comes after this.
        func abandon() {
            answer = nil
            Resolver.withdraw(self)
        }

        fileprivate func deliver(_ result: Answer) {
            reactor?.perform { [self] in
                defer { answer = nil }
                answer?(result)
            }
        }
    }

    private struct LookUp {
        var isRunning = false
        var tickets: [ObjectIdentifier: Ticket] = [:]
    }

    private static let monitor = Monitor()
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var threads = 0
    nonisolated(unsafe) private static var lookUps: [String: LookUp] = [:]
    /// Names whose look-up has not begun, the oldest first.
    nonisolated(unsafe) private static var waiting: [String] = []

    /// The answer comes on the reactor thread, with the addresses in the order to try.
    static func resolve(_ host: String, on reactor: Reactor, _ answer: @escaping (Answer) -> Void) -> Ticket {
        let ticket = Ticket(host, reactor, answer)
        if let fault = monitor.withLock({ admit(ticket) }) { ticket.deliver(.failure(fault)) }
        return ticket
    }

    /// Lock held.
    private static func admit(_ ticket: Ticket) -> Fault? {
        let host = ticket.host
        if lookUps[host] == nil {
            guard waiting.count < waitingNamesMax else {
                return fault(host, "\(waitingNamesMax) names are waiting already")
            }
            if threads < threadsMax {
                let error = startThread()
                // One that runs already takes this name too.
                guard error == 0 || threads > 0 else {
                    return Fault(
                        BIRD_ERR_SYSTEM, .system, field: "thread",
                        "No thread to resolve \(host): \(Errno(code: error).message).", isRetriable: true)
                }
            }
            waiting.append(host)
        }
        lookUps[host, default: LookUp()].tickets[ObjectIdentifier(ticket)] = ticket
        return nil
    }

    /// A look-up that nobody waits for any more is not begun.
    private static func withdraw(_ ticket: Ticket) {
        monitor.withLock {
            guard lookUps[ticket.host]?.tickets.removeValue(forKey: ObjectIdentifier(ticket)) != nil,
                let lookUp = lookUps[ticket.host], lookUp.tickets.isEmpty, !lookUp.isRunning
            else { return }
            lookUps[ticket.host] = nil
            waiting.removeAll { $0 == ticket.host }
        }
    }

    /// Lock held. Gives an errno value.
    private static func startThread() -> Int32 {
        var thread = pthread_t()
        let error = birdlinux_thread_start(
            &thread, "bird-resolver",
            { _ in
                Resolver.run()
                return nil
            }, nil)
        if error == 0 {
            pthread_detach(thread)
            threads += 1
        }
        return error
    }

    private static func run() {
        while let host = monitor.withLock({ takeName() }) {
            let answer = lookUp(host)
            let tickets = monitor.withLock { lookUps.removeValue(forKey: host)?.tickets ?? [:] }
            for ticket in tickets.values { ticket.deliver(answer) }
        }
    }

    /// Lock held. nil: the thread that asks ends.
    private static func takeName() -> String? {
        guard !waiting.isEmpty else {
            threads -= 1
            return nil
        }
        let host = waiting.removeFirst()
        lookUps[host]?.isRunning = true
        return host
    }

    private static func lookUp(_ host: String) -> Answer {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = System.holdingStandardFDs { getaddrinfo(host, nil, &hints, &list) }
        guard code == 0 else {
            let reason = code == EAI_SYSTEM ? Errno(code: errno).message : String(cString: gai_strerror(code))
            return .failure(System.withoutFDs ?? fault(host, reason))
        }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let info = next, addresses.count < addressesMax {
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            if getnameinfo(
                info.pointee.ai_addr, info.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
                == 0
            {
                let address = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
                if !addresses.contains(address) { addresses.append(address) }
            }
            next = info.pointee.ai_next
        }
        return .success(addresses)
    }

    private static func fault(_ host: String, _ reason: String) -> Fault {
        Fault(
            BIRD_ERR_RESOLVE, .connection, field: "resolve", "\(host) could not be resolved: \(reason).",
            isRetriable: true)
    }

    static func lockForFork() { monitor.lock() }
    static func unlockAfterFork() { monitor.unlock() }
    static func unlockInChild() { monitor.unlockInChild() }

    static func forgetInChild() {
        threads = 0
        waiting = []
        lookUps = [:]
    }
}
