/// Chunks between two uses, so that a steady flow of records allocates nothing. One pool serves the process: what a burst on one client
/// took is there for the next client, and its memory is bounded as a whole.
enum ChunkPool {
    private static let idleMax = 64

    private static let monitor = Monitor()
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var small: [RecordChunk] = []
    nonisolated(unsafe) private static var normal: [RecordChunk] = []

    /// An empty chunk with room for a record with `stringBytes`; a large one when more records are to be expected.
    static func take(for client: Client, stringBytes: Int, isBusy: Bool) -> RecordChunk {
        let bytes = stringBytes + RecordChunk.stride
        let size =
            if bytes > RecordChunk.bytesNormal { bytes } else if isBusy || bytes > RecordChunk.bytesSmall {
                RecordChunk.bytesNormal
            } else { RecordChunk.bytesSmall }
        let idle: RecordChunk? = monitor.withLock {
            switch size {
            case RecordChunk.bytesSmall: small.popLast()
            case RecordChunk.bytesNormal: normal.popLast()
            default: nil
            }
        }
        let chunk = idle ?? RecordChunk(capacityBytes: size)
        chunk.begin(for: client)
        return chunk
    }

    static func give(_ chunk: RecordChunk) {
        chunk.reset()
        monitor.withLock {
            switch chunk.capacityBytes {
            case RecordChunk.bytesSmall where small.count < idleMax: small.append(chunk)
            case RecordChunk.bytesNormal where normal.count < idleMax: normal.append(chunk)
            default: break
            }
        }
    }

    static func lockForFork() { monitor.lock() }
    static func unlockAfterFork() { monitor.unlock() }
    static func unlockInChild() { monitor.unlockInChild() }
}
