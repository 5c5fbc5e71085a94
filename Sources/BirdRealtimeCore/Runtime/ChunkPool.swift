/// Chunks between two uses, so that a steady flow of records allocates nothing. One pool serves the process: what a burst on one client
/// took is there for the next client, and its memory is bounded as a whole.
enum ChunkPool {
    /// How long a chunk that nobody needed stays, at least.
    private static let idleMs: Int64 = 10_000

    private static let monitor = Monitor()
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var shelves = RecordChunk.sizes.map { _ in ChunkShelf() }
    nonisolated(unsafe) private static var nextGivingBack = Instant(milliseconds: 0)

    /// An empty chunk with room for a record with `stringBytes`, of `preferredBytes` if that is more.
    static func take(for client: Client, stringBytes: Int, preferredBytes: Int, isDroppable: Bool = false)
        -> RecordChunk
    {
        let bytes = max(stringBytes + RecordChunk.stride, preferredBytes)
        let chunk: RecordChunk
        if let size = RecordChunk.sizes.firstIndex(where: { $0 >= bytes }) {
            chunk = take(size)
        } else {
            chunk = RecordChunk(capacityBytes: bytes)
        }
        chunk.begin(for: client, isDroppable: isDroppable)
        return chunk
    }

    private static func take(_ size: Int) -> RecordChunk {
        let (idle, missing) = monitor.withLock { shelves[size].take() }
        if let idle { return idle }
        for _ in 1..<missing { give(RecordChunk(capacityBytes: RecordChunk.sizes[size])) }
        return RecordChunk(capacityBytes: RecordChunk.sizes[size])
    }

    static func give(_ chunk: RecordChunk) {
        chunk.reset()
        guard let size = RecordChunk.sizes.firstIndex(of: chunk.capacityBytes) else { return }
        monitor.withLock { shelves[size].give(chunk) }
    }

    /// Memory of a burst that is over goes back. Call now and then: what lay idle all the time since it was done last is freed.
    static func giveBack(_ now: Instant) {
        let freed = monitor.withLock { () -> [RecordChunk] in
            guard now >= nextGivingBack else { return [] }
            nextGivingBack = now + idleMs
            return shelves.indices.flatMap { shelves[$0].giveBack() }
        }
        withExtendedLifetime(freed) {}
    }

    static func lockForFork() { monitor.lock() }
    static func unlockAfterFork() { monitor.unlock() }
    static func unlockInChild() { monitor.unlockInChild() }
}

/// Chunks of one size. The one that was used last goes out first: it is still in a cache.
struct ChunkShelf {
    static let chunksMax = 128
    /// So many at work at once are a flood, and from then on there are as many as a full queue needs (queue_bytes_max is 8 MiB unless
    /// set): the first time that a program falls behind is no time for allocations. What is not used takes address space only.
    static let floodChunks = 8
    static let fullQueueChunks = 80

    private var chunks: [RecordChunk] = []
    /// With those at work.
    private var totalCount = 0
    /// The fewest that lay here since memory was given back last: so many could have been missing.
    private var unusedCount = 0

    init() { chunks.reserveCapacity(Self.chunksMax) }

    /// Or how many have to be made, the first of them to be used at once.
    mutating func take() -> (idle: RecordChunk?, missing: Int) {
        if let chunk = chunks.popLast() {
            unusedCount = min(unusedCount, chunks.count)
            return (chunk, 0)
        }
        unusedCount = 0
        let missing = totalCount < Self.floodChunks ? 1 : max(1, Self.fullQueueChunks - totalCount)
        totalCount += missing
        return (nil, missing)
    }

    mutating func give(_ chunk: RecordChunk) {
        if chunks.count < Self.chunksMax { chunks.append(chunk) } else { totalCount -= 1 }
    }

    /// Takes out what has lain here all the time since this was done last.
    mutating func giveBack() -> [RecordChunk] {
        let freed = Array(chunks.prefix(unusedCount))
        chunks.removeFirst(unusedCount)
        totalCount -= unusedCount
        unusedCount = chunks.count
        return freed
    }
}
