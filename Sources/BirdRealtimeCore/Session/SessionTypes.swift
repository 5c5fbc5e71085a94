import CBirdRealtimeABI

/// A point on a clock that never steps and counts suspended time (CLOCK_BOOTTIME), in milliseconds.
package struct Instant: Comparable, Hashable, Sendable {
    package var milliseconds: Int64

    package static let distantFuture = Instant(milliseconds: .max)

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    package static func < (left: Instant, right: Instant) -> Bool {
        left.milliseconds < right.milliseconds
    }

    package static func + (instant: Instant, ms: Int64) -> Instant {
        Instant(milliseconds: instant.milliseconds &+ ms)
    }

    package static func - (left: Instant, right: Instant) -> Int64 {
        left.milliseconds &- right.milliseconds
    }
}

/// The six states of a connection (Bird protocol 7.5); raw values are `BIRD_STATE_*`.
package enum ConnectionState: Int32, Sendable {
    case initialized = 0
    case connecting = 1
    case connected = 2
    case unavailable = 3
    case disconnected = 4
    case failed = 5
}

/// Where a channel stands (Bird protocol 8.1); raw values are `BIRD_CHANNEL_IDLE` and following.
package enum ChannelState: Int32, Sendable {
    case idle = 0
    case authorizing = 1
    case pending = 2
    case subscribed = 3
    case failed = 4
    case unsubscribed = 5
}

/// The caller's own number for a channel: the session only stores it and gives it back. 0 is "no channel".
package struct ChannelReference: Hashable, Sendable {
    package var bits: UInt64

    package init(bits: UInt64) {
        self.bits = bits
    }

    package static let none = ChannelReference(bits: 0)
}

