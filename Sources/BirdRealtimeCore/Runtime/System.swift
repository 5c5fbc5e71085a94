import CBirdRealtimeABI
import CLinux
import Glibc

/// The one place that knows about EINTR and errno. Each call returns the result or the errno value.
enum System {
    static func retrying(_ call: () -> Int) -> Result<Int, Errno> {
        while true {
            let result = call()
            if result >= 0 { return .success(result) }
            let code = errno
            if code != EINTR { return .failure(Errno(code: code)) }
        }
    }

    /// What opens a file, a socket and the like. Its number is none of the standard streams', which the host may have closed.
    static func ownFD(_ open: () -> Int32) -> Result<Int32, Errno> {
        retrying { holdingStandardFDs { Int(birdlinux_above_stdio(open())) } }.map { Int32(truncatingIfNeeded: $0) }
    }

    /// The same for code that is not ours and opens what it needs.
    static func holdingStandardFDs<R>(_ body: () -> R) -> R {
        birdlinux_hold_stdio()
        defer { birdlinux_release_stdio() }
        return body()
    }

    static func now() -> Instant {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Instant(milliseconds: Int64(time.tv_sec) &* 1_000 &+ Int64(time.tv_nsec) / 1_000_000)
    }

    /// The time on the clock that stands still while the machine is suspended.
    static func monotonicNow() -> Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(milliseconds: Int64(time.tv_sec) &* 1_000 &+ Int64(time.tv_nsec) / 1_000_000)
    }

    /// The own end of a socket.
    static func sourceAddress(_ fd: Int32) -> NetworkAddress? {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16) { bytes in
            let number = birdlinux_source_address(fd, bytes.baseAddress)
            guard let family = NetworkAddress.Family(rawValue: UInt8(clamping: number)) else { return nil }
            return NetworkAddress(family, bytes.prefix(family == .v4 ? 4 : 16))
        }
    }

    /// For short durations.
    static func monotonicUs() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000 &+ Int64(time.tv_nsec) / 1_000
    }

    /// Milliseconds since 1970: for people to read, never for waiting.
    static func wallClockMs() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) &* 1_000 &+ Int64(time.tv_nsec) / 1_000_000
    }

    /// Longer waits are as good as endless, and would overflow.
    static let waitMsMax: Int64 = 1_000_000_000_000

    /// A CLOCK_MONOTONIC time `ms` from now, for condition variables.
    static func monotonicDeadline(afterMs ms: Int64) -> timespec {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let bounded = min(max(ms, 0), waitMsMax)
        time.tv_sec += Int(bounded / 1_000)
        time.tv_nsec += Int(bounded % 1_000) * 1_000_000
        if time.tv_nsec >= 1_000_000_000 {
            time.tv_sec += 1
            time.tv_nsec -= 1_000_000_000
        }
        return time
    }

    static func makeEventFD(count: UInt32 = 0) -> Result<Int32, Errno> {
        ownFD { eventfd(count, Int32(EFD_CLOEXEC | EFD_NONBLOCK)) }
    }

    /// Running out of file descriptors is what libcurl and getaddrinfo report as refused connections, bad certificate files and unknown names.
    /// nil if the process has two left: one may have been a socket that is closed again by the time of the report.
    static var withoutFDs: Fault? {
        let probes = [makeEventFD(), makeEventFD()]
        var fault: Fault?
        for probe in probes {
            switch probe {
            case .success(let fd): closeFD(fd)
            case .failure(let error): fault = noFD(error)
            }
        }
        return fault
    }

    static func noFD(_ error: Errno) -> Fault {
        Fault(
            BIRD_ERR_SYSTEM, .system, field: "fd", "No file descriptor is left: \(error.message).", isRetriable: true)
    }

    /// Whatever else the host may have opened under the number of an fd that it had closed, it is no file, pipe or socket of the host's.
    private static func isEventFD(_ fd: Int32) -> Bool {
        var status = stat()
        return fd >= 0 && fstat(fd, &status) == 0 && status.st_mode & S_IFMT == 0
    }

    /// The number still leads to the socket of this cookie; one without a cookie is taken for it.
    static func isSocket(_ fd: Int32, _ cookie: UInt64) -> Bool { cookie == 0 || birdlinux_socket_cookie(fd) == cookie }

    static func closeSocket(_ fd: Int32, _ cookie: UInt64) { if isSocket(fd, cookie) { closeFD(fd) } }

    static func closeEventFD(_ fd: Int32) { if isEventFD(fd) { closeFD(fd) } }

    static func signalEventFD(_ fd: Int32) {
        guard isEventFD(fd) else { return }
        var one: UInt64 = 1
        _ = retrying { write(fd, &one, 8) }
    }

    static func clearEventFD(_ fd: Int32) {
        guard isEventFD(fd) else { return }
        var value: UInt64 = 0
        _ = retrying { read(fd, &value, 8) }
    }

    /// Makes a timerfd of CLOCK_BOOTTIME readable at this time.
    static func arm(_ fd: Int32, at time: Instant) {
        var setting = itimerspec()
        setting.it_value.tv_sec = Int(time.milliseconds / 1_000)
        // All zero would disarm it.
        setting.it_value.tv_nsec = max(1, Int(time.milliseconds % 1_000) * 1_000_000)
        _ = timerfd_settime(fd, Int32(TFD_TIMER_ABSTIME), &setting, nil)
    }

    /// Why a regular file, or a directory, cannot be read; nil when it can. What is neither is not opened: a pipe would make its reader wait,
    /// and a device may act.
    static func problem(reading path: String, isDirectory: Bool) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else { return "cannot be read: \(Errno(code: errno).message)" }
        if let problem = problem(kind: status.st_mode & S_IFMT, isDirectory: isDirectory) { return problem }
        switch ownFD({ open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }) {
        case .failure(let error): return "cannot be read: \(error.message)"
        case .success(let fd):
            closeFD(fd)
            return nil
        }
    }

    private static func problem(kind: mode_t, isDirectory: Bool) -> String? {
        if isDirectory { return kind == S_IFDIR ? nil : "is not a directory" }
        return switch kind {
        case S_IFREG: nil
        case S_IFDIR: "is a directory"
        default: "is not a regular file"
        }
    }

    /// Where a relative path leads now; the host may change its directory later.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let here = getcwd(nil, 0) else { return path }
        defer { free(here) }
        return "\(String(cString: here))/\(path)"
    }

    static func closeFD(_ fd: Int32) {
        if fd >= 0 { _ = Glibc.close(fd) }
    }
}

struct Errno: Error, Equatable {
    var code: Int32

    var wouldBlock: Bool { code == EAGAIN || code == EWOULDBLOCK }
    var isWithoutFDs: Bool { code == EMFILE || code == ENFILE }

    var message: String {
        var buffer = [CChar](repeating: 0, count: 128)
        // The POSIX form fills the buffer, the GNU form returns a pointer; Swift imports the former.
        guard strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
        return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
