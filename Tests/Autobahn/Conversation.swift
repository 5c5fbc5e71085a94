import BirdRealtimeCore
import Glibc

/// What cannot happen between the suite and this program, unless something is wrong with one of them.
struct Failure: Error {
    var text: String

    init(_ text: String) { self.text = text }
}

/// One connection to the fuzzing server: a blocking socket with the WebSocket layer of the library on it. Pings and closes are answered.
struct Conversation: ~Copyable {
    /// More than the largest message of the suite.
    private static let messageBytesMax = 32 * 1024 * 1024
    private static let readBytes = 64 * 1024
    private static let silenceS = 20

    private let fd: Int32
    private var decoder = FrameDecoder(messageBytesMax: messageBytesMax)
    private var input = [UInt8](repeating: 0, count: readBytes)
    private var unread: [UInt8] = []

    init(port: UInt16, path: String) throws {
        fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var patience = timeval(tv_sec: Self.silenceS, tv_usec: 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else { throw Failure("no connection to port \(port): errno \(errno)") }
        try upgrade(host: "127.0.0.1:\(port)", path: path)
    }

    deinit { close(fd) }

    /// Each whole message until the connection ends; true: it is sent back.
    mutating func run(_ isEchoed: (UnsafeRawBufferPointer, Opcode) -> Bool) throws {
        while true {
            let (step, answer, isOver) = unread.withUnsafeMutableBytes { bytes -> (FrameDecoder.Step, [UInt8], Bool) in
                var answer: [UInt8] = []
                let step = decoder.next(bytes)
                let isOver = Self.respond(
                    to: step, UnsafeRawBufferPointer(bytes), assembly: decoder.assembly, isEchoed, &answer)
                return (step, answer, isOver)
            }
            try write(answer)
            switch step {
            case .needsMore:
                guard try read() else { return }
            case .message(_, _, let consumed, _, _), .assembled(let consumed, _), .fragment(let consumed),
                .ping(_, _, let consumed), .pong(_, _, let consumed), .close(_, _, let consumed):
                unread.removeFirst(consumed)
            case .failure: break
            }
            if isOver {
                // The server ends the connection (RFC 6455 section 7.1.1).
                while try read() { unread = [] }
                return
            }
        }
    }

    private static func respond(
        to step: FrameDecoder.Step, _ bytes: UnsafeRawBufferPointer, assembly: [UInt8],
        _ isEchoed: (UnsafeRawBufferPointer, Opcode) -> Bool, _ answer: inout [UInt8]
    ) -> Bool {
        func part(_ offset: Int, _ length: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + length)])
        }
        func closeFrame(_ code: UInt16?, _ reason: String) -> Bool {
            FrameEncoder.appendClose(code: code, reason: reason, maskKey: .random(in: 0 ... .max), to: &answer)
            return true
        }
        func frame(_ opcode: Opcode, _ payload: UnsafeRawBufferPointer) {
            FrameEncoder.append(opcode: opcode, payload: payload, maskKey: .random(in: 0 ... .max), to: &answer)
        }
        func message(_ payload: UnsafeRawBufferPointer, _ opcode: Opcode) {
            if isEchoed(payload, opcode) { frame(opcode, payload) }
        }
        switch step {
        case .message(let offset, let length, _, let isValidUTF8, let isBinary):
            let payload = part(offset, length)
            // Where the library leaves this to its scanner of messages.
            guard isBinary || isValidUTF8 || UTF8Validator.isValid(payload) else { return closeFrame(1007, "") }
            message(payload, isBinary ? .binary : .text)
        case .assembled(_, let isBinary): assembly.withUnsafeBytes { message($0, isBinary ? .binary : .text) }
        case .ping(let offset, let length, _): frame(.pong, part(offset, length))
        case .close(let code, _, _): return closeFrame(code == 1005 ? nil : code, "")
        case .failure(let code, let reason): return closeFrame(code, reason)
        case .pong, .fragment, .needsMore: break
        }
        return false
    }

    // MARK: - The socket

    private mutating func upgrade(host: String, path: String) throws {
        let key = UpgradeRequest.key(random: (.random(in: 0 ... .max), .random(in: 0 ... .max)))
        try write(UpgradeRequest.bytes(host: host, path: path, key: key, userAgent: "autobahn-client"))
        var response = UpgradeResponse(key: key)
        while true {
            switch unread.withUnsafeBytes({ response.parse($0) }) {
            case .accepted(let consumed):
                unread.removeFirst(consumed)
                return
            case .refused(let fault): throw Failure(fault.message)
            case .incomplete:
                guard try read() else { throw Failure("the server ended the connection during the upgrade") }
            }
        }
    }

    /// False: the server has ended the connection.
    private mutating func read() throws -> Bool {
        let fd = fd
        let count = input.withUnsafeMutableBytes { Glibc.read(fd, $0.baseAddress, $0.count) }
        guard count >= 0 || errno == ECONNRESET else { throw Failure("nothing more came: errno \(errno)") }
        unread.append(contentsOf: input.prefix(max(0, count)))
        return count > 0
    }

    private func write(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            // A server that has gone is heard of by reading.
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
