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
        case failed(String)
    }

    let fd: Int32
    private var transfer: CurlTransfer?

    init(plain fd: Int32) {
        self.fd = fd
    }

    init(tls transfer: CurlTransfer, fd: Int32) {
        self.fd = fd
        self.transfer = transfer
    }

    /// A TLS layer may hold bytes that the socket no longer shows: read until `wouldBlock`.
    var mayHoldBytes: Bool { transfer != nil }

    func read(_ buffer: UnsafeMutableRawPointer, _ count: Int) -> Outcome {
        if let transfer {
            var received = 0
            let code = curl_easy_recv(transfer.handle, buffer, count, &received)
            switch code {
            case CURLE_OK: return received > 0 ? .bytes(received) : .end
            case CURLE_AGAIN: return .wouldBlock
            default: return .failed(String(cString: curl_easy_strerror(code)))
            }
        }
        switch System.retrying({ recv(fd, buffer, count, 0) }) {
        case .success(0): return .end
        case .success(let received): return .bytes(received)
        case .failure(let error): return error.wouldBlock ? .wouldBlock : .failed(error.message)
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
            default: return .failed(String(cString: curl_easy_strerror(code)))
            }
        }
        switch System.retrying({ send(fd, base, bytes.count, Int32(MSG_NOSIGNAL)) }) {
        case .success(let sent): return .bytes(sent)
        case .failure(let error): return error.wouldBlock ? .wouldBlock : .failed(error.message)
        }
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

    func close() {
        if let transfer {
            transfer.cleanUp()
            self.transfer = nil
        } else {
            System.closeFD(fd)
        }
    }
}
