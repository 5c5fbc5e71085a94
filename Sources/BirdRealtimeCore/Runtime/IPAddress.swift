import CLinux
import Glibc

/// An IPv4 or IPv6 address in its bytes, so that two spellings of one address are equal.
struct IPAddress: Equatable, Sendable {
    /// 4 or 16, in network order.
    let bytes: [UInt8]

    /// An IPv6 address may have brackets.
    init?(_ text: String) {
        let bare = text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
        var v4 = in_addr()
        var v6 = in6_addr()
        if bare == text, inet_pton(AF_INET, bare, &v4) == 1 {
            bytes = withUnsafeBytes(of: v4) { Array($0) }
        } else if inet_pton(AF_INET6, bare, &v6) == 1 {
            bytes = withUnsafeBytes(of: v6) { Array($0) }
        } else {
            return nil
        }
    }

    /// Of this machine itself: 127.0.0.0/8 or ::1.
    var isLoopback: Bool {
        bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    }

    /// For names that mean this machine, whatever a name server would say of them (RFC 6761 section 6.3): nobody is asked.
    static let localhost = ["127.0.0.1", "::1"]

    static func isLocalhost(_ name: String) -> Bool {
        var name = name.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        return name == "localhost" || name.hasSuffix(".localhost")
    }

    /// Whether the first bits are the same; of another family none are.
    func shares(_ bits: Int, with other: IPAddress) -> Bool {
        guard bytes.count == other.bytes.count else { return false }
        let whole = bits / 8
        guard bytes.prefix(whole) == other.bytes.prefix(whole) else { return false }
        let rest = bits % 8
        return rest == 0 || (bytes[whole] ^ other.bytes[whole]) >> (8 - rest) == 0
    }
}
