/// An IPv4 or IPv6 address in two words, so that many can be kept and compared.
struct NetworkAddress: Hashable, Sendable {
    /// Raw values are AF_INET and AF_INET6.
    enum Family: UInt8, Sendable {
        case v4 = 2
        case v6 = 10
    }

    let family: Family
    private let high: UInt64
    private let low: UInt64

    /// The bytes in network order, 4 or 16 of them.
    init?(_ family: Family, _ bytes: some Collection<UInt8>) {
        guard bytes.count == (family == .v4 ? 4 : 16) else { return nil }
        self.family = family
        var words: (high: UInt64, low: UInt64) = (0, 0)
        for byte in bytes {
            words.high = words.high << 8 | words.low >> 56
            words.low = words.low << 8 | UInt64(byte)
        }
        (high, low) = words
    }

    /// Packets from it do not leave the machine.
    var isLoopback: Bool {
        switch family {
        case .v4: low >> 24 == 127
        case .v6: high == 0 && low == 1
        }
    }
}
