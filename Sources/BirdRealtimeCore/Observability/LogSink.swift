/// One line that waits to be written.
struct LogLine: Sendable {
    let bytes: [UInt8]
    /// Whose it is: told, and counted, if it is lost.
    let log: Log?
}

/// Why a sink is not as it should be.
enum SinkProblem {
    case cannotWrite(String)
    case cannotRename(String)

    var words: String {
        switch self {
        case .cannotWrite(let why): "cannot be written: \(why). Entries are dropped until it can."
        case .cannotRename(let why): "cannot be renamed: \(why). It grows beyond its limits until it can."
        }
    }
}

/// Where lines go. What cannot be written is dropped and counted; the first loss of an episode is told, by the other sinks and as an error
/// record, and the first line after it says how many are missing.
/// `@unchecked Sendable`: what waits is guarded by the monitor of `LogWriter`, everything else belongs to the thread that writes.
class LogSink: @unchecked Sendable {
    /// What messages call it: "The log file /var/log/x".
    let title: String
    /// The option that a fault names.
    let option: String

    // Guarded.
    private var waiting: [LogLine] = []
    private var waitingBytes = 0
    private var lost = 0
    /// Lines taken in, and those of them that have been written or dropped.
    private(set) var posted = 0
    private(set) var written = 0

    // Writing thread.
    private var isFailing = false

    init(title: String, option: String) {
        self.title = title
        self.option = option
    }

    /// Writes whole lines, as many as possible, and says why not all.
    func put(_ lines: ArraySlice<LogLine>) -> (count: Int, problem: SinkProblem?) { (0, nil) }

    // MARK: Monitor held

    /// False: there is no room.
    func add(_ line: LogLine) -> Bool {
        guard waitingBytes + line.bytes.count <= LogWriter.bufferBytesMax else {
            lost += 1
            return false
        }
        posted += 1
        waiting.append(line)
        waitingBytes += line.bytes.count
        return true
    }

    var isEmpty: Bool { waiting.isEmpty }

    func take() -> (lines: [LogLine], lost: Int) {
        defer { (waiting, waitingBytes, lost) = ([], 0, 0) }
        return (waiting, lost)
    }

    func wrote(_ count: Int, missing: Int) {
        written += count
        lost += missing
    }

    // MARK: Writing thread

    /// Returns how many lines in all are missing now.
    func write(_ lines: [LogLine], lost: Int) -> Int {
        let notice = lost == 0 ? [] : [LogLine(bytes: Log.line(.warn, "\(lost) entries are missing here"), log: nil)]
        let all = notice + lines
        let (count, problem) = put(all[...])
        let isNoticed = count >= notice.count
        for line in all[count...] { line.log?.countDropped() }
        tell(problem, lost, lines)
        return (isNoticed ? 0 : lost) + all[count...].reduce(0) { $0 + ($1.log == nil ? 0 : 1) }
    }

    private func tell(_ problem: SinkProblem?, _ lost: Int, _ lines: [LogLine]) {
        guard (problem != nil) != isFailing else { return }
        isFailing = problem != nil
        var told: [ObjectIdentifier: Log] = [:]
        for line in lines { if let log = line.log { told[ObjectIdentifier(log)] = log } }
        for log in told.values {
            if let problem {
                log.sinkFailed(self, "\(title) \(problem.words)")
            } else {
                log.sinkRecovered(self, "\(title) is well again; \(lost) entries are missing in it.")
            }
        }
    }
}
