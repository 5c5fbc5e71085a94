/// Which bytes of a block are escaped, by the parity of the runs of backslashes before them.
struct Escapes {
    /// Backslashes that begin an escape.
    let starts: UInt64
    /// The characters behind them.
    let escaped: UInt64

    /// `carry` is 1 when the first byte of the block is escaped by the last one before it, and becomes the same for the next block.
    /// `width`: bytes in the block, at most 64.
    @inline(__always)
    init(backslashes: UInt64, carry: inout UInt64, width: Int) {
        // Subtracting the starts of runs from the odd positions borrows through each run, which gives the parity of its
        // length without a loop.
        let odd: UInt64 = 0xAAAA_AAAA_AAAA_AAAA
        let free = backslashes & ~carry
        let ends = (((free &<< 1) | odd) &- free) ^ odd
        escaped = (ends ^ (backslashes | carry)) & (~0 &>> UInt64(truncatingIfNeeded: 64 &- width))
        starts = ends & backslashes
        carry = (starts &>> UInt64(truncatingIfNeeded: width &- 1)) & 1
    }
}
