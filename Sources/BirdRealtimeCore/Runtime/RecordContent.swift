import CBirdRealtimeABI

/// What a record says beside what all of a client have, as a value: the record is made from it, and for handlers that come late
/// another one.
struct RecordContent {
    /// Strings of a control record beside its texts: details, alignment.
    private static let detailBytesMax = 512
    /// Of the payload of a success, in its record. A larger one is left out: the roster in it can be asked for.
    static let successBytesMax = 2 * 1_048_576
    /// Of a refusal, which is kept for handlers that are bound late. The edge decides how many there are.
    static let refusalBytesMax = 16_384
    /// Of the payload that is kept for handlers that come late.
    static let standingBytesMax = 262_144

    var kind: Int32
    var channel: ChannelReference = .none
    var event = ""
    var data: InboundMessage.Data = .none
    var isApplicationEvent = false
    var sender = ""
    var change: DeliveryChange?
    var operation: UInt64 = 0
    /// Writes the detail into the chunk.
    var detail: ((RecordChunk) -> UnsafeRawPointer)?
    /// Bytes of the strings that `detail` copies.
    var detailStringBytes = 0

    /// It holds until the next of its kind: a handler that is bound later is told.
    var isStanding: Bool {
        kind == BIRD_RECORD_SUBSCRIBED || kind == BIRD_RECORD_SUBSCRIPTION_ERROR || kind == BIRD_RECORD_WATCHLIST
    }

    private var dataKind: Int32 {
        switch data {
        case .none: BIRD_DATA_NONE
        case .string: BIRD_DATA_STRING
        case .value: BIRD_DATA_VALUE
        }
    }

    /// What its strings need in a chunk.
    var stringBytes: Int {
        event.utf8.count + sender.utf8.count + data.bytes.count + detailStringBytes + Self.detailBytesMax
    }
}

extension RecordChunk {
    /// Makes the record. `eventID`: the number of an interned name, or 0.
    func append(
        _ content: RecordContent, of client: UnsafeMutablePointer<ClientHot>,
        eventID: (UnsafeRawBufferPointer) -> UInt32
    ) {
        let channel = ChannelHot.at(content.channel)
        var record = StoredRecord(visible: bird_record(), channel: channel, content: -1)
        record.visible.begin(
            content.kind, of: client,
            noText: UnsafeRawPointer(StaticString("").utf8Start).assumingMemoryBound(to: CChar.self))
        if let channel {
            record.visible.setChannel(channel)
            keep(channel)
        }
        content.write(into: &record.visible, self, eventID)
        if content.change != nil || content.isStanding { record.content = keep(content) }
        append(record)
    }
}

extension RecordContent {
    fileprivate func write(
        into record: inout bird_record, _ chunk: RecordChunk, _ eventID: (UnsafeRawBufferPointer) -> UInt32
    ) {
        if !event.isEmpty {
            let (text, length) = chunk.copyString(event)
            record.event = text
            record.event_length = UInt32(truncatingIfNeeded: length)
            record.event_id = eventID(UnsafeRawBufferPointer(start: text, count: length))
        }
        if !sender.isEmpty {
            let (text, length) = chunk.copyString(sender)
            record.sender = text
            record.sender_length = UInt32(truncatingIfNeeded: length)
        }
        record.data_kind = UInt32(bitPattern: dataKind)
        if dataKind != BIRD_DATA_NONE {
            let bytes = data.bytes
            record.data = bytes.withUnsafeBufferPointer { bytes in
                guard let start = bytes.baseAddress else { return chunk.copyString("").pointer }
                return chunk.copyString(start, bytes.count)
            }
            record.data_length = bytes.count
        }
        record.operation_tag = operation
        record.detail = detail?(chunk)
    }
}

extension bird_record {
    /// What every record of a client has. `noText`: an empty C string.
    @inline(__always)
    mutating func begin(_ kind: Int32, of client: UnsafeMutablePointer<ClientHot>, noText: UnsafePointer<CChar>) {
        struct_size = UInt32(MemoryLayout<bird_record>.size)
        self.kind = UInt32(bitPattern: kind)
        self.client = OpaquePointer(bitPattern: client.pointee.handle)
        client_tag = client.pointee.tag
        channel_name = noText
        event = noText
        data = noText
        sender = noText
    }

    @inline(__always)
    mutating func setChannel(_ channel: UnsafeMutablePointer<ChannelHot>) {
        self.channel = OpaquePointer(bitPattern: channel.pointee.handle)
        channel_tag = channel.pointee.tag.load(ordering: .relaxed)
        channel_name = channel.pointee.name
        channel_name_length = channel.pointee.nameLength
    }
}

// MARK: What happens in the session

