import CBirdRealtimeABI
import CLinux
import Glibc

/// A WebSocket over a stream (RFC 6455, client side): upgrade, frames in, frames out, close. Reactor thread only.
final class Connection: EventSource {
    /// Reads of one connection before others get their turn.
    private static let readsPerTurnMax = 4
    private static let closeWaitMs: Int64 = 2_000
    /// So much of what the edge had sent before it saw the close frame is read past; it may lie in the buffers of both kernels.
    private static let discardedBytesMax = 16_777_216
    private static let discardBytesMax = 1_048_576
    /// For the rest of an answer that refuses the upgrade.
    private static let refusalWaitMs: Int64 = 1_000

    private enum Phase {
        case upgrading
        case open
        /// A close frame is on its way; what still comes is not looked at.
        case closing
        case ended
    }

    /// What came of a close frame.
    enum Farewell {
        /// Everything was written, and the edge has ended the stream.
        case answered
        case unanswered
        /// The stream broke first.
        case lost
    }

    let id: TransportID
    private let reactor: Reactor
    /// Outlives the connection, and is not counted: this is on the way of every event.
    private let driver: Unmanaged<Driver>
    private let stream: Stream
    private var phase = Phase.upgrading
    private var upgrade: UpgradeResponse
    private var decoder: FrameDecoder
    /// The answer refuses the upgrade, and the rest of it is waited for.
    private var refusal: Fault?
    private var outbound = Outbound()
    private var carry = Carry()
    private(set) var isPaused = false
    /// A message of several fragments that the owner had no room for.
    private var waitingAssembly: [UInt8]?
    /// The carry begins with messages that the owner had no room for.
    private var hasLeftover = false
    /// The stream has failed while reading was paused: it is read to its end, and no longer watched, until then.
    private var isDetached = false
    private var closeTimer: ReactorTimer?
    private var discardedBytes = 0
    private var onGone: (() -> Void)?
    /// nil: there was no close frame, or it is on its way.
    private(set) var farewell: Farewell?
    /// When the first byte of a message that is not complete yet came.
    private(set) var partialSince: Instant?
    /// The program has heard that a message was lost for half of a surrogate pair.
    var hasToldHalfPair = false

    init(
        id: TransportID, stream: Stream, upgrade: UpgradeResponse, unsent: ArraySlice<UInt8>, messageBytesMax: Int,
        reactor: Reactor, owner: Driver
    ) {
        self.id = id
        self.stream = stream
        self.upgrade = upgrade
        self.reactor = reactor
        driver = .passUnretained(owner)
        decoder = FrameDecoder(messageBytesMax: messageBytesMax)
        super.init()
        outbound.appendRaw(unsent)
    }

    private var owner: Driver { driver.takeUnretainedValue() }

    /// False: the owner has no room for it now.
    @inline(__always)
    private func deliver(_ message: UnsafeMutableRawBufferPointer, isValidUTF8: Bool) -> Bool {
        driver._withUnsafeGuaranteedRef { $0.connection(self, message: message, isValidUTF8: isValidUTF8) }
    }

    func start() {
        updateInterest(isNew: true)
        flush()
        // Over TLS the answer may have been read already.
        if stream.mayHoldBytes { reactor.resumeSoon(self) }
    }

    var isOpen: Bool { phase == .open }
    var hasEverythingWritten: Bool { outbound.isEmpty }
    /// Frames the program asked for that wait to be written, without client events.
    var wishesWaiting: Int { outbound.wishes }
    /// Bytes wait in the socket.
    var hasUnreadBytes: Bool { stream.hasUnreadBytes }
    /// Others may wait above it.
    var mayHoldUnseenBytes: Bool { stream.mayHoldBytes }

    // MARK: Out

    func send(_ text: [UInt8], _ kind: FrameKind, maskKey: UInt32, clientEventCost: Int) {
        guard phase == .open || phase == .upgrading, !isDetached else { return }
        guard kind != .pong else { return outbound.appendPong(opcode: .text, text, maskKey: maskKey) }
        outbound.append(text, kind, cost: clientEventCost, maskKey: maskKey)
        if outbound.ownBytes > Outbound.ownBytesMax { giveUpUnread() }
    }

    /// An edge that has the library answer, and does not read the answers, must not fill the memory.
    private func giveUpUnread() {
        flush()
        guard phase == .open, outbound.ownBytes > Outbound.ownBytesMax else { return }
        end(
            .failed(
                Fault(
                    BIRD_ERR_FULL, .connection, field: "connection",
                    "The connection was given up: \(outbound.ownBytes) bytes of the library's own messages wait to be written, "
                        + "and the edge does not read them.", isRetriable: true)))
    }

