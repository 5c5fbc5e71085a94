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
