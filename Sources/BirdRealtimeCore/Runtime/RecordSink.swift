import CBirdRealtimeABI
import Glibc

/// Turns what happens on a connection into records, and brings them on their way. Reactor thread only.
final class RecordSink {
    /// Strings of a record are never NULL.
    private let emptyString = UnsafeRawPointer(StaticString("").utf8Start).assumingMemoryBound(to: CChar.self)

    private unowned(unsafe) let client: Client
    private unowned(unsafe) let handlers: HandlerMask
    private let queue: RecordQueue?
    private let isQueued: Bool
    private let dropsNewest: Bool
    /// "drop-oldest": application events have chunks of their own, from which the oldest can be dropped.
    private let separatesEvents: Bool
    private var chunk: RecordChunk? { didSet { filling = chunk.map { .passUnretained($0) } } }
    /// The same, for the short way: reading it costs no reference count.
    private var filling: Unmanaged<RecordChunk>?
    /// Chunks have gone into the queue of which it has told nobody.
    private var hasNews = false
    /// What every event's record begins as.
    private let blank: StoredRecord
    /// LOOP: the record of the event being delivered, filled anew each time.
    private let loopRecord = UnsafeMutablePointer<bird_record>.allocate(capacity: 1)
    private var names: NameTable
    private var namesVersion: UInt32
    private var lastName: UnsafePointer<NameEntry>?
    private let hot: UnsafeMutablePointer<ClientHot>
    private let dispatcher: Dispatcher
    /// LOOP: handlers on the stack.
    private(set) var handlerDepth = 0
    private(set) var eventsDelivered: UInt64 = 0
    /// The read that is being worked on brought a lot.
    var isBusy = false

    init(client: Client, handlers: HandlerMask) {
        self.client = client
        self.handlers = handlers
        queue = client.queue
        hot = client.hot
        dispatcher = client.dispatcher
        isQueued = client.queue != nil
        dropsNewest = isQueued && client.options.overflow == .dropNewest
        separatesEvents = isQueued && client.options.overflow == .dropOldest
        (names, namesVersion) = client.namesSnapshot(isAtRest: true)
        var blank = StoredRecord(visible: bird_record(), channel: nil, content: -1)
        blank.visible.begin(BIRD_RECORD_EVENT, of: hot, noText: emptyString)
        self.blank = blank
        loopRecord.initialize(to: blank.visible)
    }

    deinit {
        loopRecord.deallocate()
        if let chunk { ChunkPool.give(chunk) }
    }

    /// Nothing more is to be read until the consumer has caught up.
    @inline(__always)
    var isFull: Bool {
        isQueued && hasReached(records: hot.pointee.pauseRecords, bytes: hot.pointee.pauseBytes)
    }

    @inline(__always)
    private func hasReached(records: Int, bytes: Int) -> Bool {
        hot.pointee.queuedRecords.load(ordering: .relaxed) + (chunk?.usedRecords ?? 0) >= records
            || hot.pointee.queuedBytes.load(ordering: .relaxed) + (chunk?.usedBytes ?? 0) >= bytes
    }

    @inline(__always)
    private func isWanted(_ kind: Int32) -> Bool { hot.pointee.records & (1 &<< UInt64(kind)) != 0 }

    @inline(__always)
    private func refreshNames() {
        if namesVersion != hot.pointee.namesVersion.load(ordering: .acquiring) { takeNames() }
    }

    @inline(never)
    private func takeNames() {
        lastName = nil
        (names, namesVersion) = client.namesSnapshot(isAtRest: handlerDepth == 0)
    }

    /// Names that are not used any more are let go, although no event has come.
    func letGoOfNames() { takeNames() }

    /// The interned name, looked up only when it is another one than before.
    @inline(__always)
    private func nameOf(_ event: UnsafeRawBufferPointer) -> UnsafePointer<NameEntry>? {
        if let lastName, Int(lastName.pointee.length) == event.count, let bytes = event.baseAddress,
            memcmp(lastName.pointee.text, bytes, event.count) == 0
        {
            return lastName
        }
        let name = InternedNames.entry(names.value(of: event))
        lastName = name
        return name
    }

