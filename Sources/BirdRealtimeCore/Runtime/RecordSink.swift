import CBirdRealtimeABI
import Glibc

/// Turns what happens on a connection into records, and brings them on their way. Reactor thread only.
final class RecordSink {
    /// Strings of a control record beside its texts: details, alignment.
    private static let detailBytesMax = 512

    /// Strings of a record are never NULL.
    private let emptyString = UnsafeRawPointer(StaticString("").utf8Start).assumingMemoryBound(to: CChar.self)

    private unowned(unsafe) let client: Client
    private let queue: RecordQueue?
    private let isQueued: Bool
    private let dropsNewest: Bool
    /// "drop-oldest": application events have chunks of their own, from which the oldest can be dropped.
    private let separatesEvents: Bool
    private var chunk: RecordChunk?
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

    init(client: Client) {
        self.client = client
        queue = client.queue
        hot = client.hot
        dispatcher = client.dispatcher
        isQueued = client.queue != nil
        dropsNewest = isQueued && client.options.overflow == .dropNewest
        separatesEvents = isQueued && client.options.overflow == .dropOldest
        (names, namesVersion) = client.namesSnapshot()
        loopRecord.initialize(to: bird_record())
        loopRecord.pointee.struct_size = UInt32(MemoryLayout<bird_record>.size)
        loopRecord.pointee.kind = UInt32(BIRD_RECORD_EVENT)
        loopRecord.pointee.client = OpaquePointer(bitPattern: client.handle)
        loopRecord.pointee.client_tag = client.options.tag
    }

