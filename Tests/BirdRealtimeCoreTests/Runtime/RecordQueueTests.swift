import CBirdRealtimeABI
import Glibc
import Synchronization
import Testing

@testable import BirdRealtimeCore

/// Records of one client on their way into a queue.
private final class Producer {
    let client: Client
    private let handlers = HandlerMask()
    let sink: RecordSink
    private(set) var sent = 0

    init(_ queue: RecordQueue) throws {
        var options = ClientOptions()
        try options.set("app_key", "key")
        try options.set("ws_host", "localhost")
        options.delivery = .queue
        options.queue = queue
        client = try Client(options)
        sink = RecordSink(client: client, handlers: handlers)
    }

    func event(bytes: Int = 1) {
        sent += 1
        let data = [UInt8](repeating: UInt8(ascii: "x"), count: bytes)
        sink.emit(.channelEvent(.none, event: "tick", data: .string(data)), dialect: .bird)
    }
}

/// Takes what waits; returns how many records that were.
private func drain(_ queue: RecordQueue) throws -> Int {
    var records = 0
    while let chunk = try queue.drain() {
        records += chunk.visibleCount
        Handles.release(chunk.handle, .batch)
        chunk.release()
    }
    return records
}

private func isReadable(_ fd: Int32) -> Bool {
    var entry = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) == 1
}

/// Long enough for a loaded machine.
private let deadlineMs: Int64 = 60_000

/// Waits for another thread. False: in vain.
private func waitUntil(_ isDone: () -> Bool) -> Bool {
    let end = System.now() + deadlineMs
    while !isDone() {
        guard System.now() < end else { return false }
        usleep(50)
    }
    return true
}

private struct Thread {
    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    private var thread = pthread_t()

    init(_ run: @escaping () -> Void) {
        let body = Unmanaged.passRetained(Body(run)).toOpaque()
        let error = pthread_create(
            &thread, nil,
            { body in
                if let body { Unmanaged<Body>.fromOpaque(body).takeRetainedValue().run() }
                return nil
            }, body)
        precondition(error == 0)
    }

    func join() { pthread_join(thread, nil) }
}

@Suite struct RecordQueueTests {
    private final class Count: Sendable {
        let value = Atomic<Int>(0)
        var now: Int { value.load(ordering: .sequentiallyConsistent) }
        func add(_ number: Int = 1) { value.add(number, ordering: .sequentiallyConsistent) }
    }

    @Test func aConsumerIsToldOnceOfAllThatARoundBrings() throws {
        let news = Count()
        let queue = RecordQueue(onReady: { news.add() })
        let producer = try Producer(queue)
        for _ in 0..<100 { producer.event(bytes: 1_000) }
        #expect(news.now == 0)
        producer.sink.publish()
        #expect(news.now == 1)
        producer.event()
        producer.sink.publish()
        #expect(news.now == 1)
        #expect(try drain(queue) == 101)
        producer.event()
        producer.sink.publish()
        #expect(news.now == 2)
    }

    @Test func aConsumerThatFoundNothingIsToldAgain() throws {
        let news = Count()
        let queue = RecordQueue(onReady: { news.add() })
        let producer = try Producer(queue)
        for round in 1...3 {
            producer.event()
            producer.sink.publish()
            #expect(news.now == 2 * round - 1)
            // The reactor goes on with the chunk that waits: a consumer that comes now comes in vain.
            producer.event()
            #expect(queue.isEmpty())
            producer.sink.publish()
            #expect(news.now == 2 * round)
            #expect(try drain(queue) == 2)
        }
    }

    @Test func fdIsReadableWhileRecordsWait() throws {
        let queue = try RecordQueue()
        let producer = try Producer(queue)
        producer.event()
        producer.sink.publish()
        // Asked for only now.
        let fd = try queue.polledFD()
        for _ in 0..<3 {
            #expect(isReadable(fd))
            #expect(try drain(queue) == 1)
            #expect(!isReadable(fd))
            producer.event()
            producer.sink.publish()
            #expect(isReadable(fd))
            producer.event()
            #expect(try queue.dispatch(recordsMax: 0) == 0)
            #expect(!isReadable(fd))
            producer.sink.publish()
            #expect(isReadable(fd))
            #expect(try drain(queue) == 2)
            producer.event()
            producer.sink.publish()
        }
        #expect(isReadable(fd))
        #expect(try queue.dispatch(recordsMax: 0) == 1)
        #expect(!isReadable(fd))
    }

    /// The consumer is asleep, about to sleep, waking and at work.
    @Test(arguments: 0..<4)
    func noNewsIsLostOnAWaitingThread(seed: UInt64) throws {
        let queue = try RecordQueue()
        let producer = try Producer(queue)
        let received = Count()
        let failures = Count()
        let total = 20_000
        let consumer = Thread {
            while received.now < total {
                guard queue.wait(timeoutMs: deadlineMs) == .ready, let records = try? drain(queue) else {
                    failures.add()
                    return
                }
                received.add(records)
            }
        }
        var random = SplitMix64(seed: seed)
        while producer.sent < total, failures.now == 0 {
            for _ in 0..<min(total - producer.sent, Int.random(in: 1...20, using: &random)) { producer.event() }
            producer.sink.publish()
            if Int.random(in: 0..<4, using: &random) == 0 {
                _ = waitUntil { received.now == producer.sent || failures.now > 0 }
            }
        }
        consumer.join()
        #expect(failures.now == 0)
        #expect(received.now == total)
    }

