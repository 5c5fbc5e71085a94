import BirdRealtime
import Glibc

/// Counts events, checks each, and measures those after the warm-up: the same as Benchmarks/measure.h. The last one ends the program.
///
/// `@unchecked Sendable`: events come one at a time.
final class Run: @unchecked Sendable {
    static let usage = "usage: swift-bench raw|json|sequence PORT BYTES WARMUP EVENTS, four positive numbers"

    let port: Int
    private let bytes: Int
    private let warmup: Int
    private let events: Int
    private let allocations = AllocationCounter()
    private var received = 0
    private var seconds = 0.0
    private var cpuSeconds = 0.0

    init(_ arguments: [String]) {
        let numbers = arguments.dropFirst(2).compactMap { Int($0) }.filter { $0 > 0 }
        guard arguments.count == 6, numbers.count == 4 else { fail(Self.usage) }
        (port, bytes, warmup, events) = (numbers[0], numbers[1], numbers[2], numbers[3])
    }

    /// Call for each event with the size of its data. A client that delivers the wrong thing is none.
    func count(_ bytesOfData: Int?) {
        guard bytesOfData == bytes else { fail("an event with unexpected data was delivered") }
        received += 1
        if received == warmup { begin() }
        if received == warmup + events { end() }
    }

    private func begin() {
        cpuSeconds = Self.cpuSeconds()
        seconds = Self.clockSeconds()
        allocations?.begin()
    }

    private func end() -> Never {
        let allocations = allocations.map { "\($0.end())" } ?? "null"
        seconds = Self.clockSeconds() - seconds
        cpuSeconds = Self.cpuSeconds() - cpuSeconds
        print(
            #"{"events": \#(events), "seconds": \#(seconds), "cpu_seconds": \#(cpuSeconds), "#
                + #""allocations": \#(allocations)}"#)
        exit(0)
    }

    private static func clockSeconds() -> Double {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
    }

    /// User and system time of all threads.
    private static func cpuSeconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
    }
}

/// Benchmarks/count_alloc.c; there only when it is preloaded.
private struct AllocationCounter {
    let begin: @convention(c) () -> Void
    let end: @convention(c) () -> UInt64

    init?() {
        // Of the whole program.
        guard let begin = dlsym(nil, "count_alloc_begin"), let end = dlsym(nil, "count_alloc_end") else { return nil }
        self.begin = unsafeBitCast(begin, to: (@convention(c) () -> Void).self)
        self.end = unsafeBitCast(end, to: (@convention(c) () -> UInt64).self)
    }
}

func fail(_ message: String) -> Never {
    let line = Array((message + "\n").utf8)
    write(STDERR_FILENO, line, line.count)
    exit(1)
}