    deinit { loopRecord.deallocate() }

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
        if namesVersion != hot.pointee.namesVersion.load(ordering: .acquiring) {
            (names, namesVersion) = client.namesSnapshot()
            lastName = nil
        }
    }

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
        setChannel(&record.pointee, channel)
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
        let data = text + scanned.data.offset
        var length = scanned.data.length
        switch scanned.dataKind {
        case .none:
            record.pointee.data = emptyString
            record.pointee.data_kind = UInt32(BIRD_DATA_NONE)
        case .string:
            if scanned.data.isEscaped {
                length = JSONString.unescape(UnsafeRawBufferPointer(start: data, count: length), into: data)
            }
            data[length] = 0
            record.pointee.data = UnsafeRawPointer(data).assumingMemoryBound(to: CChar.self)
            record.pointee.data_kind = UInt32(BIRD_DATA_STRING)
        case .value:
            data[length] = 0
            record.pointee.data = UnsafeRawPointer(data).assumingMemoryBound(to: CChar.self)
            record.pointee.data_kind = UInt32(BIRD_DATA_VALUE)
        }
        record.pointee.data_length = length
        handlerDepth += 1
        dispatcher.deliver(record, channel)
        handlerDepth -= 1
    }

    @inline(__always)
    private func store(
        _ base: UnsafeMutableRawPointer, _ scanned: ScannedMessage, _ channel: UnsafeMutablePointer<ChannelHot>,
        _ name: UnsafePointer<NameEntry>?
    ) {
        let eventBytes = name == nil ? scanned.event.length + 1 : 0
        let dataBytes = scanned.dataKind == .none ? 0 : scanned.data.length + 1
        let chunk = openChunk(eventBytes + dataBytes, isDroppable: separatesEvents)
        var record = StoredRecord(visible: bird_record(), channel: channel, rosterChange: -1)
        setConstants(&record.visible, BIRD_RECORD_EVENT)
        setChannel(&record.visible, channel)
        chunk.keep(channel)
        let text = base.assumingMemoryBound(to: UInt8.self)
        record.visible.event =
            name?.pointee.text ?? chunk.copyString(text + scanned.event.offset, scanned.event.length)
        record.visible.event_length = UInt32(truncatingIfNeeded: scanned.event.length)
        record.visible.event_id = name?.pointee.id ?? 0
        if scanned.dataKind != .none {
            let source = UnsafeRawBufferPointer(start: base + scanned.data.offset, count: scanned.data.length)
            let target = chunk.reserve(dataBytes)
            var length = scanned.data.length
            if scanned.data.isEscaped {
                length = JSONString.unescape(source, into: target)
            } else if let start = source.baseAddress {
                memcpy(target, start, length)
            }
            target[length] = 0
            record.visible.data = UnsafeRawPointer(target).assumingMemoryBound(to: CChar.self)
            record.visible.data_length = length
            record.visible.data_kind = UInt32(scanned.dataKind == .string ? BIRD_DATA_STRING : BIRD_DATA_VALUE)
        }
        chunk.append(record)
    }

    @inline(__always)
    private func setConstants(_ record: inout bird_record, _ kind: Int32) {
        record.struct_size = UInt32(MemoryLayout<bird_record>.size)
        record.kind = UInt32(bitPattern: kind)
        record.client = OpaquePointer(bitPattern: hot.pointee.handle)
        record.client_tag = hot.pointee.tag
        record.channel_name = emptyString
        record.event = emptyString
        record.data = emptyString
    }

    @inline(__always)
    private func setChannel(_ record: inout bird_record, _ channel: UnsafeMutablePointer<ChannelHot>) {
        record.channel = OpaquePointer(bitPattern: channel.pointee.handle)
        record.channel_tag = channel.pointee.tag.load(ordering: .relaxed)
        record.channel_name = channel.pointee.name
        record.channel_name_length = channel.pointee.nameLength
    }

    // MARK: Chunks

    @inline(__always)
    private func openChunk(_ stringBytes: Int, isDroppable: Bool) -> RecordChunk {
        if let chunk, chunk.hasRoom(forStringBytes: stringBytes), chunk.isDroppable == isDroppable { return chunk }
        return nextChunk(stringBytes, isDroppable)
    }

    @inline(never)
    private func nextChunk(_ stringBytes: Int, _ isDroppable: Bool) -> RecordChunk {
        let next: RecordChunk
        if let queue {
            let preferredBytes = preferredBytes(isDroppable)
            publish()
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

    /// Hands over what has been collected. Call at the end of a round.
    func publish() {
        guard let queue else { return }
        // Twice when an overflow has to be told.
        while let chunk {
            self.chunk = nil
            hot.pointee.queuedBytes.wrappingAdd(chunk.usedBytes, ordering: .acquiringAndReleasing)
            hot.pointee.queuedRecords.wrappingAdd(chunk.usedRecords, ordering: .acquiringAndReleasing)
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
        add(
            Self.failure(
                BIRD_RECORD_ERROR,
                Fault(
                    BIRD_ERR_FULL, .connection, field: "overflow",
                    "The program does not keep up: application events are dropped (overflow is \(client.options.overflow.rawValue), "
                        + "queue_records_max \(hot.pointee.queueRecordsMax), "
                        + "queue_bytes_max \(hot.pointee.queueBytesMax)).", isRetriable: true)))
    }

    // MARK: Everything else

    /// What a record says beside what all have.
    private struct Content {
        var kind: Int32
        var channel: ChannelReference = .none
        var event = ""
        var data: InboundMessage.Data = .none
        var isApplicationEvent = false
        var rosterChange: RosterChange?
        var operation: UInt64 = 0
        /// Writes the detail into the chunk.
        var detail: ((RecordChunk) -> UnsafeRawPointer)?
        /// Bytes of the strings that `detail` copies.
        var detailStringBytes = 0
    }

    func emit(_ event: SessionEvent, dialect: Dialect) { add(content(event, dialect)) }

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
            Content(
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

    private func content(_ event: SessionEvent, _ dialect: Dialect) -> Content {
        switch event {
        case .state(let change):
            var content = Self.stateContent(BIRD_RECORD_STATE, change)
            // Rosters belong to a connection.
            if change.previous == .connected { content.rosterChange = .clearAll(client) }
            return content
        case .connectingIn(let change): return Self.stateContent(BIRD_RECORD_CONNECTING_IN, change)
        case .connectionLost: return Content(kind: BIRD_RECORD_CONNECTION_LOST)
        case .error(let fault): return Self.failure(BIRD_RECORD_ERROR, fault)
        case .signinFailed(let fault): return Self.failure(BIRD_RECORD_SIGNIN_ERROR, fault)
        case .subscribed(let reference, let data, let members, let myID, let isResubscribe, let interruptedMs):
            let count = UInt32(truncatingIfNeeded: members?.count ?? 0)
            return Content(
                kind: BIRD_RECORD_SUBSCRIBED, channel: reference, event: dialect.subscriptionSucceeded, data: data,
                rosterChange: members.flatMap { members in
                    Self.channel(reference).map { .replace($0, members, myID: myID ?? "") }
                },
                detail: { chunk in
                    chunk.reserveDetail(
                        bird_subscription(
                            struct_size: UInt32(MemoryLayout<bird_subscription>.size),
                            is_resubscribe: isResubscribe ? 1 : 0, interrupted_ms: interruptedMs, will_retry: 0,
                            member_count: count, my_id: chunk.copyString(myID ?? "").pointer, error: nil))
                }, detailStringBytes: myID?.utf8.count ?? 0)
        case .subscriptionFailed(let reference, let fault, let willRetry):
            return Content(
                kind: BIRD_RECORD_SUBSCRIPTION_ERROR, channel: reference, event: dialect.subscriptionError,
                detail: { chunk in
                    chunk.reserveDetail(
                        bird_subscription(
                            struct_size: UInt32(MemoryLayout<bird_subscription>.size), is_resubscribe: 0,
                            interrupted_ms: 0, will_retry: willRetry ? 1 : 0, member_count: 0,
                            my_id: chunk.copyString("").pointer, error: chunk.keep(fault)))
                })
        case .memberAdded(let reference, let member):
            return Self.memberContent(
                BIRD_RECORD_MEMBER_ADDED, reference, dialect.memberAdded, member,
                Self.channel(reference).map { .add($0, member) })
        case .memberRemoved(let reference, let member):
            return Self.memberContent(
                BIRD_RECORD_MEMBER_REMOVED, reference, dialect.memberRemoved, member,
                Self.channel(reference).map { .remove($0, member.id) })
        case .connectionCount(let reference, let data):
            return Content(
                kind: BIRD_RECORD_CONNECTION_COUNT, channel: reference, event: dialect.connectionCount, data: data)
        case .channelEvent(let reference, let name, let data):
            return Content(
                kind: BIRD_RECORD_EVENT, channel: reference, event: name, data: data,
                isApplicationEvent: !name.utf8.starts(with: dialect.prefix.utf8))
        case .signedIn(let member, let memberData):
            var content = Self.memberContent(BIRD_RECORD_SIGNED_IN, .none, "", member, nil)
            content.data = .string(Array(memberData.utf8))
            return content
        case .completed(let operation, let isSignin, let fault, let memberData):
            return Content(
                kind: BIRD_RECORD_COMPLETION, data: memberData.map { .string(Array($0.utf8)) } ?? .none,
                operation: operation,
                detail: { chunk in
                    chunk.reserveDetail(
                        bird_completion(
                            struct_size: UInt32(MemoryLayout<bird_completion>.size),
                            operation: isSignin ? BIRD_OPERATION_SIGNIN : BIRD_OPERATION_SUBSCRIBE,
                            status: fault?.status ?? BIRD_OK, reserved: 0, error: fault.map { chunk.keep($0) }))
                })
        }
    }

    private static func channel(_ reference: ChannelReference) -> Channel? {
        ChannelHot.at(reference)?.pointee.channel.takeUnretainedValue()
    }

    private static func stateContent(_ kind: Int32, _ change: StateChange) -> Content {
        let policy = change.policy?.rawValue ?? ""
        return Content(
            kind: kind,
            detail: { chunk in
                chunk.reserveDetail(
                    bird_state_change(
                        struct_size: UInt32(MemoryLayout<bird_state_change>.size), previous: change.previous.rawValue,
                        current: change.current.rawValue, close_code: change.closeCode, attempt: change.attempt,
                        reason: change.reason, delay_ms: change.delayMs,
                        reason_text: chunk.copyString(change.reasonText).pointer,
                        connection_id: chunk.copyString(change.connectionID).pointer,
                        policy: chunk.copyString(policy).pointer))
            }, detailStringBytes: change.reasonText.utf8.count + change.connectionID.utf8.count + policy.utf8.count)
    }

    private static func failure(_ kind: Int32, _ fault: Fault) -> Content {
        Content(
            kind: kind,
            detail: { chunk in
                chunk.reserveDetail(
                    bird_failure(
                        struct_size: UInt32(MemoryLayout<bird_failure>.size), reserved: 0, error: chunk.keep(fault)))
            })
    }

    private static func memberContent(
        _ kind: Int32, _ reference: ChannelReference, _ event: String, _ member: Member, _ change: RosterChange?
    ) -> Content {
        Content(
            kind: kind, channel: reference, event: event, data: member.info.map { .value($0) } ?? .none,
            rosterChange: change,
            detail: { chunk in
                let (id, length) = chunk.copyString(member.id)
                return chunk.reserveDetail(
                    bird_member(
                        struct_size: UInt32(MemoryLayout<bird_member>.size),
                        id_length: UInt32(truncatingIfNeeded: length), id: id))
            }, detailStringBytes: member.id.utf8.count)
    }

    /// Appends a record; in LOOP mode it is delivered before this returns.
    private func add(_ content: Content) {
        guard isWanted(content.kind) else {
            // What the program does not want to hear of still happens to its rosters.
            content.rosterChange?.apply()
            return
        }
        if content.kind == BIRD_RECORD_EVENT { eventsDelivered &+= 1 }
        if content.isApplicationEvent, dropsNewest, isWithoutRoom() { return }
        let (dataKind, data): (Int32, [UInt8]) =
            switch content.data {
            case .none: (BIRD_DATA_NONE, [])
            case .string(let bytes): (BIRD_DATA_STRING, bytes)
            case .value(let bytes): (BIRD_DATA_VALUE, bytes)
            }
        refreshNames()
        let chunk = openChunk(
            content.event.utf8.count + data.count + content.detailStringBytes + Self.detailBytesMax,
            isDroppable: separatesEvents && content.isApplicationEvent)
        let channel = ChannelHot.at(content.channel)
        var record = StoredRecord(visible: bird_record(), channel: channel, rosterChange: -1)
        setConstants(&record.visible, content.kind)
        if let channel {
            setChannel(&record.visible, channel)
            chunk.keep(channel)
        }
        if !content.event.isEmpty {
            let (event, length) = chunk.copyString(content.event)
            record.visible.event = event
            record.visible.event_length = UInt32(truncatingIfNeeded: length)
            let name = InternedNames.entry(names.value(of: UnsafeRawBufferPointer(start: event, count: length)))
            record.visible.event_id = name?.pointee.id ?? 0
        }
        record.visible.data_kind = UInt32(bitPattern: dataKind)
        if dataKind != BIRD_DATA_NONE {
            record.visible.data = data.withUnsafeBufferPointer { bytes in
                guard let start = bytes.baseAddress else { return chunk.copyString("").pointer }
                return chunk.copyString(start, bytes.count)
            }
            record.visible.data_length = data.count
        }
        record.visible.operation_tag = content.operation
        record.visible.detail = content.detail?(chunk)
        if let change = content.rosterChange { record.rosterChange = chunk.addRosterChange(change) }
        chunk.append(record)
        if queue == nil {
            self.chunk = nil
            handlerDepth += 1
            _ = client.dispatcher.deliver(chunk, recordsMax: .max)
            handlerDepth -= 1
            ChunkPool.give(chunk)
        }
    }
}