    // MARK: The pool

    private final class Guest {
        let producer: Producer
        let membership = DeliveryPool.Membership()
        let received = Count()

        /// `handler` is called with each event and `userData`.
        init(_ handler: @escaping RecordHandler, _ userData: (Guest) -> AnyObject) throws {
            producer = try Producer(RecordQueue(onReady: { [membership] in membership.schedule() }))
            membership.client = producer.client
            try membership.join()
            _ = try producer.client.observe(
                1 << UInt64(BIRD_RECORD_EVENT), handler, userData: Unmanaged.passUnretained(userData(self)).toOpaque(),
                destructor: nil)
        }

        func event() {
            producer.event()
            producer.sink.publish()
        }
    }

    /// Four clients, of which each handler waits for all others, need the four threads of the pool.
    @Test func aThreadIsWokenForEachClient() throws {
        for _ in 0..<20 {
            let inside = Count()
            let guests = try (0..<4).map { _ in
                try Guest(
                    { _, userData in
                        guard let userData else { return }
                        let inside = Unmanaged<Count>.fromOpaque(userData).takeUnretainedValue()
                        inside.add()
                        _ = waitUntil { inside.now >= 4 }
                    }, { _ in inside })
            }
            for guest in guests { guest.event() }
            #expect(waitUntil { inside.now == 4 })
            for guest in guests {
                guest.membership.leave()
                _ = guest.producer.client.destroy()
            }
        }
    }

    @Test func noNewsIsLostInThePool() throws {
        let guests = try (0..<8).map { _ in
            try Guest(
                { _, userData in
                    guard let userData else { return }
                    Unmanaged<Guest>.fromOpaque(userData).takeUnretainedValue().received.add()
                }, { $0 })
        }
        var random = SplitMix64(seed: 11)
        for _ in 0..<2_000 {
            for guest in guests {
                for _ in 0..<Int.random(in: 0...2, using: &random) { guest.event() }
            }
            guard Int.random(in: 0..<3, using: &random) == 0 else { continue }
            #expect(waitUntil { guests.allSatisfy { $0.received.now == $0.producer.sent } })
        }
        #expect(waitUntil { guests.allSatisfy { $0.received.now == $0.producer.sent } })
        for guest in guests {
            guest.membership.leave()
            _ = guest.producer.client.destroy()
        }
    }
}

@Suite struct ChunkShelfTests {
    private func chunks(_ count: Int) -> [RecordChunk] {
        (0..<count).map { _ in RecordChunk(capacityBytes: RecordChunk.bytesSmallest) }
    }

    @Test func memoryOfABurstGoesBack() {
        var shelf = ChunkShelf()
        let burst = chunks(ChunkShelf.chunksMax + 5)
        for _ in burst { #expect(shelf.take().idle == nil) }
        for chunk in burst { shelf.give(chunk) }
        // They have been needed since the last time.
        #expect(shelf.giveBack().isEmpty)
        // Two are in use at once from now on, the ones that were used last.
        for _ in 0..<100 {
            guard let first = shelf.take().idle, let second = shelf.take().idle else {
                Issue.record("no chunk")
                return
            }
            #expect(first === burst[ChunkShelf.chunksMax - 1] && second === burst[ChunkShelf.chunksMax - 2])
            shelf.give(second)
            shelf.give(first)
        }
        let freed = shelf.giveBack()
        #expect(freed.count == ChunkShelf.chunksMax - 2)
        #expect(!freed.contains { $0 === burst[ChunkShelf.chunksMax - 1] })
        // Nobody needs any.
        #expect(shelf.giveBack().count == 2)
        #expect(shelf.take().idle == nil)
    }

    @Test func aFloodIsGivenAFullQueueAtOnceAndAgainAfterItsMemoryWentBack() {
        var shelf = ChunkShelf()
        for _ in 0..<2 {
            for _ in 0..<ChunkShelf.floodChunks { #expect(shelf.take().missing == 1) }
            let stock = ChunkShelf.fullQueueChunks - ChunkShelf.floodChunks
            #expect(shelf.take().missing == stock)
            for chunk in chunks(stock - 1) { shelf.give(chunk) }
            for _ in 0..<stock - 1 { #expect(shelf.take().idle != nil) }
            // A second client is behind as well.
            #expect(shelf.take().missing == 1)
            for chunk in chunks(ChunkShelf.fullQueueChunks + 1) { shelf.give(chunk) }
            #expect(shelf.giveBack().isEmpty)
            #expect(shelf.giveBack().count == ChunkShelf.fullQueueChunks + 1)
        }
    }
}
