import CSodium

enum Randomness {
    /// Keys the hash tables of this process, so that strangers cannot choose names that collide.
    static let seed = UInt64(randombytes_random()) << 32 | UInt64(randombytes_random())
}

/// Random numbers for one thread. The kernel is asked for many at once.
struct RandomSource: RandomNumberGenerator {
    private static let wordsMax = 32

    private var words: [UInt64] = []

    mutating func next() -> UInt64 {
        while true {
            if let word = words.popLast() { return word }
            words = Array(unsafeUninitializedCapacity: Self.wordsMax) { buffer, count in
                guard let base = buffer.baseAddress else { return }
                randombytes_buf(base, buffer.count * MemoryLayout<UInt64>.size)
                count = buffer.count
            }
        }
    }

    /// Of a frame (RFC 6455 section 5.3).
    mutating func maskKey() -> UInt32 { UInt32(truncatingIfNeeded: next()) }
}