    // MARK: The short way of an application event

    /// One event on a subscribed channel. The bytes of the message are overwritten.
    @inline(__always)
    func event(
        _ message: UnsafeMutableRawBufferPointer, _ scanned: ScannedMessage, _ channel: UnsafeMutablePointer<ChannelHot>
    ) {
        guard isWanted(BIRD_RECORD_EVENT), let base = message.baseAddress else { return }
        eventsDelivered &+= 1
        if dropsNewest, isWithoutRoom() { return }
        refreshNames()
        let name = nameOf(scanned.event.bytes(in: UnsafeRawBufferPointer(message)))
        if isQueued {
            store(base, scanned, channel, name)
        } else {
            deliverNow(base, scanned, channel, name)
        }
    }

    @inline(__always)
    private func deliverNow(
        _ base: UnsafeMutableRawPointer, _ scanned: ScannedMessage, _ channel: UnsafeMutablePointer<ChannelHot>,
        _ name: UnsafePointer<NameEntry>?
    ) {
        let record = loopRecord
        record.pointee.setChannel(channel)
        let text = base.assumingMemoryBound(to: UInt8.self)
        // The NULs go where quotes, commas and braces of the message stood, which have been read.
        if let name {
            record.pointee.event = name.pointee.text
            record.pointee.event_id = name.pointee.id
        } else {
            let event = text + scanned.event.offset
            event[scanned.event.length] = 0
            record.pointee.event = UnsafeRawPointer(event).assumingMemoryBound(to: CChar.self)
            record.pointee.event_id = 0
        }
        record.pointee.event_length = UInt32(truncatingIfNeeded: scanned.event.length)
        var span = scanned.data
        switch scanned.dataKind {
        case .none:
            record.pointee.data = emptyString
            record.pointee.data_kind = UInt32(BIRD_DATA_NONE)
        case .string:
            if span.isEscaped { span = JSONString.unescapeInPlace(span, in: base) }
            text[span.offset &+ span.length] = 0
            record.pointee.data = UnsafeRawPointer(text + span.offset).assumingMemoryBound(to: CChar.self)
            record.pointee.data_kind = UInt32(BIRD_DATA_STRING)
        case .value:
            text[span.offset &+ span.length] = 0
            record.pointee.data = UnsafeRawPointer(text + span.offset).assumingMemoryBound(to: CChar.self)
            record.pointee.data_kind = UInt32(BIRD_DATA_VALUE)
        }
        record.pointee.data_length = span.length
        if !scanned.sender.isNone, let span = senderSpan(scanned, in: base) {
            deliverFromSender(span, base, channel)
            return
        }
        handlers.begin()
        handlerDepth += 1
        dispatcher.deliver(record, channel)
        handlerDepth -= 1
    }

    /// The record that the short way has filled, with who sent it. The NUL goes where the quote behind the id stood, or what ended a number.
    @inline(never)
    private func deliverFromSender(
        _ span: Span, _ base: UnsafeMutableRawPointer, _ channel: UnsafeMutablePointer<ChannelHot>
    ) {
        var span = span
        if span.isEscaped { span = JSONString.unescapeInPlace(span, in: base) }
        let text = base.assumingMemoryBound(to: UInt8.self)
        text[span.offset &+ span.length] = 0
        loopRecord.pointee.sender = UnsafeRawPointer(text + span.offset).assumingMemoryBound(to: CChar.self)
        loopRecord.pointee.sender_length = UInt32(truncatingIfNeeded: span.length)
        handlers.begin()
        handlerDepth += 1
        dispatcher.deliver(loopRecord, channel)
        handlerDepth -= 1
        loopRecord.pointee.sender = emptyString
        loopRecord.pointee.sender_length = 0
    }

