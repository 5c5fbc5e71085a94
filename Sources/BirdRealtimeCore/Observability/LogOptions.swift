/// What is logged, and where it goes. Every sink has a level of its own.
package struct LogOptions: Sendable {
    /// For the program: its handler or, without one, records. nil: "info" for a handler, else "off".
    package var level: LogLevel?
    package var areas = LogAreas.all
    package var console = LogLevel.off
    package var filePath: String?
    package var fileLevel = LogLevel.info
    package var fileBytesMax = 10_485_760
    package var fileAgeMaxMs: Int64 = 86_400_000
    package var filesKept = 7
    package var handler: LogHandler?

    package init() {}

    var programLevel: LogLevel { level ?? (handler == nil ? .off : .info) }
}
