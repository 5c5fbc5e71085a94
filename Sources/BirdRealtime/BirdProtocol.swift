/// Names of the Bird protocol.
public enum BirdProtocol {
    /// Names of the events that the client itself makes of what happens to a channel. Handlers are bound to them as to any
    /// other event.
    public enum Event {
        /// The channel is subscribed, for the first time or again. Data: an object with `is_resubscribe` (a bool),
        /// `interrupted_ms` (a number: how long events may have been missed; nothing is replayed, so this is the moment to
        /// fetch the present state), and on presence channels `my_id` and `member_count`.
        public static let subscriptionSucceeded = "bird:subscription_succeeded"
        /// The channel could not be subscribed. Data: an object with `error` (a sentence), `will_retry` (a bool: the client
        /// tries again by itself), and where there is one `code` (of the wire), `status` (of HTTP) and `endpoint`.
        public static let subscriptionError = "bird:subscription_error"
        /// A member has come to the presence channel. Data: an object with `member_id` and, if there is one, `member_info`.
        public static let memberAdded = "bird:member_added"
        /// A member has left the presence channel. Data: as for `memberAdded`.
        public static let memberRemoved = "bird:member_removed"
        /// How many connections are subscribed to the channel. Data: an object with `connection_count`.
        public static let connectionCount = "bird:connection_count"
        /// An event of an encrypted channel could not be opened, and is lost. Data: an object with `channel` and `event`.
        public static let decryptionError = "bird:decryption_error"
        /// The edge reported an error that names the channel, such as a client event that it refused; `onError` hears of it as well.
        /// A subscribed channel stays subscribed. Data: those of the edge's message, an object with `code` and `message`.
        public static let error = "bird:error"
        /// The cache channel has no event to begin with.
        public static let cacheMiss = "bird:cache_miss"
    }
}