    /// Writes what waits. Call after a round of sends.
    func flush() {
        guard phase != .ended, !isDetached, !outbound.isEmpty else { return }
        guard stream.isOwn else { return end(.failed(Stream.broken("The program has closed the socket."))) }
        let progress = outbound.flush(to: stream)
        if progress.bytes > 0 { owner.connectionWrote(self, progress) }
        if let failure = progress.failure {
            guard !isPaused else {
                detach()
                return
            }
            end(.failed(failure))
            return
        }
        updateInterest()
    }

    /// The number and cost of client events that will not be written any more.
    func dropOutbound() -> (lost: Int, cost: Int) { outbound.drop() }

    /// Closes from this side. With `abandon` the edge's answer is not waited for.
    func close(code: UInt16?, reason: String, abandon: Bool, maskKey: UInt32) {
        guard phase == .open, let code else {
            finish()
            return
        }
        outbound.appendClose(code: code, reason: reason, maskKey: maskKey)
        phase = .closing
        writeLast()
        // One that has failed while reading was paused is watched no longer: nothing would tell its end.
        if abandon || isDetached {
            finish(isDetached ? .lost : .unanswered)
            return
        }
        lingerUntilClosed()
    }

    /// A close frame has been sent, and the stream has not ended yet.
    var isClosing: Bool { phase == .closing }

    /// Runs when the socket has been closed.
    func whenGone(_ gone: @escaping () -> Void) { onGone = gone }

    /// At once, without a word to anybody.
    func abandon() {
        onGone = nil
        finish()
    }

    /// The reactor has lost its fds, and with them perhaps this one.
    func loseFDs() {
        disown()
        reactor.unwatch(self)
        stream.forget()
    }

    /// In a forked child: the connection is the parent's.
    func disown() {
        phase = .ended
        onGone = nil
    }

    func closeInherited() { stream.closeInherited() }

    /// Ends the connection from this side for a reason that the owner learns.
    func abort(_ fault: Fault) { end(.failed(fault)) }

    /// What the stream takes at once; whether it fails does not matter any more.
    private func writeLast() {
        guard stream.isOwn else { return }
        let progress = outbound.flush(to: stream)
        if progress.bytes > 0 { owner.connectionWrote(self, progress) }
    }

    /// Until the edge ends the stream. What it has sent is of no interest any more, what was read of it before neither.
    private func lingerUntilClosed() {
        isPaused = false
        hasLeftover = false
        waitingAssembly = nil
        partialSince = nil
        carry.clear()
        carry.giveBack()
        updateInterest()
        if stream.mayHoldBytes { reactor.resumeSoon(self) }
        let timer = ReactorTimer { [weak self] _ in self?.finish() }
        closeTimer = timer
        reactor.setTimer(timer, reactor.now + Self.closeWaitMs)
    }

    private func finish(_ farewell: Farewell = .unanswered) {
        guard phase != .ended else { return }
        if phase == .closing { self.farewell = farewell }
        phase = .ended
        if let closeTimer { reactor.setTimer(closeTimer, nil) }
        closeTimer = nil
        reactor.unwatch(self)
        stream.close()
        let gone = onGone
        onGone = nil
        gone?()
    }

    private func end(_ reason: TransportEnd) {
        guard phase == .upgrading || phase == .open else {
            finish(.lost)
            return
        }
        finish()
        owner.connectionEnded(self, reason)
    }

    // MARK: In

    /// Reading goes on, or rests because the consumer is slow.
    func setPaused(_ paused: Bool) {
        guard isPaused != paused, phase == .open else { return }
        isPaused = paused
        // The time that this side does not read is not the message's.
        partialSince = nil
        updateInterest(isNew: isDetached)
        isDetached = false
        if !paused { reactor.resumeSoon(self) }
    }

    private func updateInterest(isNew: Bool = false) {
        guard phase != .ended, isNew || watchedFD >= 0 else { return }
        var events: UInt32 = 0
        if !isPaused { events |= EPOLLIN.rawValue }
        if !outbound.isEmpty { events |= EPOLLOUT.rawValue }
        reactor.watch(self, fd: stream.fd, events)
    }

