import CBirdRealtimeABI
import CCurl
import CLinux
import Glibc

/// A connected byte stream: a plain socket that has left libcurl, or a TLS session inside it. Reactor thread only.
final class Stream {
    enum Outcome {
        case bytes(Int)
        case wouldBlock
        case end
        case failed(Fault)
    }

    let fd: Int32
    /// Of the socket: the host may close the fd, and open something else under its number.
    private let cookie: UInt64
    private var transfer: CurlTransfer?
    private var route: Route?
    private var hasReceived = false

    init(plain fd: Int32) {
        self.fd = fd
        cookie = birdlinux_socket_cookie(fd)
    }

    init(tls transfer: CurlTransfer, fd: Int32, route: Route) {
        self.fd = fd
        cookie = birdlinux_socket_cookie(fd)
        self.transfer = transfer
        self.route = route
    }

    /// A TLS layer may hold bytes that the socket no longer shows: read until `wouldBlock`.
    var mayHoldBytes: Bool { transfer != nil }

    func read(_ buffer: UnsafeMutableRawPointer, _ count: Int) -> Outcome {
        if let transfer {
            var received = 0
            let code = curl_easy_recv(transfer.handle, buffer, count, &received)
            switch code {
            case CURLE_OK:
                hasReceived = true
                return received > 0 ? .bytes(received) : .end
            case CURLE_AGAIN: return .wouldBlock
            default: return .failed(fault(code, of: transfer))
            }
        }
        switch System.retrying({ recv(fd, buffer, count, 0) }) {
        case .success(0): return .end
        case .success(let received): return .bytes(received)
        case .failure(let error): return error.wouldBlock ? .wouldBlock : .failed(Self.broken(by: error.message))
        }
    }

    /// Reads past up to so many bytes; over TLS through `scratch`.
    func discard(_ count: Int, scratch: UnsafeMutableRawPointer, _ scratchBytes: Int) -> Outcome {
        guard transfer == nil else { return read(scratch, scratchBytes) }
        // The kernel drops them without a copy (tcp(7), MSG_TRUNC).
        switch System.retrying({ recv(fd, nil, count, Int32(MSG_TRUNC)) }) {
        case .success(0): return .end
        case .success(let dropped): return .bytes(dropped)
        case .failure(let error): return error.wouldBlock ? .wouldBlock : .failed(Self.broken(by: error.message))
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return .bytes(0) }
        if let transfer {
            var sent = 0
            let code = curl_easy_send(transfer.handle, base, bytes.count, &sent)
            switch code {
            case CURLE_OK: return .bytes(sent)
            case CURLE_AGAIN: return .wouldBlock
            default: return .failed(fault(code, of: transfer))
            }
        }
        switch System.retrying({ send(fd, base, bytes.count, Int32(MSG_NOSIGNAL)) }) {
        case .success(let sent): return .bytes(sent)
        case .failure(let error): return error.wouldBlock ? .wouldBlock : .failed(Self.broken(by: error.message))
        }
    }

    /// A server that speaks TLS 1.3 refuses the client's certificate when the handshake is over for the client.
    private func fault(_ code: CURLcode, of transfer: CurlTransfer) -> Fault {
        if !hasReceived, let fault = route?.tlsFault(code, of: transfer) { return fault }
        return Self.broken(by: transfer.words(for: code), curlCode: Int32(code.rawValue))
    }

    private static func broken(by words: String, curlCode: Int32 = 0) -> Fault {
        broken("The connection broke: \(words).", curlCode: curlCode)
    }

    static func broken(_ message: String, curlCode: Int32 = 0) -> Fault {
        Fault(BIRD_ERR_LOST, .connection, field: "connection", message, curlCode: curlCode, isRetriable: true)
    }

    /// host:port of what the socket is connected to, a proxy's where there is one; "" when it is no longer.
    var peer: String {
        var text = [CChar](repeating: 0, count: 128)
        guard birdlinux_peer_name(fd, &text, text.count) > 0 else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// True while bytes that were not read wait in the socket.
    var hasUnreadBytes: Bool { birdlinux_bytes_waiting(fd) > 0 }

    /// In a forked child: the session goes on in the parent, only this copy of the fd is closed.
    func closeInherited() {
        if let transfer {
            transfer.disown()
            birdcurl_close_inherited(fd)
        } else {
            System.closeFD(fd)
        }
    }

    /// The number of the fd still leads to the socket.
    var isOwn: Bool { System.isSocket(fd, cookie) }

    func close() {
        guard isOwn else { return forget() }
        if let transfer {
            transfer.cleanUp()
            self.transfer = nil
        } else {
            System.closeFD(fd)
        }
    }

    /// Without libcurl, which would write to the socket.
    func forget() {
        transfer?.disown()
        transfer = nil
        System.closeSocket(fd, cookie)
    }
}
