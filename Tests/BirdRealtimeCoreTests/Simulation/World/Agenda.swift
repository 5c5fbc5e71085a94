/// What is going to happen, earliest first; of equals, what was added first.
struct Agenda<Item> {
    private struct Entry {
        var time: Int64
        var number: Int
        var item: Item

        func isBefore(_ other: Entry) -> Bool { (time, number) < (other.time, other.number) }
    }

    private var entries: [Entry] = []
    private var added = 0

    var firstTime: Int64? { entries.first?.time }

    mutating func add(_ item: Item, at time: Int64) {
        added += 1
        entries.append(Entry(time: time, number: added, item: item))
        var child = entries.count - 1
        while child > 0, entries[child].isBefore(entries[(child - 1) / 2]) {
            entries.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func popFirst() -> Item? {
        guard let first = entries.first, let last = entries.popLast() else { return nil }
        guard !entries.isEmpty else { return first.item }
        entries[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < entries.count && entries[child].isBefore(entries[least]) {
                least = child
            }
            guard least != parent else { return first.item }
            entries.swapAt(parent, least)
            parent = least
        }
    }
}
