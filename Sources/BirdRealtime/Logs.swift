import BirdRealtimeCore
import CBirdRealtimeABI
public import Foundation

/// What is logged, and where it goes. Every sink has a level of its own. No entry holds a secret.
public struct LogOptions: Sendable {
    /// The program's own sink.
    public var handler: LogHandler?
    /// What `handler` is called for; nil: `info`.
    public var level: LogLevel?
    /// What entries may be about.
    public var areas: LogAreas
    /// What goes to standard error, a line an entry.
    public var console: LogLevel
    /// A file that begins anew by time and by size.
    public var file: LogFile?

    public init(
        handler: LogHandler? = nil, level: LogLevel? = nil, areas: LogAreas = .all, console: LogLevel = .off,
        file: LogFile? = nil
    ) {
        self.handler = handler
        self.level = level
        self.areas = areas
        self.console = console
        self.file = file
    }

    func add(to settings: inout Settings) {
        settings.add("log_level", level?.rawValue)
        if areas != .all { settings.add("log_areas", areas.description) }
        if console != .off { settings.add("log_console", console.rawValue) }
        file?.add(to: &settings)
    }
}

/// Called at once where something happens, on any thread and on several at a time. It must be quick, and must not call the library.
public typealias LogHandler = @Sendable (LogEntry) -> Void

/// How much an entry matters, or how much a sink wants.
public enum LogLevel: String, Sendable, CaseIterable {
    case off
    /// The library cannot go on by itself.
    case error
    /// Something failed and is tried again.
    case warn
    /// What an operator follows a client by.
    case info
    /// Every step.
    case verbose
}

/// What entries are about.
public struct LogAreas: OptionSet, Sendable, Hashable, CustomStringConvertible {
    public let rawValue: Int32

    public init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    /// Attempts, states, plans, pings.
    public static let connection = LogAreas(rawValue: BIRD_LOG_AREA_CONNECTION)
    public static let channel = LogAreas(rawValue: BIRD_LOG_AREA_CHANNEL)
    public static let authorization = LogAreas(rawValue: BIRD_LOG_AREA_AUTHORIZATION)
    public static let signin = LogAreas(rawValue: BIRD_LOG_AREA_SIGNIN)
    /// The way of events to the program.
    public static let delivery = LogAreas(rawValue: BIRD_LOG_AREA_DELIVERY)
    /// What the machine's network does.
    public static let network = LogAreas(rawValue: BIRD_LOG_AREA_NETWORK)
    /// Verbose: every message, without its contents.
    public static let wire = LogAreas(rawValue: BIRD_LOG_AREA_WIRE)
    /// Forks, the end of the process, the log itself.
    public static let process = LogAreas(rawValue: BIRD_LOG_AREA_PROCESS)
    public static let all: LogAreas = [
        .connection, .channel, .authorization, .signin, .delivery, .network, .wire, .process,
    ]

    /// Their names, with commas between them.
    public var description: String {
        LogArea.allCases.filter { rawValue & $0.rawValue != 0 }.map(\.name).joined(separator: ",")
    }
}

/// A file for entries; the older ones are PATH.1, PATH.2 and so on. Several processes may share it. What is nil is as its comment says.
public struct LogFile: Sendable, Hashable {
    public var path: String
    /// `info`.
    public var level: LogLevel?
    /// A file that would become larger begins anew: 10 MiB; 0: no limit.
    public var bytesMax: Int?
    /// An entry that comes so many seconds after a file's first begins a new one: a day; 0: no limit.
    public var ageMax: TimeInterval?
    /// Files that are kept, the newest included: 7.
    public var filesKept: Int?

    public init(
        path: String, level: LogLevel? = nil, bytesMax: Int? = nil, ageMax: TimeInterval? = nil, filesKept: Int? = nil
    ) {
        self.path = path
        self.level = level
        self.bytesMax = bytesMax
        self.ageMax = ageMax
        self.filesKept = filesKept
    }

    func add(to settings: inout Settings) {
        settings.add("log_file", path)
        settings.add("log_file_level", level?.rawValue)
        settings.add("log_file_bytes_max", bytesMax)
        settings.add("log_file_age_max_ms", seconds: ageMax)
        settings.add("log_files_kept", filesKept)
    }
}

/// One thing that happened.
public struct LogEntry: Sendable, Hashable {
    /// Never `off`.
    public let level: LogLevel
    /// One of them.
    public let area: LogAreas
    public let date: Date
    /// One line.
    public let message: String
    /// nil if it is about none.
    public let channelName: String?
    /// Of the failure that it tells, nil if it tells none.
    public let failure: RealtimeError.Kind?
    /// Tells the clients of a process apart, from 1.
    public let clientNumber: UInt64

    init(_ entry: bird_log_entry) {
        level = BirdRealtimeCore.LogLevel(rawValue: entry.level).flatMap { LogLevel(rawValue: $0.name) } ?? .verbose
        area = LogAreas(rawValue: entry.area)
        date = Date(timeIntervalSince1970: TimeInterval(entry.time_ms) / 1_000)
        message = String(cString: entry.message)
        let channelName = String(cString: entry.channel_name)
        self.channelName = channelName.isEmpty ? nil : channelName
        failure = entry.status == BIRD_OK ? nil : RealtimeError.Kind(rawValue: entry.status)
        clientNumber = entry.client_number
    }
}

/// A closure as the core's log handler and its user data.
private final class LogClosure: Sendable {
    let body: LogHandler

    init(_ body: @escaping LogHandler) {
        self.body = body
    }
}

extension BirdRealtimeCore.LogHandler {
    convenience init(_ body: @escaping LogHandler) {
        self.init(
            { entry, userData in
                guard let entry, let userData else { return }
                Unmanaged<LogClosure>.fromOpaque(userData).takeUnretainedValue().body(LogEntry(entry.pointee))
            },
            userData: Unmanaged.passRetained(LogClosure(body)).toOpaque(),
            destructor: { userData in
                if let userData { Unmanaged<LogClosure>.fromOpaque(userData).release() }
            })
    }
}
