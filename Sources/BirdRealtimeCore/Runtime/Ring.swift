/// A first-in first-out queue over one array that grows by doubling and keeps its memory.
struct Ring<Element>: ~Copyable {
    private var storage: [Element?] = []
    private var head = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ element: Element) {
        if count == storage.count { grow() }
        storage[(head + count) & (storage.count - 1)] = element
        count += 1
    }

    mutating func prepend(_ element: Element) {
        if count == storage.count { grow() }
        head = (head - 1) & (storage.count - 1)
        storage[head] = element
        count += 1
    }

    mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = storage[head]
        storage[head] = nil
        head = (head + 1) & (storage.count - 1)
        count -= 1
        return element
    }

    var first: Element? { count == 0 ? nil : storage[head] }

    var last: Element? { count == 0 ? nil : storage[(head + count - 1) & (storage.count - 1)] }

    mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        let index = (head + count - 1) & (storage.count - 1)
        let element = storage[index]
        storage[index] = nil
        count -= 1
        return element
    }

    /// Room for so many.
    mutating func reserve(_ elements: Int) {
        while storage.count < elements { grow() }
    }

    private mutating func grow() {
        var larger: [Element?] = []
        larger.reserveCapacity(max(8, storage.count * 2))
        for offset in 0..<count { larger.append(storage[(head + offset) & (storage.count - 1)]) }
        while larger.count < max(8, storage.count * 2) { larger.append(nil) }
        storage = larger
        head = 0
    }
}
