import Synchronization

/// Tells when all chunks of records have gone that were begun before some moment, without a list of them: each counts in the era in which
/// it was begun, and a new era begins only when the one before the present has no chunk left.
struct ChunkEras: ~Copyable {
    private let era = Atomic<Int>(1)
    private let evenChunks = Atomic<Int>(0)
    private let oddChunks = Atomic<Int>(0)

    var current: Int { era.load(ordering: .sequentiallyConsistent) }

    /// A chunk is begun, on any thread. Returns its era.
    func begin() -> Int {
        while true {
            let mine = current
            count(mine, 1)
            // Else another era has begun in between, which may not have seen this one.
            if current == mine { return mine }
            count(mine, -1)
        }
    }

    func end(_ era: Int) { count(era, -1) }

    /// By one thread at a time. Twice, so that what has just become old is over at once when there is no chunk at all.
    func advance() {
        for _ in 0..<2 {
            let now = current
            guard chunks(now - 1) == 0 else { return }
            era.store(now + 1, ordering: .sequentiallyConsistent)
        }
    }

    /// No chunk of that era, or of one before it, is left.
    func isOver(_ era: Int) -> Bool { current >= era + 2 }

    private func count(_ era: Int, _ change: Int) {
        if era & 1 == 0 {
            evenChunks.wrappingAdd(change, ordering: .sequentiallyConsistent)
        } else {
            oddChunks.wrappingAdd(change, ordering: .sequentiallyConsistent)
        }
    }

    private func chunks(_ era: Int) -> Int {
        era & 1 == 0
            ? evenChunks.load(ordering: .sequentiallyConsistent) : oddChunks.load(ordering: .sequentiallyConsistent)
    }
}