/// One connection attempt. The session makes a new one for every attempt and ignores input for any but the current.
package struct TransportID: Hashable, Sendable {
    package var number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// One question to the program or to an authorizer. Answers for an unknown or withdrawn one are ignored.
package struct QuestionID: Hashable, Sendable {
    package var number: UInt64

    package init(number: UInt64) {
        self.number = number
    }
}

/// A question to the authorizer (Bird protocol 9.1 and 11.1).
package struct AuthorizationQuestion: Equatable, Sendable {
    package var id: QuestionID
    package var connectionID: String
    /// nil: a signin.
    package var channelName: String?
    /// When the session stops waiting.
    package var deadline: Instant
}

/// What the authorizer said.
package enum AuthorizationAnswer: Equatable, Sendable {
    /// `sharedSecret`: nil as well when what the authorizer gave is none.
    case granted(auth: String, memberData: String?, sharedSecret: ChannelKey?)
    /// `Fault.isRetriable` false: a denial. `retryAfterMs`: the authorizer's own wish (Retry-After), nil if none.
    case refused(Fault, retryAfterMs: Int64?)
}

/// A planned attempt has come due: may it begin?
package struct ReconnectQuestion: Equatable, Sendable {
    package var id: QuestionID
    /// Counted since the last handshake, refused ones included.
    package var attempt: Int32
    /// How the attempt or the connection before it ended.
    package var cause: Fault
    /// When the attempt begins without an answer.
    package var deadline: Instant
}

package enum ReconnectAnswer: Equatable, Sendable {
    /// Without asking again, 0: now.
    case proceed(delayMs: Int64)
    case refuse(String)
}

/// How an open connection ended.
package enum TransportEnd: Equatable, Sendable {
    /// A close frame came (1005 when it had no code), RFC 6455 section 7.
    case closed(code: UInt16, reason: String)
    /// The stream ended or failed without a close frame, or never opened.
    case failed(Fault)
    /// An HTTP answer refused the upgrade and asked to be left alone for so long (Retry-After).
    case refused(Fault, retryAfterMs: Int64)
}

/// One message of the edge that is not an application event for a subscribed channel. Strings are decoded; `data` is what
/// stood in the frame: `.string` has one level of encoding undone.
package struct InboundMessage: Equatable, Sendable {
    package enum Data: Equatable, Sendable {
        case none
        case string([UInt8])
        case value([UInt8])

        var bytes: [UInt8] {
            switch self {
            case .none: []
            case .string(let bytes), .value(let bytes): bytes
            }
        }
    }

    package var event: String
    package var channel: String?
    package var data: Data
    /// There was more than `dataBytesMax`: `data` is the beginning of its text.
    package var isCut: Bool
    /// Of a client event, where the edge says who sent it.
    package var sender: String?

    package init(
        event: String, channel: String? = nil, data: Data = .none, isCut: Bool = false, sender: String? = nil
    ) {
        self.event = event
        self.channel = channel
        self.data = data
        self.isCut = isCut
        self.sender = sender
    }

    /// So much is read of the data of the protocol's own messages. A roster may be large.
    package static func dataBytesMax(of event: String, _ dialect: Dialect) -> Int {
        event == dialect.internalSubscriptionSucceeded ? 8 * 1_048_576 : 1_048_576
    }
}

package enum SessionInput: Equatable, Sendable {
    case connect
    case disconnect
    /// There will be no connection any more, whatever the program asks for.
    case end(Fault)
    /// Acts while an attempt is planned; needs no permission.
    case retryNow
    /// Other settings for what may change during a session's life (see `Session.configure`).
    indirect case configure(SessionConfiguration)
    /// Of all who are told the same, the attempts are to be spread over `spreadMs`.
    case network(NetworkHint, spreadMs: Int64)
    /// `operation` 0: no completion wanted. A name already held is the same wish again and `channel` must be the same.
    case subscribe(name: String, channel: ChannelReference, operation: UInt64)
    case unsubscribe(ChannelReference)
    /// `data`: JSON bytes, checked by the caller, or nil.
    case trigger(ChannelReference, event: String, data: [UInt8]?)
    case signin(refresh: Bool, operation: UInt64)
    case authorization(QuestionID, AuthorizationAnswer)
    case reconnect(QuestionID, ReconnectAnswer)
    /// What an attempt does now ("resolve", "connect", "tls", "upgrade"): named if it takes too long. Optional.
    case transportStep(TransportID, String)
    /// The upgrade succeeded; the handshake frame has not come yet.
    case transportOpened(TransportID)
    /// So many more of the awaited frames have been written to the socket, in the order in which they were sent.
    case written(TransportID, awaited: Int)
    case transportEnded(TransportID, TransportEnd)
    case message(TransportID, InboundMessage)
    /// `Session.nextDeadline` has come.
    case timer
}

package struct StateChange: Equatable, Sendable {
    package var previous: ConnectionState
    package var current: ConnectionState
    /// BIRD_OK for the program's own calls.
    package var reason: Int32
    package var reasonText: String
    package var closeCode: Int32
    /// Attempts since the last handshake or the program's own call; of `connectingIn`: the number of the planned one.
    package var attempt: Int32
    /// Until the next attempt; -1 when none is planned.
    package var delayMs: Int64
    /// In force when an attempt is planned, else nil.
    package var policy: ReconnectPolicy?
    /// "" unless connected.
    package var connectionID: String

    /// Why no connection will come by itself, nil if one may or the program wants none.
    var ending: Fault? {
        switch current {
        case .failed: Fault(BIRD_ERR_REFUSED, .connection, field: "state", reasonText, code: closeCode)
        case .disconnected where reason != BIRD_OK:
            Fault(reason, .connection, field: "state", reasonText, code: closeCode)
        default: nil
        }
    }
}

package struct Member: Equatable, Sendable {
    package var id: String
    /// `member_info` as it stood in the frame (JSON), nil when absent.
    package var info: [UInt8]?

    package init(id: String, info: [UInt8]?) {
        self.id = id
        self.info = info
    }
}

/// What the program is told; each becomes one record.
package enum SessionEvent: Equatable, Sendable {
    case state(StateChange)
    case connectionLost
    case connectingIn(StateChange)
    /// The error surface: belongs to no channel.
    case error(Fault)
    /// The error surface, and the channel that the edge named; `.none`: the program holds none of this name. `data` as they came.
    case channelError(ChannelReference, data: InboundMessage.Data, Fault)
    /// `members` and `myID` for presence channels, else nil; `data` is the success payload as it came.
    case subscribed(
        ChannelReference, data: InboundMessage.Data, members: Roster?, myID: String?, isResubscribe: Bool,
        interruptedMs: Int64)
    /// `data`: as it came, if the edge said no on the channel.
    case subscriptionFailed(ChannelReference, Fault, data: InboundMessage.Data, willRetry: Bool)
    case memberAdded(ChannelReference, Member)
    case memberRemoved(ChannelReference, Member)
    case connectionCount(ChannelReference, InboundMessage.Data)
    /// An event that the short way did not take, such as `bird:cache_miss`.
    case channelEvent(ChannelReference, event: String, data: InboundMessage.Data, sender: String? = nil)
    /// An event of an encrypted channel is lost to the program.
    case decryptionFailed(ChannelReference, channel: String, event: String, Fault)
    case signedIn(Member, memberData: String)
    case signinFailed(Fault)
    /// Members that the signed-in one watches are `name` now, "online" or "offline".
    case watchlist(String, memberIDs: [String])
    /// The one end of an operation that had a number. `memberData` for a successful signin.
    case completed(operation: UInt64, isSignin: Bool, Fault?, memberData: String?)
}

/// What the runtime keeps in mind of a frame that it sends.
package enum FrameKind: Equatable, Sendable {
    /// The library's own, because of what the edge sent or did not send: the runtime bounds how much of it waits.
    case plain
    /// Counts as lost if it was not written when the connection goes.
    case clientEvent
    /// `SessionInput.written` tells when it has been written.
    case awaited
    /// The program leaves a channel.
    case leave
    /// Answers a ping; a later answer may stand for it.
    case pong
}

/// What the runtime must do, in this order, after `handle` has returned.
package enum SessionEffect: Equatable, Sendable {
    case open(TransportID)
    /// Ends this transport: with a close frame when `code` is not nil; `abandon` does not wait for the edge's answer. No input
    /// for this transport is needed afterwards.
    case close(TransportID, code: UInt16?, reason: String, abandon: Bool)
    /// One text message.
    case send(TransportID, [UInt8], FrameKind)
    case authorize(AuthorizationQuestion)
    case askReconnect(ReconnectQuestion)
    case withdraw(QuestionID)
    /// The channel's state for other threads to read; `unsubscribed` is its end: the reference is not used again.
    case channelState(ChannelReference, ChannelState)
    case identity(memberID: String?)
    /// A client event that found its channel no longer subscribed.
    case clientEventLost
    /// The program refused a planned attempt.
    case attemptRefused
    case watchlistEntriesMalformed(Int)
    /// The authorizer is about to be asked for the key of a subscribed channel.
    case keyRefreshBegan(ChannelReference)
    case emit(SessionEvent)
    /// For the log and the statistics; nothing has to be done.
    case note(SessionNote)
}

/// What a session does or finds that nothing else tells.
package enum SessionNote: Equatable, Sendable {
    case pinged
    /// `isLast`: every ping has its pong now.
    case ponged(isLast: Bool)
    case pongMissed
    /// An authorizer refused, gave no usable answer, or none in time.
    case authorizationFailed
    /// A subscribe (of this channel) or a signin (nil) has failed; nil: for good.
    case setback(channel: String?, Fault, againInMs: Int64?)
}

/// Everything that shapes a session; times in milliseconds. Defaults are those of the header.
package struct SessionConfiguration: Equatable, Sendable {
    package var hasChannelAuthorizer = false
    package var hasMemberAuthorizer = false
    package var connectTimeoutMs: Int64 = 15_000
    package var authTimeoutMs: Int64 = 10_000
    package var answerTimeoutMs: Int64 = 30_000
    /// nil: not set by the program, the server's value (or 120 s) holds.
    package var activityTimeoutMs: Int64?
    package var pongTimeoutMs: Int64 = 30_000
    package var pongMissesMax = 1
    package var reconnect = ReconnectPolicy.jitter
    package var reconnectDelayMs: Int64 = 3_000
    package var reconnectStages = ReconnectStages.initial
    /// 0: no limit.
    package var reconnectAttemptsMax = 0
    package var backoffBaseMs: Int64 = 1_000
    package var backoffMaxMs: Int64 = 30_000
    package var hasFlapGuard = true
    package var asksBeforeReconnect = false
    package var authorizationsInFlightMax = 8

    package init() {}
}
