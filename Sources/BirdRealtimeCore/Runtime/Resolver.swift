import CBirdRealtimeABI
import CLinux
import Glibc

/// Host names to addresses, on at most two threads of its own: getaddrinfo can hang for as long as a name server is silent, and neither
/// the reactor nor a destroy may wait for that. Threads start on need and end when there is nothing to look up. No answer is remembered:
/// only those who ask for a name while it waits or is being looked up share one answer.
///
/// getaddrinfo asks for IPv4 and IPv6 addresses at once and waits for both answers. Some name servers never answer for IPv6, and it gives up
/// when a connection attempt is long over. So a look-up that has taken `graceMs` is joined by one for IPv4 alone, whose addresses are the
/// answer if they come first (as RFC 8305 section 3 begins with the family that has been answered).
enum Resolver {
    private static let threadsMax = 2
    /// Longer than most answers take, so that most names are asked for once.
    private static let graceMs: Int64 = 500
    /// After a look-up for IPv4 alone has won, all names are looked up so first: the other kind would hold up a thread each time.
    private static let familiesApartMs: Int64 = 60_000
    private static let waitingNamesMax = 1_024
    private static let addressesMax = 16

    typealias Answer = Result<[String], Fault>

    /// One caller's interest in a look-up.
    /// `@unchecked Sendable`: `answer` is the reactor thread's.
    final class Ticket: @unchecked Sendable {
        fileprivate let host: String
        private weak let reactor: Reactor?
        private var answer: ((Answer) -> Void)?
        private var graceTimer: ReactorTimer?

        fileprivate init(_ host: String, _ reactor: Reactor, _ answer: @escaping (Answer) -> Void) {
            self.host = host
            self.reactor = reactor
            self.answer = answer
        }

        fileprivate func awaitGrace() {
            let timer = ReactorTimer { [weak self] _ in
                if let self { Resolver.hurry(self) }
            }
            graceTimer = timer
            reactor?.setTimer(timer, System.now() + graceMs)
        }

        /// On the reactor thread: no answer comes after this.
        func abandon() {
            end()
            Resolver.withdraw(self)
        }

        private func end() {
            answer = nil
            if let graceTimer { reactor?.setTimer(graceTimer, nil) }
            graceTimer = nil
        }

        fileprivate func deliver(_ result: Answer) {
            reactor?.perform { [self] in
                let answer = self.answer
                end()
                answer?(result)
            }
        }
    }

    private struct LookUp {
        /// Tells it from a later one of the same name.
        let number: UInt64
        var isRunning = false
        /// One for IPv4 alone has been asked for.
        var isHurried = false
        /// What that has found.
        var found: [String] = []
        var tickets: [ObjectIdentifier: Ticket] = [:]
    }

    private enum Job {
        case whole(String)
        case ipv4(String, number: UInt64)
    }

    private static let monitor = Monitor()
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var threads = 0
    nonisolated(unsafe) private static var lookUps: [String: LookUp] = [:]
    /// Names whose look-up has not begun, the oldest first.
    nonisolated(unsafe) private static var waiting: [String] = []
    /// Names that are being looked up and wait for a look-up for IPv4 alone. They take no thread from a name that has had none.
    nonisolated(unsafe) private static var hurried: [String] = []
    nonisolated(unsafe) private static var lookUpCount: UInt64 = 0
    nonisolated(unsafe) private static var familiesApartUntil = Instant(milliseconds: 0)

    /// The answer comes on the reactor thread, with the addresses in the order to try.
    static func resolve(_ host: String, on reactor: Reactor, _ answer: @escaping (Answer) -> Void) -> Ticket {
        let ticket = Ticket(host, reactor, answer)
        let known: Answer? = monitor.withLock {
            if let found = lookUps[host]?.found, !found.isEmpty { return .success(found) }
            return admit(ticket).map { .failure($0) }
        }
        if let known { ticket.deliver(known) } else { ticket.awaitGrace() }
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
            lookUpCount &+= 1
            lookUps[host] = LookUp(number: lookUpCount)
        }
        lookUps[host]?.tickets[ObjectIdentifier(ticket)] = ticket
        return nil
    }

    /// Somebody has waited for `graceMs`.
    private static func hurry(_ ticket: Ticket) {
        let host = ticket.host
        monitor.withLock {
            guard let lookUp = lookUps[host], lookUp.isRunning, !lookUp.isHurried, lookUp.found.isEmpty else { return }
            // Without another thread it is for the first that is free.
            if threads < threadsMax { _ = startThread() }
            lookUps[host]?.isHurried = true
            hurried.append(host)
        }
    }

    /// A look-up that nobody waits for any more is not begun.
    private static func withdraw(_ ticket: Ticket) {
        monitor.withLock {
            guard lookUps[ticket.host]?.tickets.removeValue(forKey: ObjectIdentifier(ticket)) != nil,
                let lookUp = lookUps[ticket.host], lookUp.tickets.isEmpty, !lookUp.isRunning
            else { return }
            lookUps[ticket.host] = nil
            waiting.removeAll { $0 == ticket.host }
            hurried.removeAll { $0 == ticket.host }
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
        while let job = monitor.withLock({ takeJob() }) {
            switch job {
            case .whole(let host):
                let answer = lookUp(host)
                let tickets = monitor.withLock { lookUps.removeValue(forKey: host)?.tickets ?? [:] }
                for ticket in tickets.values { ticket.deliver(answer) }
            case .ipv4(let host, let number):
                guard case .success(let found) = lookUp(host, AF_INET), !found.isEmpty else { continue }
                let tickets = monitor.withLock { take(found, host, number) }
                for ticket in tickets.values { ticket.deliver(.success(found)) }
            }
        }
    }

    /// Lock held. nil: the thread that asks ends.
    private static func takeJob() -> Job? {
        if !waiting.isEmpty {
            let host = waiting.removeFirst()
            lookUps[host]?.isRunning = true
            return .whole(host)
        }
        while !hurried.isEmpty {
            let host = hurried.removeFirst()
            if let lookUp = lookUps[host], !lookUp.tickets.isEmpty { return .ipv4(host, number: lookUp.number) }
            lookUps[host]?.isHurried = false
        }
        threads -= 1
        return nil
    }

    /// Lock held. Addresses for those who wait for this look-up; whoever asks while it goes on gets them at once.
    private static func take(_ found: [String], _ host: String, _ number: UInt64) -> [ObjectIdentifier: Ticket] {
        guard let lookUp = lookUps[host], lookUp.number == number else { return [:] }
        familiesApartUntil = System.now() + familiesApartMs
        lookUps[host]?.found = found
        lookUps[host]?.tickets = [:]
        return lookUp.tickets
    }

    private static func lookUp(_ host: String) -> Answer {
        if monitor.withLock({ System.now() < familiesApartUntil }),
            case .success(let found) = lookUp(host, AF_INET), !found.isEmpty
        {
            return .success(found)
        }
        return lookUp(host, AF_UNSPEC)
    }

    private static func lookUp(_ host: String, _ family: Int32) -> Answer {
        var hints = addrinfo()
        hints.ai_family = family
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
        hurried = []
        lookUps = [:]
    }
}
