import CLinux
import Glibc

/// Where a TCP socket connects to.
struct SocketAddress {
    private var storage = sockaddr_storage()
    private let length: socklen_t

    init(_ address: IPAddress, port: UInt16) {
        if address.bytes.count == 4 {
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutableBytes(of: &storage) { target in
                var inet = sockaddr_in()
                inet.sin_family = sa_family_t(AF_INET)
                inet.sin_port = port.bigEndian
                withUnsafeMutableBytes(of: &inet.sin_addr) { $0.copyBytes(from: address.bytes) }
                withUnsafeBytes(of: inet) { target.copyMemory(from: $0) }
            }
        } else {
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
            withUnsafeMutableBytes(of: &storage) { target in
                var inet = sockaddr_in6()
                inet.sin6_family = sa_family_t(AF_INET6)
                inet.sin6_port = port.bigEndian
                withUnsafeMutableBytes(of: &inet.sin6_addr) { $0.copyBytes(from: address.bytes) }
                withUnsafeBytes(of: inet) { target.copyMemory(from: $0) }
            }
        }
    }

    /// A socket that connects, or has connected, without anybody having waited. The caller closes it.
    func connectNonblocking() -> Result<Int32, Errno> {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        return System.ownFD { socket(Int32(storage.ss_family), type, 0) }.flatMap { fd in
            var on: Int32 = 1
            setsockopt(fd, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
            let result = withUnsafePointer(to: storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(fd, $0, length) }
            }
            let error = Errno(code: errno)
            // Interrupted, it goes on all the same (POSIX connect).
            guard result < 0, error.code != EINPROGRESS, error.code != EINTR else { return .success(fd) }
            System.closeFD(fd)
            return .failure(error)
        }
    }

    /// How a connect that is over has ended; nil: there is a connection.
    static func connectError(_ fd: Int32) -> Errno? {
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 else { return Errno(code: errno) }
        return code == 0 ? nil : Errno(code: code)
    }
}
