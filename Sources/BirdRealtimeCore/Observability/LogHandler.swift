package import CBirdRealtimeABI
import CLinux

package typealias LogFunction = @convention(c) (UnsafePointer<bird_log_entry>?, UnsafeMutableRawPointer?) -> Void

/// The program's function for entries. It belongs to the options and to the clients made from them; when the last of them lets go of it the
/// destructor runs, after a call that is still running on another thread.
/// `@unchecked Sendable`: immutable; `userData` is the program's own business.
package final class LogHandler: @unchecked Sendable {
    private let function: LogFunction
    private let userData: UnsafeMutableRawPointer?
    private let destructor: Destructor?
    private let process = HostProcess.generation

    package init(_ function: @escaping LogFunction, userData: UnsafeMutableRawPointer?, destructor: Destructor?) {
        self.function = function
        self.userData = userData
        self.destructor = destructor
    }

    deinit {
        // In a forked child what it would release is the parent's too.
        if process == HostProcess.generation { destructor?(userData) }
    }

    func call(_ entry: LogEntry) {
        entry.withABI { function($0, userData) }
    }

    /// The calling thread is inside a log handler, where no call is possible: it may have been called in the middle of anything.
    package static var isRunning: Bool { birdlinux_log_depth() > 0 }

    package static let insideFault = Fault(
        BIRD_ERR_CALLBACK, .argument, field: "log", "A log handler must not call the library.")
}
