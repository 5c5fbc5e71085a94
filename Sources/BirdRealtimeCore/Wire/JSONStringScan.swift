/// The way through one JSON string: where it ends, and whether its escapes are well formed.
///
/// It goes by blocks of 64 bytes, and the work per block does not depend on how many escapes are in it: the usual payload
/// is JSON inside a string, where every second word has one.
struct JSONStringScan {
    /// Index of the closing quote; -1: malformed.
    private(set) var end = -1
    private(set) var isEscaped = false
    private(set) var sawNonASCII = false

    /// `start` is behind the opening quote.
    init(_ bytes: UnsafePointer<UInt8>, count: Int, from start: Int) {
        let width = WideBlock.byteCount
        var position = start
        // 1: the first byte of the block is escaped by the last one before it.
        var carry: UInt64 = 0
        // Where a high surrogate has already vouched for the low one.
        var pairedLow = -1
        while position < count {
            if carry == 0 {
                position = skipPlain(bytes, count: count, from: position)
            }
            let isWhole = count &- position >= width
            let masks =
                isWhole ? Masks(WideBlock(bytes + position)) : Masks(endOf: bytes, count: count, from: position)
            let escapes = Escapes(backslashes: masks.backslashes, carry: &carry, width: width)
            let stops = (masks.quotes & ~escapes.escaped) | masks.controls
            // Everything when there is no stop.
            let below = (stops &- 1) & ~stops
            sawNonASCII = sawNonASCII || masks.high & below != 0
            isEscaped = isEscaped || escapes.starts & below != 0
            var toCheck = escapes.escaped & below & ~(masks.quotes | masks.backslashes)
            while toCheck != 0 {
                let escape = position &+ toCheck.trailingZeroBitCount
                toCheck &= toCheck &- 1
                guard Self.isWellFormed(bytes, count: count, escape: escape, pairedLow: &pairedLow) else { return }
            }
            if stops != 0 {
                let stop = position &+ stops.trailingZeroBitCount
                guard bytes[stop] == UInt8(ascii: "\"") else { return }
                end = stop
                return
            }
            position &+= width
        }
    }

    /// Goes over whole blocks without anything special.
    @inline(__always)
    private mutating func skipPlain(_ bytes: UnsafePointer<UInt8>, count: Int, from start: Int) -> Int {
        var position = start
        while count &- position >= WideBlock.byteCount {
            let block = WideBlock(bytes + position)
            guard !block.hasSpecials else { return position }
            sawNonASCII = sawNonASCII || block.hasHighBits
            position &+= WideBlock.byteCount
        }
        return position
    }

    /// What matters in a string, for 64 bytes.
    private struct Masks {
        var quotes: UInt64
        var backslashes: UInt64
        var controls: UInt64
        var high: UInt64

        @inline(__always)
        init(_ block: WideBlock) {
            quotes = block.mask(of: UInt8(ascii: "\""))
            backslashes = block.mask(of: UInt8(ascii: "\\"))
            controls = block.controls
            high = block.highBits
        }

        /// For the last bytes, fewer than a block.
        @inline(__always)
        init(endOf bytes: UnsafePointer<UInt8>, count: Int, from position: Int) {
            let width = WideBlock.byteCount
            let rest = count &- position
            if count >= width {
                // Read the block that ends with them and shift out what comes before.
                self.init(WideBlock(bytes + (count &- width)))
                let shift = UInt64(truncatingIfNeeded: width &- rest)
                quotes >>= shift
                backslashes >>= shift
                controls >>= shift
                high >>= shift
            } else {
                self.init(bytewise: bytes + position, count: rest)
            }
        }

        /// For texts shorter than a block.
        @inline(never)
        private init(bytewise bytes: UnsafePointer<UInt8>, count: Int) {
            (quotes, backslashes, controls, high) = (0, 0, 0, 0)
            var bit: UInt64 = 1
            for index in 0..<count {
                let byte = bytes[index]
                if byte == UInt8(ascii: "\"") { quotes |= bit }
                if byte == UInt8(ascii: "\\") { backslashes |= bit }
                if byte < 0x20 { controls |= bit }
                if byte >= 0x80 { high |= bit }
                bit &<<= 1
            }
        }
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
