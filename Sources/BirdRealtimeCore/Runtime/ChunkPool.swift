/// Chunks between two uses, so that a steady flow of records allocates nothing. One pool serves the process: what a burst on one client
/// took is there for the next client, and its memory is bounded as a whole.
enum ChunkPool {
    private static let idleMax = 64

    private static let monitor = Monitor()
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var idle: [[RecordChunk]] = RecordChunk.sizes.map { _ in [] }

    /// An empty chunk with room for a record with `stringBytes`, of `preferredBytes` if that is more.
    static func take(for client: Client, stringBytes: Int, preferredBytes: Int, isDroppable: Bool = false)
        -> RecordChunk
    {
        let bytes = max(stringBytes + RecordChunk.stride, preferredBytes)
        let chunk: RecordChunk
        if let size = RecordChunk.sizes.firstIndex(where: { $0 >= bytes }) {
            chunk =
                monitor.withLock { idle[size].popLast() } ?? RecordChunk(capacityBytes: RecordChunk.sizes[size])
        } else {
            chunk = RecordChunk(capacityBytes: bytes)
        }
        chunk.begin(for: client, isDroppable: isDroppable)
        return chunk
    }

    static func give(_ chunk: RecordChunk) {
        chunk.reset()
        guard let size = RecordChunk.sizes.firstIndex(of: chunk.capacityBytes) else { return }
        monitor.withLock {
            if idle[size].count < idleMax { idle[size].append(chunk) }
        }
    }

    static func lockForFork() { monitor.lock() }
    static func unlockAfterFork() { monitor.unlock() }
    static func unlockInChild() { monitor.unlockInChild() }
}
