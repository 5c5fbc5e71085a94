import CBirdRealtimeABI

/// The calls of the program that concern handlers. Each takes over the user data: a refused registration runs its destructor.
extension Client {
    /// For the application events of a channel, nil: of every channel, that have this name, nil: any name.
    package func bind(
        _ event: UnsafeRawBufferPointer?, of channel: Channel? = nil, _ handler: @escaping RecordHandler,
        userData: UnsafeMutableRawPointer?, destructor: Destructor?
    ) throws(Fault) -> UInt64 {
        do throws(Fault) {
            let number = try lock.withLock { () throws(Fault) -> UInt64 in
                guard !isClosed else { throw Self.closedFault }
                if let channel, channel.isUnsubscribed { throw Channel.unsubscribedFault }
                return try book.bind(event, of: channel) { number in
                    Binding(number: number, handler: handler, userData: userData, destructor: destructor)
                }
            }
            announceChores()
            return number
        } catch {
            destructor?(userData)
            throw error
        }
    }

    package func observe(
        _ kinds: UInt64, _ handler: @escaping RecordHandler, userData: UnsafeMutableRawPointer?,
        destructor: Destructor?
    ) throws(Fault) -> UInt64 {
        do throws(Fault) {
            let number = try lock.withLock { () throws(Fault) -> UInt64 in
                guard !isClosed else { throw Self.closedFault }
                return try book.observe(kinds) { number in
                    Binding(number: number, handler: handler, userData: userData, destructor: destructor)
                }
            }
            announceChores()
            return number
        } catch {
            destructor?(userData)
            throw error
        }
    }

    package func unbind(_ number: UInt64) throws(Fault) {
        guard !isClosed else { throw Self.closedFault }
        guard lock.withLock({ book.unbind(number) }) else {
            throw Fault(BIRD_ERR_ARGUMENT, .argument, field: "binding", "There is no binding \(number) (any more).")
        }
        announceChores()
    }

    /// Removes the handlers of an event, nil: those for every application event; see `bind`.
    package func unbind(_ event: UnsafeRawBufferPointer?, of channel: Channel? = nil) throws(Fault) {
        try changeBindings(of: channel) { book.unbind(event, of: channel) }
    }

    /// Removes the handlers of a channel, nil: those for every channel. Observers stay.
    package func unbindAll(of channel: Channel? = nil) throws(Fault) {
        try changeBindings(of: channel) { book.unbindAll(of: channel) }
    }

    private func changeBindings(of channel: Channel?, _ change: () -> Void) throws(Fault) {
        try lock.withLock { () throws(Fault) in
            guard !isClosed else { throw Self.closedFault }
            if let channel, channel.isUnsubscribed { throw Channel.unsubscribedFault }
            change()
        }
        announceChores()
    }

    package func intern(_ name: UnsafeRawBufferPointer) throws(Fault) -> UInt32 {
        guard !isClosed else { throw Self.closedFault }
        return try lock.withLock { () throws(Fault) -> UInt32 in try book.intern(name) }
    }

    // MARK: For the delivery

    func eventID(_ name: UnsafeRawBufferPointer) -> UInt32 { lock.withLock { book.eventID(of: name) } }

    /// A copy of the table for the reactor, valid until the version changes. The entries live as long as a record can carry them.
    /// `isAtRest`: no record with a name of the copy before is being delivered on the reactor.
    func namesSnapshot(isAtRest: Bool) -> (table: NameTable, version: UInt32) {
        lock.withLock {
            defer { if isAtRest { book.names.wasAdopted() } }
            return (book.names.table, hot.pointee.namesVersion.load(ordering: .acquiring))
        }
    }

    func takeRetired() -> [Binding] { lock.withLock { book.takeRetired() } }

    func takeLate() -> [(binding: Binding, contents: [RecordContent])] { lock.withLock { book.takeLate() } }

    /// Who is online and who is offline of those whom the member watches, as far as it has been delivered.
    package var watchlist: [(name: String, ids: [String])] { lock.withLock { book.watchlist.summary } }

    func forgetWatchlist() { lock.withLock { book.watchlist = Watchlist() } }

    func forgetConnection() {
        lock.withLock {
            for channel in registeredChannelsLocked { channel.forgetConnection() }
            book.watchlist = Watchlist()
        }
    }
}
