import CBirdRealtimeABI
import Glibc

/// The way of records from the reactor to a consumer: chunks, first in first out for each client, and by turns among clients, so that
/// none waits behind all that another has. The bound is each client's own (bytes and records not yet consumed).
/// `@unchecked Sendable`: all state is guarded by `monitor`.
package final class RecordQueue: @unchecked Sendable {
    private let monitor = Monitor()
    /// The clients of which chunks wait, and perhaps some of which none do any more.
    private var ready = Ring<RecordLane>()
    private var chunkCount = 0
    /// Clients with destructors to run.
    private var retiring: [Client] = []
    private var consumer: pthread_t?
    private var clientCount = 0
    private var isRetired = false
    private var heldCount = 0
    private var isWoken = false
    /// The consumer has been told that something waits, and has not found the queue empty since.
    private var isAnnounced = false
    /// The program polls the fd: until it has asked for it, telling it there would be in vain.
    private var isPolled = false
    /// nil: the thread pool consumes, and is told through `onReady`.
    private var fd: Int32
    private let onReady: (@Sendable () -> Void)?
    package private(set) var handle: UInt = 0

    /// A queue that the program empties.
    package init() throws(Fault) {
        switch System.makeEventFD() {
        case .success(let fd): self.fd = fd
        case .failure(let error):
            throw Fault(BIRD_ERR_SYSTEM, .system, field: "eventfd", "No eventfd for the queue: \(error.message).")
        }
        onReady = nil
    }

    /// A queue that something else than a waiting program empties.
    package init(onReady: @escaping @Sendable () -> Void) {
        fd = -1
        self.onReady = onReady
    }

    deinit { System.closeEventFD(fd) }

    /// Readable while `isAnnounced`.
    package func polledFD() throws(Fault) -> Int32 {
        try monitor.withLock { () throws(Fault) in
            guard !isRetired else { throw Self.destroyed("queue") }
            if !isPolled, isAnnounced { System.signalEventFD(fd) }
            isPolled = true
            return fd
        }
    }

    package func registerHandle() -> UInt {
        handle = Handles.register(self, as: .queue)
        return handle
    }

    private static func destroyed(_ what: String) -> Fault {
        Fault(BIRD_ERR_HANDLE, .argument, field: "queue", "The \(what) was destroyed.")
    }

    // MARK: Clients

    func attachClient() throws(Fault) {
        try monitor.withLock { () throws(Fault) in
            guard !isRetired else { throw Self.destroyed("queue of the options") }
            clientCount += 1
        }
    }

    /// The client has ended: what still waits of it is of no use.
    package func detach(_ client: Client) {
        // What is dropped goes after the lock: it may be the last to hold the client.
        let dropped = monitor.withLock { () -> [RecordChunk] in
            clientCount -= 1
            retiring.removeAll { $0 === client }
            for _ in 0..<ready.count {
                guard let lane = ready.popFirst() else { break }
                if lane !== client.lane { ready.append(lane) }
            }
            var dropped: [RecordChunk] = []
            while let chunk = client.lane.popFirst() { dropped.append(chunk) }
            chunkCount -= dropped.count
            return dropped
        }
        for chunk in dropped { ChunkPool.give(chunk) }
    }

    /// True if nothing uses the queue any more; its handle is then gone.
    package func retire() -> Bool {
        monitor.withLock {
            guard clientCount == 0, heldCount == 0, consumer == nil, Handles.release(handle, .queue) else {
                return false
            }
            // At once: a channel reference that is still held keeps the client, and so this object.
            isRetired = true
            System.closeEventFD(fd)
            fd = -1
            return true
        }
    }

    /// In a forked child: this copy of the fd is closed; the records stay, since a thread of the parent's may have been among them.
    package func closeInherited() {
        System.closeEventFD(fd)
        fd = -1
        _ = Unmanaged.passRetained(self)
    }

    // MARK: Producer

    /// The newest chunk of the client that waits, taken out to go on with it, if it is of this kind and has room.
    func newest(of client: Client, isDroppable: Bool, roomForStringBytes bytes: Int) -> RecordChunk? {
        monitor.withLock {
            guard let last = client.lane.popLast(isDroppable: isDroppable, roomForStringBytes: bytes) else {
                return nil
            }
            chunkCount -= 1
            return last
        }
    }

    /// A consumer that is at work may take the chunk from now on; one that rests is told by `announce`, which must follow. Returns how
    /// many events were dropped to keep the client within its bounds: the oldest that nobody has taken yet.
    func publish(_ chunk: RecordChunk, of client: Client) -> Int {
        let trimmed = monitor.withLock {
            client.lane.append(chunk)
            chunkCount += 1
            list(client.lane)
            return client.lane.hasDroppable ? trim(client) : (dropped: 0, emptied: [])
        }
        for chunk in trimmed.emptied { recycle(chunk) }
        return trimmed.dropped
    }

    /// Lock held.
    private func list(_ lane: RecordLane) {
        if !lane.isListed {
            lane.isListed = true
            ready.append(lane)
        }
    }

    /// Lock held. One event alone stays, however large it is.
    private func trim(_ client: Client) -> (dropped: Int, emptied: [RecordChunk]) {
        let hot = client.hot
        var records = hot.pointee.queuedRecords.load(ordering: .acquiring)
        var bytes = hot.pointee.queuedBytes.load(ordering: .acquiring)
        var droppedBytes = 0
        var dropped = 0
        var emptied: [RecordChunk] = []
        while records > hot.pointee.queueRecordsMax || (bytes > hot.pointee.queueBytesMax && records > 1),
            let oldest = client.lane.dropOldest()
        {
            records -= 1
            bytes -= oldest.bytes
            dropped += 1
            droppedBytes += oldest.bytes
            if let chunk = oldest.emptied {
                chunkCount -= 1
                emptied.append(chunk)
            }
        }
        if dropped > 0 {
            hot.pointee.queuedRecords.wrappingSubtract(dropped, ordering: .acquiringAndReleasing)
            hot.pointee.queuedBytes.wrappingSubtract(droppedBytes, ordering: .acquiringAndReleasing)
        }
        return (dropped, emptied)
    }

    /// Makes a consumer come by for a client's destructors, although no record may wait.
    func nudge(_ client: Client) {
        monitor.withLock {
            if !retiring.contains(where: { $0 === client }) { retiring.append(client) }
        }
        announce()
    }

    /// Tells the consumer that something waits, unless it knows. What has changed under the lock is seen by whoever asks before it waits,
    /// and whoever waits already is woken: no news is lost, although the signal comes after the lock, which the woken thread needs.
    func announce() {
        let isNews = monitor.withLock { () -> Bool in
            guard hasWork, !isAnnounced else { return false }
            isAnnounced = true
            if isPolled, fd >= 0 { System.signalEventFD(fd) }
            return true
        }
        guard isNews else { return }
        monitor.signalAll()
        onReady?()
    }

    // MARK: Consumer

    package enum Wait {
        case ready
        case woken
        case timeout
    }

    package func wait(timeoutMs: Int64) -> Wait {
        monitor.withLock {
            _ = monitor.wait(timeoutMs: timeoutMs) { isWoken || findsWork() }
            // First: records may wait all the time.
            if isWoken {
                isWoken = false
                return .woken
            }
            return hasWork ? .ready : .timeout
        }
    }

    package func wake() {
        monitor.withLock {
            isWoken = true
            monitor.signalAll()
        }
    }

    /// Only one thread consumes at a time. False: another one does, or this one is inside a handler of the dispatch.
    func beginConsuming() -> Bool {
        monitor.withLock {
            guard consumer == nil else { return false }
            consumer = pthread_self()
            return true
        }
    }

    func endConsuming() {
        monitor.withLock { consumer = nil }
    }

    /// Lock held.
    private var hasWork: Bool { chunkCount > 0 || !retiring.isEmpty }

    /// Lock held. A consumer looks for work. One that finds none is told when some comes: whatever takes work away, be it the reactor that
    /// goes on with its newest chunk, need not think of that.
    private func findsWork() -> Bool {
        if hasWork { return true }
        if isAnnounced, isPolled, fd >= 0 { System.clearEventFD(fd) }
        isAnnounced = false
        return false
    }

    /// For a consumer that rests if it is, until `onReady` is called.
    package func isEmpty() -> Bool { monitor.withLock { !findsWork() } }

    private func take() -> RecordChunk? {
        monitor.withLock {
            var chunk: RecordChunk?
            while chunk == nil, let lane = ready.popFirst() {
                chunk = lane.popFirst()
                lane.isListed = !lane.isEmpty
                if lane.isListed { ready.append(lane) }
            }
            if chunk != nil { chunkCount -= 1 }
            _ = findsWork()
            return chunk
        }
    }

    /// Destructors of what was unbound and, if handlers may run, those that were bound late.
    private func runChores(withHandlers: Bool) {
        let clients = monitor.withLock { () -> [Client] in
            defer { retiring = [] }
            return retiring
        }
        for client in clients where client.enterDelivery() {
            if withHandlers { client.dispatcher.runChores() } else { client.dispatcher.runRetired() }
            client.leaveDelivery()
        }
    }

    /// The rest of a chunk waits for the next dispatch.
    private func giveBack(_ chunk: RecordChunk, of client: Client) {
        monitor.withLock {
            client.lane.giveBack(chunk)
            chunkCount += 1
            list(client.lane)
        }
        announce()
    }

    /// Gives a chunk back after its records have been consumed.
    func recycle(_ chunk: RecordChunk) {
        chunk.client?.didConsume(bytes: chunk.usedBytes, records: chunk.usedRecords)
        ChunkPool.give(chunk)
    }

    /// Takes the oldest chunk for the program to walk. nil: nothing waits. Throws when another consumer is at work.
    package func drain() throws(Fault) -> RecordChunk? {
        guard beginConsuming() else { throw Self.busy }
        defer { endConsuming() }
        runChores(withHandlers: false)
        while let chunk = take() {
            guard let client = chunk.client, client.enterDelivery() else {
                recycle(chunk)
                continue
            }
            client.dispatcher.runRetired()
            chunk.applyChanges()
            client.leaveDelivery()
            guard !chunk.isDelivered else {
                recycle(chunk)
                continue
            }
            chunk.queue = self
            chunk.handle = Handles.register(chunk, as: .batch)
            monitor.withLock { heldCount += 1 }
            return chunk
        }
        return nil
    }

    func releaseHeld(_ chunk: RecordChunk) {
        recycle(chunk)
        monitor.withLock { heldCount -= 1 }
    }

    /// Runs the handlers of what waits on the calling thread. `recordsMax` 0: what waits at the start.
    package func dispatch(recordsMax: Int) throws(Fault) -> Int {
        guard beginConsuming() else { throw Self.busy }
        var delivered = 0
        // A bound even when the reactor keeps adding: a dispatch of everything ends with what waited when it began.
        var chunksLeft = monitor.withLock { findsWork() ? chunkCount : 0 }
        runChores(withHandlers: true)
        while chunksLeft > 0, recordsMax <= 0 || delivered < recordsMax, let chunk = take() {
            chunksLeft -= 1
            guard let client = chunk.client, client.enterDelivery() else {
                recycle(chunk)
                continue
            }
            let process = HostProcess.generation
            let began = System.now()
            let records = client.dispatcher.deliver(chunk, recordsMax: recordsMax <= 0 ? .max : recordsMax - delivered)
            delivered += records
            guard process == HostProcess.generation else {
                // A handler forked, and this is the child: every lock of the queue and the client is the parent's.
                throw Fault(BIRD_ERR_FORKED, .argument, field: "queue", "The queue belongs to the parent process.")
            }
            client.tellSlowness(since: began, "handlers of \(records) records took")
            client.leaveDelivery()
            if chunk.isDelivered || client.isEnding { recycle(chunk) } else { giveBack(chunk, of: client) }
        }
        endConsuming()
        return delivered
    }

    private static let busy = Fault(
        BIRD_ERR_BUSY, .argument, field: "queue", "Another thread drains or dispatches this queue.", isRetriable: true)
}

extension RecordChunk {
    /// Ends a batch that the program held.
    package func release() {
        guard let queue else { return }
        self.queue = nil
        queue.releaseHeld(self)
    }
}
