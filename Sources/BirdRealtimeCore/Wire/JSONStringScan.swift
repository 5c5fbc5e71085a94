/// The way through one JSON string: where it ends, and whether its escapes are well formed.
///
/// It goes by blocks of 16 bytes, and the work per block does not depend on how many escapes are in it: the usual payload
/// is JSON inside a string, where every second word has one.
struct JSONStringScan {
    /// Index of the closing quote; -1: malformed.
    private(set) var end = -1
    private(set) var isEscaped = false
    private(set) var sawNonASCII = false

    /// `start` is behind the opening quote.
    init(_ bytes: UnsafePointer<UInt8>, count: Int, from start: Int) {
        let width = ByteBlock.byteCount
        var position = start
        var nonASCII: UInt32 = 0
        // 1: the first byte of the block is escaped by the last one before it.
        var carry: UInt32 = 0
        // Where a high surrogate has already vouched for the low one.
        var pairedLow = -1
        while position < count {
            var quotes: UInt32
            var backslashes: UInt32
            var controls: UInt32
            var high: UInt32
            if count &- position >= width {
                let block = ByteBlock(bytes + position)
                high = block.highBits
                quotes = block.mask(of: UInt8(ascii: "\""))
                backslashes = block.mask(of: UInt8(ascii: "\\"))
                controls = block.controls
                if quotes | backslashes | controls | carry == 0 {
                    nonASCII |= high
                    position &+= width
                    Self.skipPlain(bytes, count: count, position: &position, nonASCII: &nonASCII)
                    continue
                }
            } else if count >= width {
                // The last bytes: read the block that ends with them and shift out what comes before.
                let block = ByteBlock(bytes + (count &- width))
                let shift = UInt32(truncatingIfNeeded: width &- (count &- position))
                high = block.highBits &>> shift
                quotes = block.mask(of: UInt8(ascii: "\"")) &>> shift
                backslashes = block.mask(of: UInt8(ascii: "\\")) &>> shift
                controls = block.controls &>> shift
            } else {
                (quotes, backslashes, controls, high) = Self.masksBytewise(bytes, from: position, to: count)
            }

            let escapes = Escapes(backslashes: backslashes, carry: &carry)
            let stops = (quotes & ~escapes.escaped) | controls
            // Everything when there is no stop.
            let below = (stops &- 1) & ~stops
            nonASCII |= high & below
            isEscaped = isEscaped || escapes.starts & below != 0
            var toCheck = escapes.escaped & below & ~(quotes | backslashes)
            while toCheck != 0 {
                let escape = position &+ toCheck.trailingZeroBitCount
                toCheck &= toCheck &- 1
                guard Self.isWellFormed(bytes, count: count, escape: escape, pairedLow: &pairedLow) else { return }
            }
            if stops != 0 {
                let stop = position &+ stops.trailingZeroBitCount
                guard bytes[stop] == UInt8(ascii: "\"") else { return }
                end = stop
                sawNonASCII = nonASCII != 0
                return
            }
            position &+= width
        }
    }

    /// Four blocks at a time as long as none has anything special.
    @inline(__always)
    private static func skipPlain(
        _ bytes: UnsafePointer<UInt8>, count: Int, position: inout Int, nonASCII: inout UInt32
    ) {
        let width = ByteBlock.byteCount
        while count &- position >= 4 &* width {
            let first = ByteBlock(bytes + position)
            let second = ByteBlock(bytes + (position &+ width))
            let third = ByteBlock(bytes + (position &+ 2 &* width))
            let fourth = ByteBlock(bytes + (position &+ 3 &* width))
            let special = first.specialLanes | second.specialLanes | third.specialLanes | fourth.specialLanes
            guard special.highBits == 0 else { return }
            nonASCII |= (first | second | third | fourth).highBits
            position &+= 4 &* width
        }
    }

    /// For texts shorter than a block.
    private static func masksBytewise(
        _ bytes: UnsafePointer<UInt8>, from start: Int, to end: Int
    ) -> (quotes: UInt32, backslashes: UInt32, controls: UInt32, high: UInt32) {
        var masks: (quotes: UInt32, backslashes: UInt32, controls: UInt32, high: UInt32) = (0, 0, 0, 0)
        var bit: UInt32 = 1
        for index in start..<end {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") { masks.quotes |= bit }
            if byte == UInt8(ascii: "\\") { masks.backslashes |= bit }
            if byte < 0x20 { masks.controls |= bit }
            if byte >= 0x80 { masks.high |= bit }
            bit &<<= 1
        }
        return masks
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
