import CBirdRealtimeABI
import CLinux
import Glibc

/// A file that begins anew when it is old or large: PATH is the newest, PATH.1 the one before it, and so on. Any number of processes may
/// write to one path: each takes a lock on the file before it writes or renames it, and looks whether the path still leads to it.
final class RollingFile: LogSink, @unchecked Sendable {
    struct Settings: Hashable, Sendable {
        var path: String
        /// 0: no limit.
        var bytesMax: Int
        /// Since its first line; 0: no limit.
        var ageMaxMs: Int64
        /// The newest included.
        var kept: Int
    }

    static let keptMax = 1_000
    /// Another process may have been stopped with the lock. Whole lines need none; only renames, and a full disk, do.
    private static let lockMsMax: Int64 = 5_000
    private static let chunkBytesMax = 65_536
    /// Others may read it when somebody gives them the right: new files have the mode of the one before.
    private static let mode: mode_t = 0o600

    private let settings: Settings
    private var fd: Int32 = -1
    /// What was opened: the host may have closed the fd, and opened a file of its own under the number.
    private var opened: (device: dev_t, inode: ino_t) = (0, 0)
    private var isLocked = false
    /// While the lock cannot be got there is no wait.
    private var lockMs = lockMsMax

    /// A fault names the option.
    init(_ settings: Settings) throws(Fault) {
        self.settings = settings
        super.init(title: "The log file \(settings.path)", option: "log_file")
        if let problem = open() {
            throw Fault(
                BIRD_ERR_VALUE, .argument, field: "log_file",
                "Option log_file names \(settings.path), which cannot be written: \(problem).")
        }
    }

    deinit { close() }

    // MARK: Opening

    /// What is wrong; nil: it is open.
    private func open() -> String? {
        // A pipe would wait for a reader.
        let flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK
        switch System.ownFD({ Glibc.open(settings.path, flags, Self.mode) }) {
        case .failure(let error): return error.message
        case .success(let opened): fd = opened
        }
        guard let status = status else { return "it is gone" }
        opened = (status.st_dev, status.st_ino)
        guard status.st_mode & S_IFMT == S_IFREG else {
            close()
            return "it is no regular file"
        }
        return nil
    }

    private var isOwn: Bool {
        guard let status else { return false }
        return (status.st_dev, status.st_ino) == opened
    }

    /// Gives the lock up, too.
    private func close() {
        if isOwn { System.closeFD(fd) }
        fd = -1
        isLocked = false
    }

    /// In a forked child: this copy of the fd is not needed.
    func closeInherited() { close() }

    private var status: stat? {
        var status = stat()
        return fstat(fd, &status) == 0 ? status : nil
    }

    /// The path still leads to the file: nobody has renamed or removed it.
    private var isCurrent: Bool {
        var named = stat()
        guard let status, stat(settings.path, &named) == 0 else { return false }
        return named.st_ino == status.st_ino && named.st_dev == status.st_dev
    }

    private func lock(until end: Instant) {
        while flock(fd, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR, System.now() < end else { return }
            poll(nil, 0, 1)
        }
        isLocked = true
    }

    private func unlock() {
        if isLocked { _ = flock(fd, LOCK_UN) }
        isLocked = false
    }

    // MARK: Writing

    override func put(_ lines: ArraySlice<LogLine>) -> (count: Int, problem: SinkProblem?) {
        var rest = lines
        var unrolled: String?
        while let first = rest.first {
            if let problem = reach() { return (lines.count - rest.count, .cannotWrite(problem)) }
            defer { unlock() }
            if isLocked, isDue(before: first) {
                unrolled = roll()
                if unrolled == nil || fd < 0 { continue }
            }
            let (count, problem) = append(rest)
            rest = rest.dropFirst(count)
            if let problem { return (lines.count - rest.count, .cannotWrite(problem)) }
        }
        return (lines.count, unrolled.map { .cannotRename($0) })
    }

