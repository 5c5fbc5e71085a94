#if arch(x86_64)
    import _Builtin_intrinsics.intel.sse2
#endif

/// Sixteen bytes of text examined at once. Masks have one bit per byte, bit 0 for the first.
///
/// The standard library's SIMD comparisons of bytes are loops over lanes and it has no way from a lane mask to a bit mask,
/// so x86-64 goes through the compiler's own intrinsics (SSE2, which every x86-64 has).
#if arch(x86_64)
    package typealias ByteBlock = VectorBlock
#else
    package typealias ByteBlock = WordBlock
#endif

#if arch(x86_64)
    package struct VectorBlock {
        package static let byteCount = 16

        private let lanes: __m128i

        /// 16 bytes must be readable.
        @inline(__always)
        package init(_ pointer: UnsafePointer<UInt8>) {
            lanes = UnsafeRawPointer(pointer).loadUnaligned(as: __m128i.self)
        }

        @inline(__always)
        private init(lanes: __m128i) {
            self.lanes = lanes
        }

        /// 16 bytes must be writable.
        @inline(__always)
        package func store(to pointer: UnsafeMutablePointer<UInt8>) {
            UnsafeMutableRawPointer(pointer).storeBytes(of: lanes, as: __m128i.self)
        }

        @inline(__always)
        package static func | (left: VectorBlock, right: VectorBlock) -> VectorBlock {
            VectorBlock(lanes: _mm_or_si128(left.lanes, right.lanes))
        }

        /// The bytes of `left` where `mask` has ones, those of `right` where it has zeros.
        @inline(__always)
        package static func select(_ mask: VectorBlock, _ left: VectorBlock, _ right: VectorBlock) -> VectorBlock {
            VectorBlock(
                lanes: _mm_or_si128(_mm_and_si128(mask.lanes, left.lanes), _mm_andnot_si128(mask.lanes, right.lanes)))
        }

        @inline(__always)
        package func mask(of byte: UInt8) -> UInt32 {
            Self.bits(equals(byte))
        }

        /// The high bit is set for bytes that end a run of plain characters in a JSON string: quote, backslash, control
        /// characters. (Blocks can be combined with `|` before they are asked.)
        @inline(__always)
        package var specialLanes: VectorBlock {
            VectorBlock(lanes: _mm_or_si128(_mm_or_si128(equals(0x22), equals(0x5C)), controlLanes))
        }

        /// The high bit is set for control characters and for what is not ASCII, which as signed numbers are below the blank.
        @inline(__always)
        package var unusualLanes: VectorBlock {
            VectorBlock(lanes: _mm_cmplt_epi8(lanes, _mm_set1_epi8(0x20)))
        }

        /// The high bit is set for specials and for what is not ASCII. With one bit turned the quote is where the blank was, and one
        /// comparison finds it together with the unusual.
        @inline(__always)
        package var notPlainASCIILanes: VectorBlock {
            let turned = _mm_xor_si128(lanes, _mm_set1_epi8(0x02))
            let isBackslash = _mm_cmpeq_epi8(turned, _mm_set1_epi8(0x5C ^ 0x02))
            return VectorBlock(lanes: _mm_or_si128(_mm_cmplt_epi8(turned, _mm_set1_epi8(0x21)), isBackslash))
        }

        @inline(__always)
        package var controls: UInt32 {
            Self.bits(controlLanes)
        }

        /// Characters that stand for themselves behind a backslash: quote, backslash, slash.
        @inline(__always)
        package var selfEscapes: UInt32 {
            Self.bits(_mm_or_si128(_mm_or_si128(equals(0x22), equals(0x5C)), equals(0x2F)))
        }

        /// Bytes with the high bit set.
        @inline(__always)
        package var highBits: UInt32 {
            Self.bits(lanes)
        }

        @inline(__always)
        private var controlLanes: __m128i {
            _mm_cmpeq_epi8(_mm_min_epu8(lanes, _mm_set1_epi8(0x1F)), lanes)
        }

        @inline(__always)
        private func equals(_ byte: UInt8) -> __m128i {
            _mm_cmpeq_epi8(lanes, _mm_set1_epi8(Int8(bitPattern: byte)))
        }

        @inline(__always)
        private static func bits(_ lanes: __m128i) -> UInt32 {
            UInt32(bitPattern: _mm_movemask_epi8(lanes))
        }
    }
#endif

/// The same with two 64-bit words, for every other processor. (Tests compare the two.)
package struct WordBlock {
    package static let byteCount = 16

    private let low: UInt64
    private let high: UInt64

    /// 16 bytes must be readable.
    @inline(__always)
    package init(_ pointer: UnsafePointer<UInt8>) {
        let raw = UnsafeRawPointer(pointer)
        low = UInt64(littleEndian: raw.loadUnaligned(as: UInt64.self))
        high = UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    @inline(__always)
    private init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// 16 bytes must be writable.
    @inline(__always)
    package func store(to pointer: UnsafeMutablePointer<UInt8>) {
        let raw = UnsafeMutableRawPointer(pointer)
        raw.storeBytes(of: low.littleEndian, as: UInt64.self)
        raw.storeBytes(of: high.littleEndian, toByteOffset: 8, as: UInt64.self)
    }

    @inline(__always)
    package static func | (left: WordBlock, right: WordBlock) -> WordBlock {
        WordBlock(low: left.low | right.low, high: left.high | right.high)
    }

    @inline(__always)
    package static func select(_ mask: WordBlock, _ left: WordBlock, _ right: WordBlock) -> WordBlock {
        WordBlock(
            low: (mask.low & left.low) | (~mask.low & right.low),
            high: (mask.high & left.high) | (~mask.high & right.high))
    }

    @inline(__always)
    package func mask(of byte: UInt8) -> UInt32 {
        map { Self.equals($0, byte) }.highBits
    }

    @inline(__always)
    package var specialLanes: WordBlock {
        map { Self.equals($0, 0x22) | Self.equals($0, 0x5C) | Self.controls($0) }
    }

    @inline(__always)
    package var unusualLanes: WordBlock {
        map { Self.controls($0) | $0 }
    }

    @inline(__always)
    package var notPlainASCIILanes: WordBlock { specialLanes | self }

    @inline(__always)
    package var controls: UInt32 {
        map(Self.controls).highBits
    }

    @inline(__always)
    package var selfEscapes: UInt32 {
        map { Self.equals($0, 0x22) | Self.equals($0, 0x5C) | Self.equals($0, 0x2F) }.highBits
    }

    @inline(__always)
    package var highBits: UInt32 {
        Self.bits(low) | Self.bits(high) << 8
    }

    @inline(__always)
    private func map(_ transform: (UInt64) -> UInt64) -> WordBlock {
        WordBlock(low: transform(low), high: transform(high))
    }

    private static let highs: UInt64 = 0x8080_8080_8080_8080
    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// The high bit of each byte that equals `byte`.
    @inline(__always)
    private static func equals(_ word: UInt64, _ byte: UInt8) -> UInt64 {
        let difference = word ^ (ones &* UInt64(byte))
        return ~(((difference & ~highs) &+ ~highs) | difference) & highs
    }

    /// The high bit of each byte below 0x20.
    @inline(__always)
    private static func controls(_ word: UInt64) -> UInt64 {
        ~(((word & ~highs) &+ (ones &* 0x60)) | word) & highs
    }

    /// Gathers the high bits of the eight bytes: the factor moves the bit of byte i to bit 56 + i, and no two sums collide.
    @inline(__always)
    private static func bits(_ word: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: (((word & highs) >> 7) &* 0x0102_0408_1020_4080) >> 56)
    }
}
