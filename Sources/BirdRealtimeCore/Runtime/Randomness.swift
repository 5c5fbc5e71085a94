import CSodium

/// Unpredictable numbers (RFC 6455 10.3 for masks; jitter). Reactor thread of any reactor: libsodium's generator is safe for use by threads.
enum Randomness {
    static func next() -> UInt32 { randombytes_random() }
    /// Keys a hash table.
    static func seed() -> UInt64 { UInt64(randombytes_random()) << 32 | UInt64(randombytes_random()) }
}

struct SystemRandomness: RandomNumberGenerator {
    mutating func next() -> UInt64 { Randomness.seed() }
}