    /// Opens and locks the file that the path leads to.
    private func reach() -> String? {
        let end = System.now() + lockMs
        repeat {
            if fd >= 0, !isOwn { close() }
            if fd < 0, let problem = open() { return problem }
            lock(until: end)
            if isCurrent {
                lockMs = isLocked ? Self.lockMsMax : 0
                return nil
            }
            // Another process has renamed it meanwhile.
            close()
        } while System.now() < end
        lockMs = 0
        return open()
    }

    /// As many whole lines as fit into one write and into the file, at least one.
    private func append(_ lines: ArraySlice<LogLine>) -> (count: Int, problem: String?) {
        let size = Int(status?.st_size ?? 0)
        // A process that was killed may have left half a line.
        var bytes: [UInt8] = size > 0 && byte(at: size - 1) != UInt8(ascii: "\n") ? [UInt8(ascii: "\n")] : []
        var ends: [Int] = []
        for line in lines {
            let end = bytes.count + line.bytes.count
            let isTooMuch = end > Self.chunkBytesMax || settings.bytesMax > 0 && size + end > settings.bytesMax
            if isTooMuch, !ends.isEmpty { break }
            bytes += line.bytes
            ends.append(end)
        }
        let (written, problem) = write(bytes)
        let count = ends.prefix { $0 <= written }.count
        let whole = count == 0 ? 0 : ends[count - 1]
        if written > whole, isLocked { ftruncate(fd, size + whole) }
        return (count, problem)
    }

    private func write(_ bytes: [UInt8]) -> (count: Int, problem: String?) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { birdlinux_write_quietly(fd, $0.baseAddress, $0.count) }
            if written < 0 { return (bytes.count - rest.count, Errno(code: Int32(-written)).message) }
            rest = rest.dropFirst(written)
        }
        return (bytes.count, nil)
    }

    private func byte(at offset: Int) -> UInt8? {
        var byte: UInt8 = 0
        return pread(fd, &byte, 1, offset) == 1 ? byte : nil
    }

    // MARK: Rolling

    private func isDue(before line: LogLine) -> Bool {
        guard let size = status?.st_size, size > 0 else { return false }
        if settings.bytesMax > 0, Int(size) + line.bytes.count > settings.bytesMax { return true }
        guard settings.ageMaxMs > 0 else { return false }
        var beginning = [UInt8](repeating: 0, count: LogEntry.timeBytes)
        // Its first line tells when it began, whichever process wrote that, and on whatever file system.
        guard pread(fd, &beginning, beginning.count, 0) == beginning.count, let began = LogEntry.time(ofLine: beginning)
        else { return false }
        return System.wallClockMs() - began >= settings.ageMaxMs
    }

    /// The next line begins a new file. Why not; nil: it does.
    private func roll() -> String? {
        let path = settings.path
        var surplus = max(1, settings.kept)
        while surplus <= Self.keptMax, unlink("\(path).\(surplus)") == 0 { surplus += 1 }
        for number in stride(from: settings.kept - 1, to: 1, by: -1) {
            _ = rename("\(path).\(number - 1)", "\(path).\(number)")
        }
        guard (settings.kept > 1 ? rename(path, "\(path).1") : unlink(path)) == 0 else {
            return Errno(code: errno).message
        }
        let mode = status?.st_mode
        close()
        if let problem = open() { return problem }
        if let mode { fchmod(fd, mode & 0o777) }
        return nil
    }
}

/// The files that clients of this process write. Those with the same settings share one.
enum LogFiles {
    private struct Reference {
        weak var file: RollingFile?
    }

    private static let monitor = Monitor()
    nonisolated(unsafe) private static var files: [RollingFile.Settings: Reference] = [:]  // guarded by `monitor`

    static func file(_ settings: RollingFile.Settings) throws(Fault) -> RollingFile {
        try monitor.withLock { () throws(Fault) in
            if let file = files[settings]?.file { return file }
            files = files.filter { $0.value.file != nil }
            let file = try RollingFile(settings)
            files[settings] = Reference(file: file)
            return file
        }
    }

    static func lockForFork() { monitor.lock() }
    static func unlockAfterFork() { monitor.unlock() }

    static func forgetInChild() {
        for reference in files.values { reference.file?.closeInherited() }
        files = [:]
    }

    static func unlockInChild() { monitor.unlockInChild() }
}
