/// Deadlines of many holders, earliest first. An entry is valid while its holder still has the same ticket; entries that
/// are not are left in place and skipped by whoever takes them out.
struct DeadlineHeap: Sendable {
    struct Entry: Sendable {
        var due: Instant
        var applicant: Applicant
        var ticket: UInt64
    }

    private var entries: [Entry] = []

    var count: Int { entries.count }
    var first: Entry? { entries.first }

    mutating func push(_ entry: Entry) {
        entries.append(entry)
        var child = entries.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard entries[child].due < entries[parent].due else { break }
            entries.swapAt(child, parent)
            child = parent
        }
    }

    mutating func popFirst() {
        guard let last = entries.popLast(), !entries.isEmpty else {
            // Mostly there is none, for hours.
            entries = []
            return
        }
        entries[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < entries.count {
                if entries[child].due < entries[least].due {
                    least = child
                }
            }
            guard least != parent else { return }
            entries.swapAt(parent, least)
            parent = least
        }
    }

    /// Keeps only valid entries.
    mutating func compact(_ isValid: (Entry) -> Bool) {
        let kept = entries.filter(isValid)
        entries.removeAll(keepingCapacity: true)
        for entry in kept {
            push(entry)
        }
    }
}
