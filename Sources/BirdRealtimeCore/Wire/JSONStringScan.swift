/// The way through one JSON string: where it ends, and whether its escapes are well formed.
///
/// It goes by blocks of 64 bytes, and the work per block does not depend on how many escapes are in it: the usual payload
/// is JSON inside a string, where every second word has one.
struct JSONStringScan {
    /// What stands between the quotes; nil: malformed.
    private(set) var span: Span?
    private(set) var sawNonASCII = false

    /// `start` is behind the opening quote.
    init(_ bytes: UnsafePointer<UInt8>, count: Int, from start: Int) {
        let width = WideBlock.byteCount
        var position = start
        // 1: the first byte of the block is escaped by the last one before it.
        var carry: UInt64 = 0
        // Where a high surrogate has already vouched for the low one.
        var pairedLow = -1
        var found = Span(offset: start, length: 0, isEscaped: true)
        // As if the string began behind an escape.
        var lastEscape = start &- 2
        while true {
            if carry == 0 { position = skipPlain(bytes, count: count, from: position) }
            guard position < count else { return }
            // The last block ends with the bytes; what it repeats is shifted out.
            let at = count >= width ? min(position, count &- width) : 0
            let block = count >= width ? WideBlock(bytes + at) : WideBlock(short: bytes, count: count)
            let shift = UInt64(truncatingIfNeeded: position &- at)
            let quotes = block.mask(of: UInt8(ascii: "\"")) &>> shift
            let backslashes = block.mask(of: UInt8(ascii: "\\")) &>> shift
            let escapes = Escapes(backslashes: backslashes, carry: &carry, width: width)
            var stops = quotes & ~escapes.escaped
            var high: UInt64 = 0
            if block.hasUnusual {
                stops |= block.controls &>> shift
                high = block.highBits &>> shift
            }
            // Everything when there is no stop.
            let below = (stops &- 1) & ~stops
            if high & below != 0 { sawNonASCII = true }
            let starts = escapes.starts & below
            if starts != 0 {
                let first = position &+ starts.trailingZeroBitCount
                if first &- lastEscape > width {
                    found.takePlain(from: Self.end(ofEscape: lastEscape, bytes), to: first)
                }
                lastEscape = position &+ (63 &- starts.leadingZeroBitCount)
            }
            var toCheck = escapes.escaped & below & ~(quotes | backslashes)
            while toCheck != 0 {
                let escape = position &+ toCheck.trailingZeroBitCount
                toCheck &= toCheck &- 1
                guard Self.isWellFormed(bytes, count: count, escape: escape, pairedLow: &pairedLow) else { return }
            }
            if stops != 0 {
                let end = position &+ stops.trailingZeroBitCount
                guard bytes[end] == UInt8(ascii: "\"") else { return }
                found.takePlain(from: Self.end(ofEscape: lastEscape, bytes), to: end)
                found.length = end &- start
                span = found
                return
            }
            position = at &+ width
        }
    }

    /// Goes over whole blocks without anything special.
    @inline(__always)
    private mutating func skipPlain(_ bytes: UnsafePointer<UInt8>, count: Int, from start: Int) -> Int {
        var position = start
        while count &- position >= WideBlock.byteCount {
            let block = WideBlock(bytes + position)
            if !block.isPlainASCII {
                guard block.hasHighBits, !block.hasSpecials else { return position }
                sawNonASCII = true
            }
            position &+= WideBlock.byteCount
        }
        return position
    }

    /// Of one that begins at `start`.
    @inline(__always)
    private static func end(ofEscape start: Int, _ bytes: UnsafePointer<UInt8>) -> Int {
        start &+ (bytes[start &+ 1] == UInt8(ascii: "u") ? 6 : 2)
    }

    /// `escape` is the character behind the backslash; quotes and backslashes do not come here.
    private static func isWellFormed(
        _ bytes: UnsafePointer<UInt8>, count: Int, escape: Int, pairedLow: inout Int
    ) -> Bool {
        // The bytes may end with the backslash.
        guard escape < count else { return false }
        switch bytes[escape] {
        case UInt8(ascii: "n"), UInt8(ascii: "/"), UInt8(ascii: "t"), UInt8(ascii: "r"), UInt8(ascii: "b"),
            UInt8(ascii: "f"):
            return true
        case UInt8(ascii: "u"):
            guard count &- escape > 4, let unit = JSONString.codeUnit(bytes + (escape &+ 1)) else { return false }
            switch unit & 0xFC00 {
            case 0xD800:
                let low = escape &+ 6
                guard count &- low > 4, bytes[low &- 1] == UInt8(ascii: "\\"), bytes[low] == UInt8(ascii: "u"),
                    let second = JSONString.codeUnit(bytes + (low &+ 1)), second & 0xFC00 == 0xDC00
                else { return false }
                pairedLow = low
                return true
            case 0xDC00:
                return escape == pairedLow
            default:
                return true
            }
        default:
            return false
        }
    }
}
