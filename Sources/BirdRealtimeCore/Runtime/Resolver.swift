import CBirdRealtimeABI
import CLinux
import Glibc

/// Host names to addresses, on at most two threads of its own: getaddrinfo can hang for as long as a name server is silent, and neither
/// the reactor nor a destroy may wait for that. Threads start on need and end when there is nothing to look up.
enum Resolver {
    private static let threadsMax = 2
    private static let addressesMax = 16

    typealias Answer = Result<[String], Fault>

    /// One caller's interest in a look-up.
    final class Ticket: @unchecked Sendable {
        // `@unchecked Sendable`: guarded by the resolver's monitor.
        fileprivate var deliver: ((Answer) -> Void)?

        fileprivate init(_ deliver: @escaping (Answer) -> Void) {
            self.deliver = deliver
        }

        /// No answer will come.
        func abandon() {
            // The closure goes after the lock.
            let old = Resolver.monitor.withLock { () -> ((Answer) -> Void)? in
                defer { deliver = nil }
                return deliver
            }
            withExtendedLifetime(old) {}
        }
    }

    private static let monitor = Monitor()
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var threads = 0
    nonisolated(unsafe) private static var waiting: [String] = []
    nonisolated(unsafe) private static var tickets: [String: [Ticket]] = [:]

    /// The answer comes on the reactor thread, with the addresses in the order to try.
    static func resolve(_ host: String, on reactor: Reactor, _ answer: @escaping (Answer) -> Void) -> Ticket {
        let ticket = Ticket { result in reactor.perform { answer(result) } }
        let startError: Int32 = monitor.withLock {
            let isNew = tickets[host] == nil
            tickets[host, default: []].append(ticket)
            if isNew { waiting.append(host) }
            guard isNew, threads < threadsMax else { return 0 }
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
            } else if threads == 0 {
                waiting.removeAll { $0 == host }
                tickets[host] = nil
                return error
            }
            return 0
        }
        if startError != 0 {
            let fault = Fault(
                BIRD_ERR_SYSTEM, .system, field: "thread",
                "No thread to resolve \(host): \(Errno(code: startError).message).", isRetriable: true)
            ticket.deliver?(.failure(fault))
        }
        return ticket
    }

    private static func run() {
        while true {
            let next: String? = monitor.withLock {
                if waiting.isEmpty {
                    threads -= 1
                    return nil
                }
                return waiting.removeFirst()
            }
            guard let host = next else { return }
            let answer = lookUp(host)
            let deliveries: [(Answer) -> Void] = monitor.withLock {
                let interested = tickets.removeValue(forKey: host) ?? []
                return interested.compactMap { ticket in
                    defer { ticket.deliver = nil }
                    return ticket.deliver
                }
            }
            for deliver in deliveries { deliver(answer) }
        }
    }

    private static func lookUp(_ host: String) -> Answer {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else {
            return .failure(
                System.withoutFDs
                    ?? Fault(
                        BIRD_ERR_RESOLVE, .connection, field: "resolve",
                        "\(host) could not be resolved: \(String(cString: gai_strerror(code))).", isRetriable: true))
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

    /// True for what needs no look-up: an IPv4 or (bracketed or bare) IPv6 address.
    static func isLiteral(_ host: String) -> Bool {
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        var buffer = in6_addr()
        return inet_pton(AF_INET, bare, &buffer) == 1 || inet_pton(AF_INET6, bare, &buffer) == 1
    }

    static func lockForFork() { monitor.lock() }
    static func unlockAfterFork() { monitor.unlock() }
    static func unlockInChild() { monitor.unlockInChild() }

    static func forgetInChild() {
        threads = 0
        waiting = []
        tickets = [:]
    }
}
