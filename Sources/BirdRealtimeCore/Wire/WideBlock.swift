/// Four blocks, with masks of 64 bits.
struct WideBlock {
    static let byteCount = 4 * ByteBlock.byteCount

    private let blocks: (ByteBlock, ByteBlock, ByteBlock, ByteBlock)

    /// 64 bytes must be readable.
    @inline(__always)
    init(_ pointer: UnsafePointer<UInt8>) {
        let width = ByteBlock.byteCount
        blocks = (
            ByteBlock(pointer), ByteBlock(pointer + width), ByteBlock(pointer + 2 &* width),
            ByteBlock(pointer + 3 &* width)
        )
    }

    /// Fewer bytes, and blanks behind them.
    @inline(never)
    init(short pointer: UnsafePointer<UInt8>, count: Int) {
        let blank = UInt64(0x2020_2020_2020_2020)
        var text = (blank, blank, blank, blank, blank, blank, blank, blank)
        self = withUnsafeMutablePointer(to: &text) { text in
            let copy = UnsafeMutableRawPointer(text).assumingMemoryBound(to: UInt8.self)
            copy.update(from: pointer, count: count)
            return WideBlock(copy)
        }
    }

    /// No quote, backslash or control character, and nothing but ASCII.
    @inline(__always)
    var isPlainASCII: Bool {
        let first = blocks.0.notPlainASCIILanes | blocks.1.notPlainASCIILanes
        let second = blocks.2.notPlainASCIILanes | blocks.3.notPlainASCIILanes
        return (first | second).highBits == 0
    }

    /// Control characters, or what is not ASCII.
    @inline(__always)
    var hasUnusual: Bool {
        let first = blocks.0.unusualLanes | blocks.1.unusualLanes
        let second = blocks.2.unusualLanes | blocks.3.unusualLanes
        return (first | second).highBits != 0
    }

    @inline(__always)
    var hasSpecials: Bool {
        let first = blocks.0.specialLanes | blocks.1.specialLanes
        let second = blocks.2.specialLanes | blocks.3.specialLanes
        return (first | second).highBits != 0
    }

    @inline(__always)
    var hasHighBits: Bool {
        (blocks.0 | blocks.1 | blocks.2 | blocks.3).highBits != 0
    }

    @inline(__always)
    func mask(of byte: UInt8) -> UInt64 {
        mask { $0.mask(of: byte) }
    }

    @inline(__always)
    var controls: UInt64 {
        mask { $0.controls }
    }

    @inline(__always)
    var highBits: UInt64 {
        mask { $0.highBits }
    }

    @inline(__always)
    private func mask(_ part: (ByteBlock) -> UInt32) -> UInt64 {
        let low = part(blocks.0) | part(blocks.1) &<< 16
        let high = part(blocks.2) | part(blocks.3) &<< 16
        return UInt64(low) | UInt64(high) &<< 32
    }
}
