import Glibc

/// The other end of the clients' sockets: it listens on loopback and never waits. One is there for the whole process.
final class ScriptedPeer {
    private static let connectionsMax = 8
    private static let unreadBytesMax = 64 * 1024

    let port: UInt16
    private let listener: Int32
    private var connections: [(fd: Int32, unread: [UInt8])] = []

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let fd = listener
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(fd, $0, length) == 0 && listen(fd, 64) == 0 && getsockname(fd, $0, &length) == 0
            }
        }
        try require(isListening, "no socket on loopback: errno \(errno)")
        port = UInt16(bigEndian: address.sin_port)
    }

    /// Takes one client that waits, and reads what has come.
    func accept() {
        let fd = Glibc.accept(listener, nil, nil)
        if fd >= 0 {
            _ = fcntl(fd, F_SETFL, O_NONBLOCK)
            // Closed with a reset: no port stays in use.
            var reset = linger(l_onoff: 1, l_linger: 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, socklen_t(MemoryLayout<linger>.size))
            connections.append((fd, []))
            if connections.count > Self.connectionsMax { close(0) }
        }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        for index in connections.indices {
            let count = read(connections[index].fd, &buffer, buffer.count)
            guard count > 0, connections[index].unread.count < Self.unreadBytesMax else { continue }
            connections[index].unread += buffer.prefix(count)
        }
    }

    func send(_ bytes: [UInt8], to number: UInt8) {
        guard let index = index(number) else { return }
        _ = Glibc.send(connections[index].fd, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// The upgrade that the client has asked for.
    func upgrade(_ number: UInt8) {
        guard let index = index(number) else { return }
        send(EdgeFrames.upgrade(connections[index].unread), to: number)
    }

    func end(_ number: UInt8) {
        guard let index = index(number) else { return }
        close(index)
    }

    func endAll() {
        accept()
        while !connections.isEmpty { close(0) }
    }

    /// 0 is the newest.
    private func index(_ number: UInt8) -> Int? {
        connections.isEmpty ? nil : connections.count - 1 - Int(number) % connections.count
    }

    private func close(_ index: Int) { Glibc.close(connections.remove(at: index).fd) }
}