    /// Only client events have senders: nobody else says in whose name a server publishes.
    private func senderSpan(_ scanned: ScannedMessage, in base: UnsafeMutableRawPointer) -> Span? {
        let message = UnsafeRawBufferPointer(start: base, count: scanned.event.offset + scanned.event.length)
        guard scanned.event.bytes(in: message).starts(with: EventName.clientPrefix.utf8) else { return nil }
        return scanned.sender.span
    }

    @inline(__always)
    private func store(
        _ base: UnsafeMutableRawPointer, _ scanned: ScannedMessage, _ channel: UnsafeMutablePointer<ChannelHot>,
        _ name: UnsafePointer<NameEntry>?
    ) {
        let eventBytes = name == nil ? scanned.event.length + 1 : 0
        let dataBytes = scanned.dataKind == .none ? 0 : scanned.data.length + 1
        let sender = scanned.sender.isNone ? nil : senderSpan(scanned, in: base)
        let senderBytes = sender.map { $0.length + 1 } ?? 0
        openChunk(eventBytes + dataBytes + senderBytes, isDroppable: separatesEvents)._withUnsafeGuaranteedRef {
            chunk in
            let record = chunk.append(blank, of: channel)
            if let sender { chunk.copySender(sender, base, into: record) }
            let text = base.assumingMemoryBound(to: UInt8.self)
            record.pointee.event =
                name?.pointee.text ?? chunk.copyString(text + scanned.event.offset, scanned.event.length)
            record.pointee.event_length = UInt32(truncatingIfNeeded: scanned.event.length)
            record.pointee.event_id = name?.pointee.id ?? 0
            guard scanned.dataKind != .none else { return }
            let target = chunk.reserve(dataBytes)
            let length = JSONString.unescape(scanned.data, in: base, into: target)
            target[length] = 0
            record.pointee.data = UnsafeRawPointer(target).assumingMemoryBound(to: CChar.self)
            record.pointee.data_length = length
            record.pointee.data_kind = UInt32(scanned.dataKind == .string ? BIRD_DATA_STRING : BIRD_DATA_VALUE)
        }
    }

    /// One event of an encrypted channel, opened in the memory of its record. False: it could not be, nothing has happened, and the bytes
    /// of the message are as they were.
    func sealedEvent(
        _ message: UnsafeRawBufferPointer, _ scanned: ScannedMessage, _ channel: UnsafeMutablePointer<ChannelHot>,
        _ key: ChannelKey
    ) -> Bool {
        guard isWanted(BIRD_RECORD_EVENT), scanned.dataKind != .none else { return false }
        if dropsNewest, isWithoutRoom() {
            eventsDelivered &+= 1
            return true
        }
        refreshNames()
        let event = scanned.event.bytes(in: message)
        let name = nameOf(event)
        let sealed = scanned.data.bytes(in: message)
        let stringBytes = (name == nil ? event.count + 1 : 0) + sealed.count + 1
        let chunk = openChunk(stringBytes, isDroppable: separatesEvents).takeUnretainedValue()
        let mark = chunk.mark
        let eventText =
            name?.pointee.text
            ?? event.baseAddress.map {
                chunk.copyString($0.assumingMemoryBound(to: UInt8.self), event.count)
            }
        let memory = UnsafeMutableBufferPointer(start: chunk.reserve(sealed.count + 1), count: sealed.count)
        var length = sealed.count
        if scanned.data.isEscaped, let start = memory.baseAddress {
            length = JSONString.unescape(sealed, into: start)
        } else {
            UnsafeMutableRawBufferPointer(memory).copyMemory(from: sealed)
        }
        guard case .opened(let count) = key.open(UnsafeMutableRawBufferPointer(memory), length: length) else {
            chunk.giveBack(to: mark)
            if chunk.isEmpty {
                self.chunk = nil
                ChunkPool.give(chunk)
            }
            return false
        }
        // The text is at the end of its memory: what came before it is free again.
        let data = chunk.giveBack(sealed.count - count)
        data[count] = 0
        eventsDelivered &+= 1
        let record = chunk.append(blank, of: channel)
        record.pointee.event = eventText
        record.pointee.event_length = UInt32(truncatingIfNeeded: event.count)
        record.pointee.event_id = name?.pointee.id ?? 0
        record.pointee.data = UnsafeRawPointer(data).assumingMemoryBound(to: CChar.self)
        record.pointee.data_length = count
        record.pointee.data_kind = UInt32(BIRD_DATA_STRING)
        deliverUnlessQueued(chunk)
        return true
    }

