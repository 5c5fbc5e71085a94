import CCurl

/// TLS sessions for later connections to take up again, which saves most of the work of a handshake. A session that is taken up does not look
/// at CAs again, so those of one trust setting, in one state of its files, never serve another. Reactor thread only.
final class TLSSessions {
    private let share: OpaquePointer
    private var isDisowned = false

    fileprivate init?() {
        guard let share = birdcurl_share_of_tls_sessions() else { return nil }
        self.share = OpaquePointer(share)
    }

    /// When the last transfer that used it has gone.
    deinit { if !isDisowned { curl_share_cleanup(UnsafeMutableRawPointer(share)) } }

    func set(on easy: UnsafeMutableRawPointer) -> CURLcode { birdcurl_set_share(easy, UnsafeMutableRawPointer(share)) }

    /// In a forked child: they are the parent's.
    func disown() { isDisowned = true }
}

/// The sessions of one reactor.
final class TLSSessionTable {
    /// Trust settings; of each, libcurl keeps the sessions of a few servers.
    private static let settingsMax = 16

    /// The one used last is at the end.
    private var entries: [(trust: TrustState, sessions: TLSSessions)] = []

    private let isOn = birdcurl_may_keep_tls_sessions() != 0

    /// nil: each handshake is a full one. The certificates of a directory may change without leaving a trace in `TrustState`.
    func sessions(of trust: TrustState) -> TLSSessions? {
        guard isOn, trust.isTraced else { return nil }
        if let index = entries.firstIndex(where: { $0.trust == trust }) {
            entries.append(entries.remove(at: index))
        } else if let sessions = TLSSessions() {
            if entries.count >= Self.settingsMax { entries.removeFirst() }
            entries.append((trust, sessions))
        }
        return entries.last { $0.trust == trust }?.sessions
    }

    func shutDown() { entries = [] }

    // In a forked child.
    func disown() { for entry in entries { entry.sessions.disown() } }
}
