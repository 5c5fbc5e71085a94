import CBirdRealtimeABI
import CLinux
import Synchronization

/// The log of one client, from any thread. Not with a lock held: the program's handler is called here.
/// `@unchecked Sendable`: immutable, atomic or guarded by `lock`.
package final class Log: @unchecked Sendable {
    /// Entries that wait to become records.
    private static let recordsMax = 1_024
    private static let clients = Atomic<UInt64>(0)

    /// Of this process, from 1.
    package let number = Log.clients.wrappingAdd(1, ordering: .relaxed).newValue
    private let tag: UInt64
    private let process = HostProcess.generation
    /// A bit for each level and area that some sink wants.
    private let wanted = Atomic<UInt64>(0)
    private let dropped = Atomic<UInt64>(0)
    /// Set once, before use.
    weak var client: Client?

    private let lock: Monitor
    // Guarded.
    private var options: LogOptions
    private var file: RollingFile?
    private let wantsRecords: Bool
    private var records: [LogEntry] = []
    private var isOver = false
    /// There are entries that the driver makes records of.
    let hasRecords = Atomic<Bool>(false)

    /// `lock`: that of the client. A fault names the option.
    init(_ options: ClientOptions, _ lock: Monitor) throws(Fault) {
        self.lock = lock
        self.options = options.log
        tag = options.tag
        wantsRecords = options.log.handler == nil && options.records & (1 << UInt64(BIRD_RECORD_LOG)) != 0
        if let path = options.log.filePath {
            file = try LogFiles.file(
                RollingFile.Settings(
                    path: System.absolute(path), bytesMax: options.log.fileBytesMax, ageMaxMs: options.log.fileAgeMaxMs,
                    kept: options.log.filesKept))
        }
        wanted.store(Self.mask(self.options, hasFile: file != nil, wantsRecords), ordering: .relaxed)
    }

    // MARK: Levels

    private static func mask(_ options: LogOptions, hasFile: Bool, _ wantsRecords: Bool) -> UInt64 {
        var most = options.console
        if hasFile { most = max(most, options.fileLevel) }
        if options.handler != nil || wantsRecords { most = max(most, options.programLevel) }
        guard most > .off else { return 0 }
        return (1...most.rawValue).reduce(0) { $0 | bits(UInt64(options.areas.bits), $1) }
    }

    @inline(__always)
    private static func bits(_ areas: UInt64, _ level: Int32) -> UInt64 { areas &<< (UInt64(level - 1) &* 16) }

    /// On a client that lives, its lock held: levels and areas. Handler and file stay.
    func change(to changed: LogOptions) {
        options.level = changed.level
        options.areas = changed.areas
        options.console = changed.console
        options.fileLevel = changed.fileLevel
        wanted.store(Self.mask(options, hasFile: file != nil, wantsRecords), ordering: .relaxed)
    }

    /// Some sink wants entries of this kind.
    @inline(__always)
    func wants(_ level: LogLevel, _ area: LogArea) -> Bool {
        wanted.load(ordering: .relaxed) & Self.bits(UInt64(area.rawValue), level.rawValue) != 0
    }

    /// Some sink wants something.
    var isOn: Bool { wanted.load(ordering: .relaxed) != 0 }

    var droppedEntries: UInt64 { dropped.load(ordering: .relaxed) }

    func countDropped() { dropped.wrappingAdd(1, ordering: .relaxed) }

    // MARK: Writing

    /// The text is made only if a sink wants it.
    @inline(__always)
    func write(
        _ level: LogLevel, _ area: LogArea, status: Int32 = BIRD_OK, channel: String = "",
        _ text: @autoclosure () -> String
    ) {
        if wants(level, area) { send(entry(level, area, status, channel, text())) }
    }

    private func entry(
        _ level: LogLevel, _ area: LogArea, _ status: Int32, _ channel: String, _ text: String
    ) -> LogEntry {
        LogEntry(level, area, clientTag: tag, clientNumber: number, status: status, channel: channel, text)
    }

    @inline(never)
    private func send(_ entry: LogEntry, besides: LogSink? = nil) {
        // A child tells nothing of its parent's clients.
        guard process == HostProcess.generation, !LogHandler.isRunning else { return }
        let (options, file) = lock.withLock { (isOver ? LogOptions() : self.options, self.file) }
        var sinks: [LogSink] = []
        if entry.level <= options.console { sinks.append(ConsoleSink.shared) }
        if let file, entry.level <= options.fileLevel { sinks.append(file) }
        if !sinks.isEmpty {
            let line = LogLine(bytes: entry.line, log: self)
            for sink in sinks where sink !== besides { LogWriter.post(line, to: sink) }
        }
        if entry.level <= options.programLevel { tellProgram(entry, options.handler) }
    }

    private func tellProgram(_ entry: LogEntry, _ handler: consuming LogHandler?) {
        if let handler {
            birdlinux_log_depth_add(1)
            birdlinux_handlers_begin()
            handler.call(entry)
            birdlinux_handlers_end()
            birdlinux_log_depth_add(-1)
        } else if wantsRecords {
            let isFirst = lock.withLock { () -> Bool in
                guard records.count < Self.recordsMax else {
                    countDropped()
                    return false
                }
                records.append(entry)
                return !hasRecords.exchange(true, ordering: .relaxed)
            }
            if isFirst { client?.wakeReactor() }
        }
    }

    /// From the driver.
    func takeRecords() -> [LogEntry] {
        lock.withLock {
            hasRecords.store(false, ordering: .relaxed)
            defer { records = [] }
            return records
        }
    }

    // MARK: Sinks

    /// A line of the library's own.
    static func line(_ level: LogLevel, _ text: String) -> [UInt8] {
        LogEntry(level, .process, clientTag: 0, clientNumber: 0, status: BIRD_OK, channel: "", text).line
    }

    /// From the writer: told everywhere else.
    func sinkFailed(_ sink: LogSink, _ text: String) {
        send(entry(.error, .process, BIRD_ERR_SYSTEM, "", text), besides: sink)
        client?.reportLog(Fault(BIRD_ERR_SYSTEM, .system, field: sink.option, text, isRetriable: true))
    }

    func sinkRecovered(_ sink: LogSink, _ text: String) {
        send(entry(.info, .process, BIRD_OK, "", text), besides: sink)
    }

    /// The end of the client: what it has logged is written, and its handler is not called any more.
    func end() {
        let (file, handler) = lock.withLock { () -> (RollingFile?, LogHandler?) in
            defer { (isOver, self.file, options.handler, records) = (true, nil, nil, []) }
            return (self.file, options.handler)
        }
        wanted.store(0, ordering: .relaxed)
        LogWriter.flush([ConsoleSink.shared] + (file.map { [$0] } ?? []))
        withExtendedLifetime(handler) {}
    }
}
