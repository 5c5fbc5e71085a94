import CBirdRealtimeABI

/// The calls of the program that concern handlers. Each takes over the user data: a refused registration runs its destructor.
extension Client {
    /// For the application events of a channel, nil: of every channel, that have this name, nil: any name.
    package func bind(
        _ event: UnsafeRawBufferPointer?, of channel: Channel? = nil, _ handler: @escaping RecordHandler,
        userData: UnsafeMutableRawPointer?, destructor: Destructor?
    ) throws(Fault) -> UInt64 {
        do throws(Fault) {
            return try lock.withLock { () throws(Fault) -> UInt64 in
                guard !isClosed else { throw Self.closedFault }
                if let channel, channel.isUnsubscribed { throw Channel.unsubscribedFault }
                return try book.bind(event, of: channel) { number in
                    Binding(number: number, handler: handler, userData: userData, destructor: destructor)
                }
            }
        } catch {
            destructor?(userData)
            throw error
        }
    }

    package func observe(
        _ kinds: UInt64, _ handler: @escaping RecordHandler, userData: UnsafeMutableRawPointer?,
        destructor: Destructor?
    ) throws(Fault) -> UInt64 {
        let number: UInt64? = lock.withLock {
            guard !isClosed else { return nil }
            return book.observe(kinds) { number in
                Binding(number: number, handler: handler, userData: userData, destructor: destructor)
            }
        }
        guard let number else {
            destructor?(userData)
            throw Self.closedFault
        }
        return number
    }

    package func unbind(_ number: UInt64) throws(Fault) {
        guard !isClosed else { throw Self.closedFault }
        guard lock.withLock({ book.unbind(number) }) else {
            throw Fault(BIRD_ERR_ARGUMENT, .argument, field: "binding", "There is no binding \(number) (any more).")
        }
        announceRetired()
    }

    package func intern(_ name: UnsafeRawBufferPointer) throws(Fault) -> UInt32 {
        guard !isClosed else { throw Self.closedFault }
        return try lock.withLock { () throws(Fault) -> UInt32 in try book.intern(name) }
    }

    // MARK: For the delivery

    func eventID(_ name: UnsafeRawBufferPointer) -> UInt32 {
        lock.withLock { InternedNames.entry(book.names.table.value(of: name))?.pointee.id ?? 0 }
    }

    /// A copy of the table for the reactor, valid until the version changes. The entries live as long as the client.
    func namesSnapshot() -> (table: NameTable, version: UInt32) {
        lock.withLock { (book.names.table, hot.pointee.namesVersion.load(ordering: .acquiring)) }
    }

    func takeRetired() -> [Binding] { lock.withLock { book.takeRetired() } }
}
