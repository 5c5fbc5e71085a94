/// The hosts that take no proxy: the list of `no_proxy`, separated by commas or blanks.
///
///     *                               every host
///     example.com .example.com *.example.com   the name itself and every name below it
///     192.0.2.1 2001:db8::1 [2001:db8::1]      the address, however it is spelled
///     192.0.2.0/24 2001:db8::/32               the addresses of the network
///     example.com:8443 [2001:db8::1]:8443      the same at this port only
///
/// Names are not resolved for this. What is none of these matches nothing.
struct ProxyExceptions: Equatable, Sendable {
    private enum Entry: Equatable {
        case all
        case name(String, port: UInt16?)
        case network(IPAddress, bits: Int, port: UInt16?)

        init?(_ text: Substring) {
            if text == "*" {
                self = .all
                return
            }
            if let network = Self.network(text) {
                self = network
                return
            }
            let name = text.hasPrefix("*.") ? text.dropFirst(2) : text.hasPrefix(".") ? text.dropFirst() : text
            guard let authority = try? Authority(String(name), field: "no_proxy") else { return nil }
            if let address = IPAddress(authority.host) {
                self = .network(address, bits: address.bytes.count * 8, port: authority.port)
            } else {
                self = .name(ProxyExceptions.comparable(authority.host), port: authority.port)
            }
        }

        /// An address with a number of bits, or an IPv6 address without brackets.
        private static func network(_ text: Substring) -> Entry? {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = parts.first, let address = IPAddress(String(first)) else { return nil }
            guard parts.count == 2 else { return .network(address, bits: address.bytes.count * 8, port: nil) }
            guard let bits = UInt8(parts[1]), Int(bits) <= address.bytes.count * 8 else { return nil }
            return .network(address, bits: Int(bits), port: nil)
        }
    }

    private let entries: [Entry]

    init(_ list: String) {
        entries = list.split(whereSeparator: { $0 == "," || $0.isWhitespace }).compactMap(Entry.init)
    }

    func contains(_ host: String, port: UInt16) -> Bool {
        let address = IPAddress(host)
        let name = Self.comparable(host)
        return entries.contains { entry in
            switch entry {
            case .all: true
            case .name(let suffix, let onlyPort):
                address == nil && (onlyPort ?? port) == port && (name == suffix || name.hasSuffix("." + suffix))
            case .network(let network, let bits, let onlyPort):
                (onlyPort ?? port) == port && (address?.shares(bits, with: network) ?? false)
            }
        }
    }

    /// Case and the dot at the end of a full name make no difference.
    private static func comparable(_ name: String) -> String {
        let lowered = name.lowercased()
        return lowered.hasSuffix(".") ? String(lowered.dropLast()) : lowered
    }
}
