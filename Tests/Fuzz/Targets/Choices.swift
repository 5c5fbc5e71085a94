/// Choices and texts read out of the fuzzer's bytes. When they are used up, everything is zero and empty.
struct Choices {
    private var rest: Slice<UnsafeRawBufferPointer>

    init(_ input: UnsafeRawBufferPointer) { rest = input[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func bool() -> Bool { byte() & 1 == 1 }

    mutating func word() -> UInt64 { (0..<8).reduce(0) { word, _ in word << 8 | UInt64(byte()) } }

    /// Small numbers, and those at the edges.
    mutating func number() -> Int64 {
        let edges: [Int64] = [
            -1, 0, 1, 999, 1_000, 30_000, 1 << 20, Int64(Int32.max), Int64(UInt32.max), .max, .min, .max - 1, -1_000,
        ]
        let choice = Int(byte())
        return choice < edges.count ? edges[choice] : Int64(choice - edges.count)
    }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[Int(byte()) % elements.count] }

    /// The bytes to choose from, and how many of them: at most 255, or 64 KiB with `isLong`.
    mutating func bytes(isLong: Bool = false) -> [UInt8] {
        let count = isLong ? Int(byte()) << 8 | Int(byte()) : Int(byte())
        let taken = Array(rest.prefix(count))
        rest = rest.dropFirst(count)
        return taken
    }

    mutating func text() -> String { String(decoding: bytes(), as: UTF8.self) }

    /// All that is left.
    mutating func everything() -> [UInt8] {
        defer { rest = rest[rest.endIndex...] }
        return Array(rest)
    }
}
