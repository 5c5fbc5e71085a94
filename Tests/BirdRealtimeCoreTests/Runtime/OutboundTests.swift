import CLinux
import Glibc
import Testing

@testable import BirdRealtimeCore

@Suite struct OutboundTests {
    /// Two ends of a connection that holds little.
    private func pair() throws -> (stream: Stream, peer: Int32) {
        var fds: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK, 0, &fds) == 0)
        var bytes: Int32 = 4_096
        setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        return (Stream(plain: fds[0]), fds[1])
    }

    private func read(_ fd: Int32, atMost count: Int) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        let got = recv(fd, &buffer, count, 0)
        return got > 0 ? Array(buffer[..<got]) : []
    }

    /// A program that always has more to send than the network takes.
    @Test func keepsOnlyWhatWaitsBehindASocketThatIsNeverEmpty() throws {
        let (stream, peer) = try pair()
        defer {
            stream.close()
            close(peer)
        }
        var outbound = Outbound()
        var sent: [UInt8] = []
        var received: [UInt8] = []
        var cost = 0
        var frames = 0
        var largest = 0
        while sent.count < 4_000_000 {
            // The first time so much that a little always waits; then a little more than is read.
            for _ in 0..<(sent.isEmpty ? 1_000 : 30) {
                let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: frames), count: 100)
                FrameEncoder.append(opcode: .text, payload: payload, maskKey: UInt32(frames), to: &sent)
                outbound.append(payload, .clientEvent, cost: 1, maskKey: UInt32(frames))
                frames += 1
            }
            received += read(peer, atMost: 3_000)
            let progress = outbound.flush(to: stream)
            #expect(progress.failure == nil)
            cost += progress.cost
            #expect(!outbound.isEmpty)
            largest = max(largest, outbound.bytes.count)
        }
        #expect(largest < 1_000_000)
        while !outbound.isEmpty {
            received += read(peer, atMost: 100_000)
            cost += outbound.flush(to: stream).cost
        }
        while case let rest = read(peer, atMost: 100_000), !rest.isEmpty { received += rest }
        #expect(received == sent)
        #expect(cost == frames)
    }

    /// An edge that pings and does not read.
    @Test func answersOnlyTheLatestOfManyPingsThatNobodyReads() throws {
        let (stream, peer) = try pair()
        defer {
            stream.close()
            close(peer)
        }
        var outbound = Outbound()
        for number in 0..<50_000 {
            outbound.appendPong(opcode: .pong, Array("control \(number)".utf8), maskKey: 0)
            outbound.appendPong(opcode: .text, Array("message \(number)".utf8), maskKey: 0)
            _ = outbound.flush(to: stream)
            #expect(outbound.bytes.count < 3 * Outbound.pongsBehindBytesMax)
        }
        var received: [UInt8] = []
        while !outbound.isEmpty {
            received += read(peer, atMost: 100_000)
            _ = outbound.flush(to: stream)
        }
        while case let rest = read(peer, atMost: 100_000), !rest.isEmpty { received += rest }
        var last: [UInt8] = []
        FrameEncoder.append(opcode: .pong, payload: Array("control 49999".utf8), maskKey: 0, to: &last)
        FrameEncoder.append(opcode: .text, payload: Array("message 49999".utf8), maskKey: 0, to: &last)
        #expect(received.suffix(last.count) == last[...])
        // All answers together have nearly two million bytes.
        #expect(received.count < 2 * Outbound.pongsBehindBytesMax)
    }

    /// What waits is counted apart: the program's frames, and what the library writes by itself.
    @Test func countsWhatWaitsByWhoseItIs() throws {
        let (stream, peer) = try pair()
        defer {
            stream.close()
            close(peer)
        }
        var outbound = Outbound()
        let payload = [UInt8](repeating: 0x31, count: 100)
        for kind in [FrameKind.plain, .awaited, .leave, .clientEvent, .pong] {
            for _ in 0..<1_000 { outbound.append(payload, kind, cost: 7, maskKey: 0) }
        }
        outbound.appendClose(code: 1000, reason: "", maskKey: 0)
        #expect(outbound.ownBytes == 2_000 * 106 + 8)
        #expect(outbound.wishes == 2_000)
        var (messages, awaited, cost) = (0, 0, 0)
        while !outbound.isEmpty {
            _ = read(peer, atMost: 100_000)
            let progress = outbound.flush(to: stream)
            messages += progress.messages
            awaited += progress.awaited
            cost += progress.cost
        }
        #expect((messages, awaited, cost) == (5_000, 1_000, 7_000))
        #expect((outbound.ownBytes, outbound.wishes) == (0, 0))
    }
}
