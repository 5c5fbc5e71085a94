import CLinux
import Glibc

/// Standard error: each line in one write. Nobody may be reading it: after a short wait lines are dropped, so that files are not held up.
final class ConsoleSink: LogSink, @unchecked Sendable {
    static let shared = ConsoleSink()

    private static let waitMsMax: Int32 = 100
    /// While nothing could be written there is no wait.
    private var waitMs = waitMsMax

    private init() { super.init(title: "Standard error", option: "log_console") }

    override func put(_ lines: ArraySlice<LogLine>) -> (count: Int, problem: SinkProblem?) {
        for (position, line) in lines.enumerated() {
            if let problem = put(line.bytes) { return (position, .cannotWrite(problem)) }
        }
        return (lines.count, nil)
    }

    private func put(_ bytes: [UInt8]) -> String? {
        // A host that closed it may have given the number to something else, which has close-on-exec, as standard error never has.
        guard birdlinux_is_inherited_by_exec(STDERR_FILENO) != 0 else { return "it is closed" }
        var rest = bytes[...]
        while !rest.isEmpty {
            // A pipe that can be written to takes a line (less than PIPE_BUF) at once.
            var wanted = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
            guard poll(&wanted, 1, waitMs) > 0 else {
                waitMs = 0
                return "nobody reads it"
            }
            let written = rest.withUnsafeBytes { birdlinux_write_quietly(STDERR_FILENO, $0.baseAddress, $0.count) }
            if written < 0, -written == EAGAIN { continue }
            guard written > 0 else { return Errno(code: Int32(-written)).message }
            rest = rest.dropFirst(written)
        }
        waitMs = Self.waitMsMax
        return nil
    }
}
