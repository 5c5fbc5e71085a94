/// The chunks of one client that wait in a queue, first in first out. Guarded by the monitor of the queue.
final class RecordLane {
    // One order over both by the chunks' numbers. Apart, so that the oldest event is found without looking for it.
    private var droppable = Ring<RecordChunk>()
    private var others = Ring<RecordChunk>()
    private var lastNumber: UInt64 = 0
    /// In the queue's list of lanes, perhaps although nothing waits.
    var isListed = false

    var isEmpty: Bool { droppable.isEmpty && others.isEmpty }
    var hasDroppable: Bool { !droppable.isEmpty }

    func append(_ chunk: RecordChunk) {
        // A flood: from here on there is room for a full queue.
        if droppable.count == ChunkShelf.floodChunks { droppable.reserve(ChunkShelf.chunksMax) }
        if others.count == ChunkShelf.floodChunks { others.reserve(ChunkShelf.chunksMax) }
        lastNumber += 1
        chunk.number = lastNumber
        if chunk.isDroppable { droppable.append(chunk) } else { others.append(chunk) }
    }

    /// Back to where it was taken from.
    func giveBack(_ chunk: RecordChunk) {
        if chunk.isDroppable { droppable.prepend(chunk) } else { others.prepend(chunk) }
    }

    func popFirst() -> RecordChunk? {
        guard let event = droppable.first else { return others.popFirst() }
        guard let other = others.first, other.number < event.number else { return droppable.popFirst() }
        return others.popFirst()
    }

    /// The newest chunk, if it is of this kind and has room to go on with.
    func popLast(isDroppable: Bool, roomForStringBytes bytes: Int) -> RecordChunk? {
        guard let last = isDroppable ? droppable.last : others.last, last.number == lastNumber,
            last.hasRoom(forStringBytes: bytes)
        else { return nil }
        return isDroppable ? droppable.popLast() : others.popLast()
    }

    /// Drops the oldest event. Returns its bytes, and its chunk if that is empty now and has left; nil: there is none.
    func dropOldest() -> (bytes: Int, emptied: RecordChunk?)? {
        guard let chunk = droppable.first else { return nil }
        let bytes = chunk.dropFirst()
        return (bytes, chunk.isDelivered ? droppable.popFirst() : nil)
    }
}