    // MARK: Chunks

    @inline(__always)
    private func openChunk(_ stringBytes: Int, isDroppable: Bool) -> Unmanaged<RecordChunk> {
        if let filling,
            filling._withUnsafeGuaranteedRef({
                $0.hasRoom(forStringBytes: stringBytes) && $0.isDroppable == isDroppable
            })
        {
            return filling
        }
        return .passUnretained(nextChunk(stringBytes, isDroppable))
    }

    @inline(never)
    private func nextChunk(_ stringBytes: Int, _ isDroppable: Bool) -> RecordChunk {
        let next: RecordChunk
        if let queue {
            let preferredBytes = preferredBytes(isDroppable)
            handOver()
            if let newest = queue.newest(of: client, isDroppable: isDroppable, roomForStringBytes: stringBytes) {
                hot.pointee.queuedBytes.wrappingSubtract(newest.usedBytes, ordering: .relaxed)
                hot.pointee.queuedRecords.wrappingSubtract(newest.usedRecords, ordering: .relaxed)
                chunk = newest
                return newest
            }
            next = ChunkPool.take(
                for: client, stringBytes: stringBytes, preferredBytes: preferredBytes, isDroppable: isDroppable)
        } else {
            next = ChunkPool.take(for: client, stringBytes: stringBytes, preferredBytes: 0)
        }
        next.namesVersion = namesVersion
        chunk = next
        return next
    }

    /// Large when more records are to be expected. Where events and others alternate, a chunk may end after its first record: there it only
    /// grows with what came before it, so that the memory stays in proportion to what it holds.
    private func preferredBytes(_ isDroppable: Bool) -> Int {
        let most = isBusy ? RecordChunk.bytesNormal : RecordChunk.bytesSmall
        guard separatesEvents else { return most }
        guard let chunk, chunk.isDroppable == isDroppable else { return RecordChunk.bytesSmallest }
        return min(most, chunk.capacityBytes * 4)
    }

    /// Hands over what has been collected, and tells the consumer. Call at the end of a round: a consumer that is faster than the reactor
    /// is thus woken once for all that a round brings.
    func publish() {
        handOver()
        guard hasNews else { return }
        hasNews = false
        queue?.announce()
    }

    private func handOver() {
        guard let queue else { return }
        // Twice when an overflow has to be told.
        while let chunk {
            self.chunk = nil
            hot.pointee.queuedBytes.wrappingAdd(chunk.usedBytes, ordering: .acquiringAndReleasing)
            hot.pointee.queuedRecords.wrappingAdd(chunk.usedRecords, ordering: .acquiringAndReleasing)
            hasNews = true
            noteDropped(queue.publish(chunk, of: client))
        }
    }

    // MARK: Overflow

    /// The event that has just come is dropped.
    @inline(__always)
    private func isWithoutRoom() -> Bool {
        guard isOverflow else { return false }
        // The consumer may take what is still here.
        publish()
        guard isOverflow else { return false }
        noteDropped(1)
        return true
    }

    private var isOverflow: Bool {
        hasReached(records: hot.pointee.queueRecordsMax, bytes: hot.pointee.queueBytesMax)
    }

    /// Counts, and tells the first of an episode.
    private func noteDropped(_ events: Int) {
        guard events > 0 else { return }
        client.counters.eventsDropped.add(UInt64(events))
        guard !hot.pointee.isOverflowing.exchange(true, ordering: .sequentiallyConsistent) else { return }
        // The consumer may have caught up before it could see that there is something to end.
        if !hot.pointee.isOverHalf { hot.pointee.isOverflowing.store(false, ordering: .relaxed) }
        let fault = Fault(
            BIRD_ERR_FULL, .connection, field: "overflow",
            "The program does not keep up: application events are dropped (overflow is \(client.options.overflow.rawValue), "
                + "queue_records_max \(hot.pointee.queueRecordsMax), "
                + "queue_bytes_max \(hot.pointee.queueBytesMax)).", isRetriable: true)
        client.log.write(.warn, .delivery, status: fault.status, fault.message)
        add(.failure(BIRD_RECORD_ERROR, fault))
    }

