import BirdRealtime

/// Keeps a log of what the client does: a new file each day, seven of them, written by the library; what went wrong goes to the
/// program as well. Until the edge refuses the connection, or Ctrl-C.
///
///     swift-example rolling-log APP_KEY EDGE FILE CHANNEL
///
/// Older files are FILE.1, FILE.2, ...
@MainActor
func rollingLog(_ arguments: [String]) async {
    var options = options(arguments)
    options.log = LogOptions(
        handler: { entry in
            // It runs wherever something happens, and may not call the library.
            say("\(entry.level): \(entry.message)")
        },
        level: .warn,
        file: LogFile(path: arguments[2], level: .verbose, ageMax: 24 * 60 * 60, filesKept: 7))
    let bird = client(options)
    bird.subscribe(arguments[3])
    await refusal(of: bird)
}