    override func handle(_ events: UInt32, _ now: Instant) {
        if events & EPOLLOUT.rawValue != 0 {
            flush()
            // What was written has set deadlines, and somebody may have waited for it.
            if phase != .ended { owner.connectionTurnEnded(self) }
        }
        if events & (EPOLLIN.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 {
            if isPaused, events & (EPOLLHUP.rawValue | EPOLLERR.rawValue) != 0 {
                detach()
                return
            }
            readTurn(now)
        }
    }

    override func resume(_ now: Instant) {
        readTurn(now)
    }

    /// Nothing can be added to what was read before; the end is told when it has been consumed.
    private func detach() {
        isDetached = true
        reactor.unwatch(self)
    }

    /// The owner gives the connection up, and takes what is here before that.
    func takeRest(_ now: Instant) {
        isPaused = false
        readTurn(now)
        guard phase == .open else { return }
        isPaused = true
        partialSince = nil
    }

    /// What the owner had no room for before it paused reading. False: it has none now.
    private func consumeLeftover() -> Bool {
        if var assembly = waitingAssembly {
            waitingAssembly = nil
            guard assembly.withUnsafeMutableBytes({ deliver($0, isValidUTF8: true) }) else {
                waitingAssembly = assembly
                return false
            }
        }
        if hasLeftover {
            hasLeftover = false
            consumeCarry()
        }
        return phase == .open && !isPaused
    }

    /// Reads past what comes before the end of the stream.
    private func discardTurn() {
        for _ in 0..<Self.readsPerTurnMax where phase == .closing {
            switch stream.discard(Self.discardBytesMax, scratch: reactor.scratch, Reactor.scratchBytes) {
            case .bytes(let count):
                owner.connection(self, discarded: count)
                discardedBytes += count
                if discardedBytes > Self.discardedBytesMax { return finish() }
            case .wouldBlock: return
            case .end: return finish(outbound.isEmpty ? .answered : .lost)
            case .failed: return finish(.lost)
            }
        }
        if phase == .closing, stream.mayHoldBytes { reactor.resumeSoon(self) }
    }

    private func readTurn(_ now: Instant) {
        guard phase != .closing else { return discardTurn() }
        var reads = 0
        defer {
            if phase != .ended { owner.connectionTurnEnded(self) }
        }
        if hasLeftover || waitingAssembly != nil {
            guard phase == .open, !isPaused, consumeLeftover() else { return }
        }
        while phase == .upgrading || phase == .open, !isPaused {
            guard reads < Self.readsPerTurnMax else {
                if stream.mayHoldBytes { reactor.resumeSoon(self) }
                return
            }
            reads += 1
            let (space, room) = readSpace()
            switch stream.read(space, room) {
            case .bytes(let count):
                owner.connection(self, received: count)
                guard phase != .ended else { return }
                took(space, count)
                // A short read of a plain socket has emptied it.
                if count < room, !stream.mayHoldBytes { return }
            case .wouldBlock: return
            case .end:
                let what = phase == .upgrading ? "an answer to the upgrade" : "a close frame"
                streamEnded(Stream.broken("The connection ended without \(what)."))
                return
            case .failed(let fault):
                streamEnded(fault)
                return
            }
        }
    }

    /// Where the next read goes: with large messages behind what is there of one, else into the shared buffer.
    private func readSpace() -> (UnsafeMutableRawPointer, Int) {
        if let base = carry.base, carry.isOwnBuffer { return (base + carry.count, carry.capacity - carry.count) }
        return (reactor.scratch + Reactor.headroomBytes, Reactor.scratchBytes)
    }

    private func took(_ space: UnsafeMutableRawPointer, _ count: Int) {
        let shared = reactor.scratch + Reactor.headroomBytes
        if space != shared {
            carry.added(count)
            if carry.count >= carry.wanted { consumeCarry() }
            return
        }
        var start = space
        var total = count
        if carry.count > 0, let base = carry.base {
            // Less than a message that is small enough for the headroom, or less than the largest header of an upgrade.
            start = space - carry.count
            memcpy(start, base, carry.count)
            total += carry.count
            carry.clear()
        }
        consume(UnsafeMutableRawBufferPointer(start: start, count: total))
    }

    private func consumeCarry() {
        guard let base = carry.base else { return }
        let bytes = UnsafeMutableRawBufferPointer(start: base, count: carry.count)
        carry.clear()
        consume(bytes)
    }

    /// Takes every complete message out of the bytes and keeps the rest.
    private func consume(_ bytes: UnsafeMutableRawBufferPointer) {
        var rest = bytes[...]
        if phase == .upgrading {
            switch upgrade.parse(UnsafeRawBufferPointer(bytes)) {
            case .incomplete:
                carry.keep(UnsafeRawBufferPointer(bytes))
                return
            case .refused(let fault):
                guard upgrade.mayTellMore else { return endRefused(fault) }
                refusal = fault
                carry.keep(UnsafeRawBufferPointer(bytes))
                awaitRestOfRefusal()
                return
            case .accepted(let consumed):
                rest = rest.dropFirst(consumed)
                phase = .open
                owner.connectionOpened(self)
            }
        }
        var offset = rest.startIndex
        let end = bytes.count
        while phase == .open, offset < end, let base = bytes.baseAddress {
            let unread = UnsafeMutableRawBufferPointer(start: base + offset, count: end - offset)
            switch decoder.next(unread) {
            // Binary messages are taken like text (Bird protocol 3).
            case .message(let start, let length, let consumed, let isValidUTF8, _):
                let message = UnsafeMutableRawBufferPointer(start: base + offset + start, count: length)
                if !deliver(message, isValidUTF8: isValidUTF8) {
                    hasLeftover = true
                    keepRest(bytes, from: offset)
                    return
                }
                offset += consumed
            case .assembled(let consumed, _):
                // A copy: the owner runs the program's code, which must find the decoder at rest.
                var assembly = decoder.assembly
                let isTaken = assembly.withUnsafeMutableBytes { message in
                    deliver(message, isValidUTF8: true)
                }
                if !isTaken {
                    waitingAssembly = assembly
                    hasLeftover = true
                    keepRest(bytes, from: offset + consumed)
                    return
                }
                offset += consumed
            case .fragment(let consumed):
                offset += consumed
                if partialSince == nil { partialSince = reactor.now }
                continue
            case .ping(let start, let length, let consumed):
                pong(UnsafeRawBufferPointer(start: base + offset + start, count: length))
                offset += consumed
            case .pong(_, _, let consumed):
                offset += consumed
            case .close(let code, let reason, _):
                closedByPeer(code, reason)
                return
            case .failure(let code, let reason):
                fail(code, reason)
                return
            case .needsMore(let total):
                carry.keep(UnsafeRawBufferPointer(unread), wanted: total)
                if partialSince == nil { partialSince = reactor.now }
                return
            }
            if partialSince != nil, !decoder.isInsideMessage { partialSince = nil }
        }
    }

    /// What a server says of why it refuses comes in the body, which may have no end that shows.
    private func awaitRestOfRefusal() {
        guard closeTimer == nil else { return }
        let timer = ReactorTimer { [weak self] _ in self?.streamEnded(Stream.broken("")) }
        closeTimer = timer
        reactor.setTimer(timer, reactor.now + Self.refusalWaitMs)
    }

    private func told(_ fault: Fault) -> Fault {
        owner.client.route.fault(ofUpgrade: fault, words: upgrade.words, wantsTLS: upgrade.wantsTLS)
    }

    /// Nothing more comes: an upgrade that has been refused, or the loss of the connection.
    private func streamEnded(_ fault: Fault) {
        if phase == .upgrading, let refusal { return endRefused(refusal) }
        end(.failed(phase == .upgrading && fault.status == BIRD_ERR_LOST ? told(fault) : fault))
    }

    private func endRefused(_ fault: Fault) {
        let waitMs = upgrade.retryAfter?.waitMs(wallClockMs: System.wallClockMs())
        end(waitMs.map { .refused(told(fault), retryAfterMs: $0) } ?? .failed(told(fault)))
    }

    private func keepRest(_ bytes: UnsafeMutableRawBufferPointer, from offset: Int) {
        carry.keep(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
    }

    private func pong(_ payload: UnsafeRawBufferPointer) {
        outbound.appendPong(opcode: .pong, Array(payload), maskKey: reactor.random.maskKey())
    }

    /// RFC 6455 5.5.1: answer a close with a close, then let the server close the stream.
    private func closedByPeer(_ code: UInt16, _ reason: String) {
        outbound.appendClose(code: code == 1005 ? nil : code, reason: "", maskKey: reactor.random.maskKey())
        phase = .closing
        writeLast()
        lingerUntilClosed()
        owner.connectionEnded(self, .closed(code: code, reason: reason))
    }

    private func fail(_ code: UInt16, _ reason: String) {
        outbound.appendClose(code: code, reason: reason, maskKey: reactor.random.maskKey())
        phase = .closing
        writeLast()
        lingerUntilClosed()
        owner.connectionEnded(
            self,
            .failed(
                Fault(
                    code == 1009 ? BIRD_ERR_SIZE : BIRD_ERR_PROTOCOL, .connection,
                    field: code == 1009 ? "message_bytes_max" : "websocket", "Closed with \(code): \(reason).",
                    code: Int32(code), isRetriable: true)))
    }

    /// The message is not UTF-8 (RFC 6455 8.1).
    func failInvalidUTF8() { fail(1007, "a text message is not UTF-8") }

    /// No traffic for a while: memory goes back.
    func becameIdle() {
        carry.giveBack()
        outbound.giveBack()
    }
}