    // MARK: Everything else

    func emit(_ event: SessionEvent, dialect: Dialect) { add(.of(event, dialect, client: client)) }

    /// Entries for a program that reads its log as records. They come last: where events would have to wait, entries are dropped.
    func log(_ entries: [LogEntry], of log: Log) {
        for entry in entries {
            guard isWanted(BIRD_RECORD_LOG), !isQueued || !isOverflow else {
                log.countDropped()
                continue
            }
            add(
                RecordContent(
                    kind: BIRD_RECORD_LOG, data: .string(Array(entry.message.utf8)),
                    detail: { chunk in
                        chunk.reserveDetail(
                            bird_log_entry(
                                message: chunk.copyString(entry.message).pointer,
                                channel: chunk.copyString(entry.channel).pointer, entry))
                    }, detailStringBytes: entry.message.utf8.count + entry.channel.utf8.count))
        }
    }

    func ask(_ request: Request, now: Instant) {
        switch request.subject {
        case .authorization(let question): ask(request, question.deadline - now, about: question)
        case .headers(let question, let endpoint):
            ask(request, question.deadline - now, about: question, endpoint: endpoint.text)
        case .reconnect(let question):
            ask(request, question.deadline - now, attempt: question.attempt, cause: question.cause)
        }
    }

    private func ask(
        _ request: Request, _ leftMs: Int64, about question: AuthorizationQuestion? = nil, endpoint: String = "",
        attempt: Int32 = 0, cause: Fault? = nil
    ) {
        let connectionID = question?.connectionID ?? ""
        let name = question?.channelName ?? ""
        add(
            RecordContent(
                kind: BIRD_RECORD_REQUEST,
                detail: { chunk in
                    chunk.reserveDetail(
                        bird_question(
                            struct_size: UInt32(MemoryLayout<bird_question>.size), request_kind: request.kind,
                            request: OpaquePointer(bitPattern: request.handle), deadline_ms: max(0, leftMs),
                            connection_id: chunk.copyString(connectionID).pointer,
                            channel_name: chunk.copyString(name).pointer,
                            endpoint: chunk.copyString(endpoint).pointer, cause: cause.map { chunk.keep($0) },
                            attempt: attempt, reserved: 0))
                }, detailStringBytes: connectionID.utf8.count + name.utf8.count + endpoint.utf8.count))
    }

    /// Appends a record; in LOOP mode it is delivered before this returns.
    private func add(_ content: RecordContent) {
        guard isWanted(content.kind) else {
            // What the program does not want to hear of still happens to its rosters.
            content.change?.apply()
            return
        }
        if content.kind == BIRD_RECORD_EVENT { eventsDelivered &+= 1 }
        if content.isApplicationEvent, dropsNewest, isWithoutRoom() { return }
        refreshNames()
        let isDroppable = separatesEvents && content.isApplicationEvent
        let chunk = openChunk(content.stringBytes, isDroppable: isDroppable).takeUnretainedValue()
        chunk.append(content, of: hot) { InternedNames.entry(names.value(of: $0))?.pointee.id ?? 0 }
        deliverUnlessQueued(chunk)
    }

    private func deliverUnlessQueued(_ chunk: RecordChunk) {
        guard queue == nil else { return }
        self.chunk = nil
        runHandlers { _ = client.dispatcher.deliver(chunk, recordsMax: .max) }
        ChunkPool.give(chunk)
    }

    /// LOOP: what was bound late and what was unbound.
    func runChores() { runHandlers { client.dispatcher.runChores() } }

    private func runHandlers(_ body: () -> Void) {
        handlers.begin()
        handlerDepth += 1
        body()
        handlerDepth -= 1
    }
}