extension RecordContent {
    static func of(_ event: SessionEvent, _ dialect: Dialect, client: Client) -> RecordContent {
        switch event {
        case .state(let change):
            var content = Self.stateContent(BIRD_RECORD_STATE, change)
            // All that the edge told about channels and members belongs to a connection.
            if change.previous == .connected { content.change = .forgetConnection(client) }
            return content
        case .connectingIn(let change): return Self.stateContent(BIRD_RECORD_CONNECTING_IN, change)
        case .connectionLost: return RecordContent(kind: BIRD_RECORD_CONNECTION_LOST)
        case .error(let fault): return Self.failure(BIRD_RECORD_ERROR, fault)
        case .channelError(let reference, let data, let fault):
            var content = Self.failure(BIRD_RECORD_ERROR, fault)
            content.channel = reference
            content.event = dialect.error
            content.data = data
            return content
        case .signinFailed(let fault): return Self.failure(BIRD_RECORD_SIGNIN_ERROR, fault)
        case .subscribed(let reference, let data, let members, let myID, let isResubscribe, let interruptedMs):
            let count = UInt32(truncatingIfNeeded: members?.count ?? 0)
            // Shared with the channel's roster until that changes: large rosters are rare, and each copy is megabytes.
            let snapshot = members.map { MembersObject($0) }
            return RecordContent(
                kind: BIRD_RECORD_SUBSCRIBED, channel: reference, event: dialect.subscriptionSucceeded,
                data: data.bytes.count <= successBytesMax ? data : .none,
                change: members.flatMap { members in
                    Self.channel(reference).map { .replace($0, RosterHandover(members), myID: myID ?? "") }
                },
                detail: { chunk in
                    let (myID, length) = chunk.copyString(myID ?? "")
                    return chunk.reserveDetail(
                        bird_subscription(
                            struct_size: UInt32(MemoryLayout<bird_subscription>.size),
                            is_resubscribe: isResubscribe ? 1 : 0, interrupted_ms: interruptedMs, will_retry: 0,
                            member_count: count, my_id: myID, error: nil, my_id_length: length,
                            members: snapshot.map { chunk.keep($0) }))
                }, detailStringBytes: myID?.utf8.count ?? 0)
        case .subscriptionFailed(let reference, let fault, let data, let willRetry):
            return RecordContent(
                kind: BIRD_RECORD_SUBSCRIPTION_ERROR, channel: reference, event: dialect.subscriptionError,
                data: data.bytes.count <= refusalBytesMax ? data : .none,
                // Who is not subscribed any more is not told who comes and goes.
                change: Self.channel(reference).flatMap {
                    $0.kind == .presence ? .replace($0, RosterHandover(Roster()), myID: "") : nil
                },
                detail: { chunk in
                    chunk.reserveDetail(
                        bird_subscription(
                            struct_size: UInt32(MemoryLayout<bird_subscription>.size), is_resubscribe: 0,
                            interrupted_ms: 0, will_retry: willRetry ? 1 : 0, member_count: 0,
                            my_id: chunk.copyString("").pointer, error: chunk.keep(fault), my_id_length: 0,
                            members: nil))
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
            return RecordContent(
                kind: BIRD_RECORD_CONNECTION_COUNT, channel: reference, event: dialect.connectionCount, data: data)
        case .channelEvent(let reference, let name, let data, let sender):
            return RecordContent(
                kind: BIRD_RECORD_EVENT, channel: reference, event: name, data: data,
                isApplicationEvent: !name.utf8.starts(with: dialect.prefix.utf8), sender: sender ?? "")
        case .decryptionFailed(let reference, let channel, let name, let fault):
            var content = failure(BIRD_RECORD_DECRYPTION_ERROR, fault)
            content.channel = reference
            content.event = dialect.decryptionError
            var data = ObjectWriter()
            data.member("channel", channel)
            data.member("event", name)
            content.data = .value(data.finish())
            return content
        case .signedIn(let member, let memberData):
            var content = Self.memberContent(BIRD_RECORD_SIGNED_IN, .none, "", member, nil)
            content.data = .string(Array(memberData.utf8))
            content.change = .forgetWatchlist(client)
            return content
        case .watchlist(let name, let ids): return watchlist(name, ids)
        case .completed(let operation, let isSignin, let fault, let memberData):
            return RecordContent(
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

    private static func stateContent(_ kind: Int32, _ change: StateChange) -> RecordContent {
        let policy = change.policy?.rawValue ?? ""
        return RecordContent(
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

    static func failure(_ kind: Int32, _ fault: Fault) -> RecordContent {
        RecordContent(
            kind: kind,
            detail: { chunk in
                chunk.reserveDetail(
                    bird_failure(
                        struct_size: UInt32(MemoryLayout<bird_failure>.size), reserved: 0, error: chunk.keep(fault)))
            })
    }

    private static func memberContent(
        _ kind: Int32, _ reference: ChannelReference, _ event: String, _ member: Member, _ change: DeliveryChange?
    ) -> RecordContent {
        RecordContent(
            kind: kind, channel: reference, event: event, data: member.info.map { .value($0) } ?? .none,
            change: change,
            detail: { chunk in
                let (id, length) = chunk.copyString(member.id)
                return chunk.reserveDetail(
                    bird_member(
                        struct_size: UInt32(MemoryLayout<bird_member>.size),
                        id_length: UInt32(truncatingIfNeeded: length), id: id))
            }, detailStringBytes: member.id.utf8.count)
    }

    static func watchlist(_ name: String, _ ids: [String]) -> RecordContent {
        RecordContent(
            kind: BIRD_RECORD_WATCHLIST, event: name, data: .value(JSONString.array(ids)),
            change: .watchlist(name, ids),
            detail: { chunk in
                let copies = ids.map { chunk.copyString($0) }
                let texts = chunk.reserveDetail(of: copies.map { Optional($0.pointer) })
                let lengths = chunk.reserveDetail(of: copies.map(\.length))
                return chunk.reserveDetail(
                    bird_watchlist(
                        struct_size: UInt32(MemoryLayout<bird_watchlist>.size),
                        id_count: UInt32(truncatingIfNeeded: ids.count), ids: texts, id_lengths: lengths))
            }, detailStringBytes: ids.reduce(0) { $0 + $1.utf8.count + 1 + 2 * MemoryLayout<UnsafeRawPointer>.stride })
    }
}
