import CLinux
import Glibc

/// Writes lines where that can hold up nobody: on a thread of its own while clients are connected, with a bound on what waits. Before the
/// first connect and after the last client there is no such thread, and whoever logs writes.
enum LogWriter {
    /// Lines that wait for one sink.
    static let bufferBytesMax = 1_048_576
    /// How long the end of a client waits for a disk.
    private static let flushMsMax: Int64 = 1_000

    private static let monitor = Monitor()
    // Guarded by `monitor`.
    nonisolated(unsafe) private static var sinks = Ring<LogSink>()
    nonisolated(unsafe) private static var clients = 0
    nonisolated(unsafe) private static var thread: pthread_t?
    nonisolated(unsafe) private static var isWriting = false
    /// A thread of an earlier period, be it in a forked child, touches nothing.
    nonisolated(unsafe) private static var period: UInt = 0

    /// A client is connected from now on.
    static func join() { monitor.withLock { clients += 1 } }

    /// The last client ends the thread.
    static func leave() {
        let ended = monitor.withLock { () -> pthread_t? in
            clients -= 1
            guard clients == 0 else { return nil }
            period += 1
            monitor.signalAll()
            defer { thread = nil }
            return thread
        }
        guard let ended else { return }
        // One that a disk holds up ends by itself, and touches nothing then.
        if monitor.withLock({ isWriting }) { pthread_detach(ended) } else { pthread_join(ended, nil) }
    }

    static func post(_ line: LogLine, to sink: LogSink) {
        let isAdded = monitor.withLock { () -> Bool in
            let isFirst = sink.isEmpty
            guard sink.add(line) else { return false }
            if isFirst { sinks.append(sink) }
            if clients > 0, thread != nil || startThread() {
                monitor.signalAll()
            } else if !isWriting {
                writeAll()
            }
            return true
        }
        if !isAdded { line.log?.countDropped() }
    }

    /// Waits until what was posted to these sinks has been written.
    static func flush(_ flushed: [LogSink], timeoutMs: Int64 = flushMsMax) {
        monitor.withLock {
            let wanted = flushed.map { ($0, $0.posted) }
            _ = monitor.wait(timeoutMs: timeoutMs) { wanted.allSatisfy { $0.written >= $1 } }
        }
    }

    /// The same for every sink, at the end of the process.
    static func flushAll(timeoutMs: Int64) {
        monitor.withLock { _ = monitor.wait(timeoutMs: timeoutMs) { sinks.isEmpty && !isWriting } }
    }

    /// Monitor held, which is given up while a sink writes.
    private static func writeAll() {
        isWriting = true
        let mine = period
        while let sink = sinks.popFirst() {
            let (lines, lost) = sink.take()
            monitor.unlock()
            let missing = sink.write(lines, lost: lost)
            monitor.lock()
            sink.wrote(lines.count, missing: missing)
            monitor.signalAll()
            guard mine == period || clients == 0 else { break }
        }
        isWriting = false
        monitor.signalAll()
    }

    // MARK: The thread

    /// Monitor held.
    private static func startThread() -> Bool {
        var started = pthread_t()
        let error = birdlinux_thread_start(
            &started, "bird-log",
            { argument in
                LogWriter.run(period: UInt(bitPattern: argument) - 1)
                return nil
            }, UnsafeMutableRawPointer(bitPattern: period + 1))
        if error == 0 { thread = started }
        return error == 0
    }

    private static func run(period mine: UInt) {
        monitor.withLock {
            while true {
                _ = monitor.wait(timeoutMs: -1) { period != mine || (!sinks.isEmpty && !isWriting) }
                guard period == mine else { return }
                writeAll()
            }
        }
    }

    // MARK: Forks

    /// No line is in the middle of being written, unless a disk takes very long.
    static func lockForFork() {
        monitor.lock()
        _ = monitor.wait(timeoutMs: flushMsMax) { !isWriting }
    }

    static func unlockAfterFork() { monitor.unlock() }

    /// What waits is the parent's, and written there.
    static func forgetInChild() {
        while let sink = sinks.popFirst() { _ = sink.take() }
        clients = 0
        thread = nil
        isWriting = false
        period += 1
    }

    static func unlockInChild() { monitor.unlockInChild() }
}
