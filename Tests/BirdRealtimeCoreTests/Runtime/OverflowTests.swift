import CBirdRealtimeABI
import Testing

@testable import BirdRealtimeCore

/// A client's records from the sink to the consumer of a queue, without a connection.
private final class Flow {
    static let recordsMax = 20
    let queue: RecordQueue
    let client: Client
    private let handlers = HandlerMask()
    let sink: RecordSink
    var held: [RecordChunk] = []
    var sentEvents: [Int] = []
    var sentOthers: [Int] = []
    var events: [Int] = []
    var others: [Int] = []
    var all: [Int] = []
    var notices = 0
    private var number = 0

    init(_ overflow: String) throws {
        queue = try RecordQueue()
        _ = queue.registerHandle()
        var options = ClientOptions()
        try options.set("app_key", "key")
        try options.set("ws_host", "localhost")
        try options.set("overflow", overflow)
        try options.set("queue_records_max", Int64(Self.recordsMax))
        options.delivery = .queue
        options.queue = queue
        client = try Client(options)
        sink = RecordSink(client: client, handlers: handlers)
    }

    func event(bytes: Int = 0) {
        number += 1
        sentEvents.append(number)
        let data = Array("\(number) \(String(repeating: "x", count: bytes))".utf8)
        sink.emit(.channelEvent(.none, event: "tick", data: .string(data)), dialect: .bird)
    }

    func other() {
        number += 1
        sentOthers.append(number)
        sink.emit(.signedIn(Member(id: "m", info: nil), memberData: "\(number) "), dialect: .bird)
    }

    /// Takes a batch and keeps it; false when nothing waits.
    func take() throws -> Bool {
        guard let chunk = try queue.drain() else { return false }
        var record = UnsafeRawPointer(chunk.visibleRecords)
        for _ in 0..<chunk.visibleCount {
            read(record.assumingMemoryBound(to: bird_record.self).pointee)
            record += RecordChunk.stride
        }
        held.append(chunk)
        return true
    }

    private func read(_ record: bird_record) {
        guard Int32(record.kind) != BIRD_RECORD_ERROR else {
            notices += 1
            return
        }
        let number = Int(String(cString: record.data).prefix { $0 != " " }) ?? -1
        all.append(number)
        if Int32(record.kind) == BIRD_RECORD_EVENT { events.append(number) } else { others.append(number) }
    }

    func releaseOne() {
        guard !held.isEmpty else { return }
        Handles.release(held[0].handle, .batch)
        held.removeFirst().release()
    }

    func consumeAll() throws {
        sink.publish()
        while try take() {}
        while !held.isEmpty { releaseOne() }
    }

    var queued: (records: UInt64, bytes: UInt64, dropped: UInt64) {
        let statistics = client.statistics
        return (statistics.queue_records, statistics.queue_bytes, statistics.events_dropped)
    }
}

@Suite struct OverflowTests {
    @Test(arguments: ["pause", "drop-oldest", "drop-newest"], 0..<20)
    func nothingButEventsIsDroppedAndEverythingIsCounted(overflow: String, seed: UInt64) throws {
        let flow = try Flow(overflow)
        var random = SplitMix64(seed: seed)
        for _ in 0..<3_000 {
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<12: flow.event(bytes: Int.random(in: 0..<300, using: &random))
            case 12: flow.event(bytes: 10_000)
            case 13: if flow.queued.records < 200 { flow.other() }
            case 14..<18: flow.sink.publish()
            case 18: _ = try flow.take()
            default: flow.releaseOne()
            }
        }
        try flow.consumeAll()
        let (records, bytes, dropped) = flow.queued
        #expect(records == 0 && bytes == 0)
        #expect(flow.all == flow.all.sorted())
        #expect(flow.others == flow.sentOthers)
        #expect(flow.events.count + Int(dropped) == flow.sentEvents.count)
        #expect((dropped == 0) == (overflow == "pause"))
        #expect((flow.notices == 0) == (overflow == "pause"))
    }

    @Test func theNewestAreKept() throws {
        let flow = try Flow("drop-oldest")
        var random = SplitMix64(seed: 5)
        for _ in 0..<200 {
            for _ in 0..<Int.random(in: 0..<200, using: &random) {
                flow.event(bytes: Int.random(in: 0..<2_000, using: &random))
                if Int.random(in: 0..<10, using: &random) == 0 { flow.sink.publish() }
            }
            try flow.consumeAll()
            #expect(flow.events.count >= min(flow.sentEvents.count, Flow.recordsMax - 1))
            #expect(flow.events[...] == flow.sentEvents.suffix(flow.events.count))
            (flow.events, flow.sentEvents) = ([], [])
        }
    }

    @Test func theOldestAreKept() throws {
        let flow = try Flow("drop-newest")
        for _ in 0..<100 { flow.event() }
        try flow.consumeAll()
        #expect(flow.events == Array(1...Flow.recordsMax))
        #expect(flow.notices == 1)
    }

    @Test func memoryStaysInProportionWhereKindsAlternate() throws {
        let flow = try Flow("drop-oldest")
        flow.sink.isBusy = true
        for _ in 0..<10 {
            flow.event()
            flow.other()
        }
        flow.sink.publish()
        var capacity = 0
        while try flow.take() { capacity += flow.held[flow.held.count - 1].capacityBytes }
        #expect(flow.held.count == 20)
        #expect(capacity <= 20 * RecordChunk.bytesSmallest)
        try flow.consumeAll()
    }
}
