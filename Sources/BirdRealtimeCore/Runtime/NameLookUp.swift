/// A host and port that libcurl will ask for, with the addresses it gets as the answer.
struct ResolvedName: Sendable {
    var host: String
    var port: UInt16
    var addresses: [String]

    /// For CURLOPT_RESOLVE; the plus lets libcurl forget it in time.
    var entry: String {
        let bracketed = addresses.map { $0.contains(":") ? "[\($0)]" : $0 }
        return "+\(host):\(port):\(bracketed.joined(separator: ","))"
    }
}

/// Looks up one name after the other. Reactor thread only.
final class NameLookUp {
    private var waiting: ArraySlice<Route.Name>
    private var resolved: [ResolvedName] = []
    private var ticket: Resolver.Ticket?
    private let done: (Result<[ResolvedName], Fault>) -> Void

    /// `done` comes once, later, unless the look-up is abandoned.
    init(_ names: [Route.Name], on reactor: Reactor, _ done: @escaping (Result<[ResolvedName], Fault>) -> Void) {
        waiting = names[...]
        self.done = done
        lookUpNext(on: reactor)
    }

    func abandon() {
        ticket?.abandon()
        ticket = nil
    }

    private func lookUpNext(on reactor: Reactor) {
        guard let name = waiting.popFirst() else {
            done(.success(resolved))
            return
        }
        ticket = Resolver.resolve(name.host, on: reactor) { [weak self, unowned reactor] answer in
            guard let self else { return }
            switch answer {
            case .success(let addresses):
                resolved.append(ResolvedName(host: name.host, port: name.port, addresses: addresses))
                lookUpNext(on: reactor)
            case .failure(let fault): done(.failure(name.isProxy ? Route.unresolvable(fault) : fault))
            }
        }
    }
}
