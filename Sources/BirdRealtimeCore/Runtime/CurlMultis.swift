/// The multi handles for one purpose. libcurl keeps the CA certificates of a file parsed in each for a day, whatever becomes of the file: so
/// one handle serves one trust setting in one state of its files. Reactor thread only.
final class CurlMultis {
    /// Without a transfer, kept for what they have parsed.
    private static let idleMax = 4

    private unowned let reactor: Reactor
    /// Of one multi handle.
    private let transfersMax: Int
    private var all: [(multi: CurlMulti, trust: TrustState?)] = []

    init(reactor: Reactor, transfersMax: Int) {
        self.reactor = reactor
        self.transfersMax = transfersMax
    }

    /// `trust` nil: plaintext. nil: libcurl has no memory.
    func multi(for trust: TrustState?) -> CurlMulti? {
        if let entry = all.first(where: { $0.trust == trust && $0.multi.count < transfersMax }) { return entry.multi }
        guard let multi = CurlMulti(reactor: reactor) else { return nil }
        let idle = all.filter { $0.multi.count == 0 }
        for (leaving, _) in idle.dropLast(Self.idleMax - 1) {
            leaving.close()
            all.removeAll { $0.multi === leaving }
        }
        all.append((multi, trust))
        return multi
    }

    func shutDown() {
        for (multi, _) in all { multi.close() }
        all = []
    }

    // In a forked child; see `CurlMulti`.
    func disown() { for (multi, _) in all { multi.disown() } }
    func closeInherited() { for (multi, _) in all { multi.closeInherited() } }
}
