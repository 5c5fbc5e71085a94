/// UTF-8 that arrives in pieces (RFC 3629): no surrogates, no overlong forms, nothing above U+10FFFF. It refuses the first byte that
/// no continuation could make valid.
package struct UTF8Validator: Sendable {
    /// Continuation bytes still due, and the range of the next one.
    private var due: UInt8 = 0
    private var low: UInt8 = 0x80
    private var high: UInt8 = 0xBF

    package init() {}

    /// Nothing is open: what has come so far is valid by itself.
    package var isComplete: Bool { due == 0 }

    package static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var validator = UTF8Validator()
        return validator.append(bytes) && validator.isComplete
    }

    /// false: invalid, whatever follows.
    package mutating func append(_ buffer: UnsafeRawBufferPointer) -> Bool {
        guard let base = buffer.baseAddress else { return true }
        let bytes = base.assumingMemoryBound(to: UInt8.self)
        let count = buffer.count
        var position = 0
        while true {
            // What an earlier piece left open, and what this one leaves open.
            while due > 0 {
                guard position < count else { return true }
                let byte = bytes[position]
                guard byte >= low, byte <= high else { return false }
                due &-= 1
                low = 0x80
                high = 0xBF
                position &+= 1
            }
            guard Self.skipComplete(bytes, count: count, position: &position) else { return false }
            guard position < count else { return true }
            guard open(bytes[position]) else { return false }
            position &+= 1
        }
    }

    /// Goes over all complete characters; stops at one that may be cut off by the end. false: invalid.
    @inline(__always)
    private static func skipComplete(_ bytes: UnsafePointer<UInt8>, count: Int, position: inout Int) -> Bool {
        var at = position
        defer { position = at }
        while at < count {
            let lead = bytes[at]
            if lead < 0x80 {
                at &+= 1
                while count &- at >= WideBlock.byteCount, !WideBlock(bytes + at).hasHighBits {
                    at &+= WideBlock.byteCount
                }
                while count &- at >= ByteBlock.byteCount {
                    let highBits = ByteBlock(bytes + at).highBits
                    guard highBits == 0 else {
                        at &+= highBits.trailingZeroBitCount
                        break
                    }
                    at &+= ByteBlock.byteCount
                }
                continue
            }
            guard count &- at >= 4 else { return true }
            let second = bytes[at &+ 1]
            if lead & 0xF0 == 0xE0 {
                // Overlong forms and surrogates show in the second byte.
                guard second & 0xC0 == 0x80, bytes[at &+ 2] & 0xC0 == 0x80, lead != 0xE0 || second >= 0xA0,
                    lead != 0xED || second < 0xA0
                else { return false }
                at &+= 3
            } else if lead & 0xE0 == 0xC0 {
                guard lead >= 0xC2, second & 0xC0 == 0x80 else { return false }
                at &+= 2
            } else {
                guard lead >= 0xF0, lead <= 0xF4, second & 0xC0 == 0x80, bytes[at &+ 2] & 0xC0 == 0x80,
                    bytes[at &+ 3] & 0xC0 == 0x80, lead != 0xF0 || second >= 0x90, lead != 0xF4 || second < 0x90
                else { return false }
                at &+= 4
            }
        }
        return true
    }

    /// Begins the character of a lead byte. false: no character begins with it.
    @inline(__always)
    private mutating func open(_ lead: UInt8) -> Bool {
        switch lead {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: due = 1
        case 0xE0...0xEF:
            due = 2
            if lead == 0xE0 { low = 0xA0 }
            if lead == 0xED { high = 0x9F }
        case 0xF0...0xF4:
            due = 3
            if lead == 0xF0 { low = 0x90 }
            if lead == 0xF4 { high = 0x8F }
        default: return false
        }
        return true
    }
}
