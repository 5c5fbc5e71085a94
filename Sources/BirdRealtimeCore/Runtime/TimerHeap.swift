/// A deadline of something on the reactor. Belongs to one heap.
final class ReactorTimer {
    fileprivate(set) var deadline = Instant(milliseconds: 0)
    fileprivate var position = -1
    let fire: (Instant) -> Void

    init(_ fire: @escaping (Instant) -> Void) {
        self.fire = fire
    }
}

/// A binary heap of timers, each at most once.
struct TimerHeap {
    private var timers: [ReactorTimer] = []

    var next: Instant? { timers.first?.deadline }

    mutating func set(_ timer: ReactorTimer, _ deadline: Instant?) {
        guard let deadline else {
            remove(timer)
            return
        }
        if timer.position < 0 {
            timer.deadline = deadline
            timer.position = timers.count
            timers.append(timer)
            siftUp(timer.position)
        } else if timer.deadline != deadline {
            timer.deadline = deadline
            siftUp(timer.position)
            siftDown(timer.position)
        }
    }

    mutating func popDue(_ now: Instant) -> ReactorTimer? {
        guard let first = timers.first, first.deadline <= now else { return nil }
        remove(first)
        return first
    }

    private mutating func remove(_ timer: ReactorTimer) {
        let position = timer.position
        guard position >= 0 else { return }
        timer.position = -1
        let last = timers.removeLast()
        guard last !== timer else { return }
        timers[position] = last
        last.position = position
        siftUp(position)
        siftDown(last.position)
    }

    private mutating func siftUp(_ start: Int) {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard timers[position].deadline < timers[parent].deadline else { return }
            swap(position, parent)
            position = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var position = start
        while true {
            var least = position
            for child in (2 * position + 1)...(2 * position + 2) where child < timers.count {
                if timers[child].deadline < timers[least].deadline { least = child }
            }
            guard least != position else { return }
            swap(position, least)
            position = least
        }
    }

    private mutating func swap(_ one: Int, _ two: Int) {
        timers.swapAt(one, two)
        timers[one].position = one
        timers[two].position = two
    }
}
