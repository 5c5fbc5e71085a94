import CBirdRealtimeABI
import CLinux
import Glibc
import Synchronization

/// A client as the program holds it: callable from every thread. What concerns the connection is handed to the driver on the reactor
/// as commands; what other threads may read is kept here.
/// `@unchecked Sendable`: immutable, atomic, guarded by `lock`, or (the dispatcher) confined to the delivery context.
package final class Client: @unchecked Sendable {
    /// Calls waiting for the reactor before BIRD_ERR_FULL.
    private static let commandsMax = 65_536
    /// Calls of subscribe, unsubscribe and signin whose frames are not written yet before BIRD_ERR_FULL, beside two for each channel that
    /// the program holds: however many those are, each may be joined and left.
    private static let wishesMax = 4_096

    /// Those of its creation; what may change since then is in `currentOptions`.
    package let options: ClientOptions
    let edge: Edge
    let route: Route
    let authEndpoint: HTTPEndpoint?
    let memberAuthEndpoint: HTTPEndpoint?
    /// TLS and POSTs are libcurl's; a plaintext socket is not.
    private let needsLibcurl: Bool
    let lock = Monitor()
    package var handle: UInt { hot.pointee.handle }
    /// nil: LOOP.
    let queue: RecordQueue?
    private var pool: DeliveryPool.Membership?

    /// The program drives the reactor.
    let isHostDriven: Bool

    // Guarded by `lock`.
    /// Until the client has finished, which a channel that the program never releases holds for longer.
    private var loop: HostLoop?
    private var channels = FewOrMany<String, Channel>()
    private var commands: [DriverCommand] = []
    /// Of `commands`: those whose frames the program asks for.
    private var wishes = 0
    /// One of `commands` is `letGoOfNames`.
    private var awaitsNames = false
    private var reactor: Reactor?
    private var deliveryThread: pthread_t?
    private var finishesAfterDelivery = false
    private var finishesOnReactor = false
    private var isFinished = false
    /// From the first use on, until the client has finished.
    private var knownMemberChannel: Channel?
    private var connectionIDText = ""
    private var memberIDText = ""
    /// nil: they are as they were.
    private var changedOptions: ChangedOptions?
    /// Why no connection will come by itself, unless the program wants none.
    private var ending: Fault?
    let book: BindingBook
    private var driverIsAttached = false
    /// Calls of connect that the driver has not carried out yet: until then a state of old says nothing.
    private var connectsWaiting = 0

    /// Guarded by the reactor's monitor: the client is in the list of those with commands.
    var isScheduled = false

    // Read without the lock.
    private let stateValue = Atomic<Int32>(ConnectionState.initialized.rawValue)
    private let closed = Atomic<Bool>(false)
    /// Something is held up until half of the queue is free again.
    let awaitsRoom = Atomic<Bool>(false)
    /// Completions that accepted calls will have.
    let promised = Atomic<Int>(0)
    let outboundBytes = Atomic<Int>(0)
    /// Frames of subscribe, unsubscribe and signin that wait for the socket.
    let wishesUnwritten = Atomic<Int>(0)
    let counters = Counters()
    package let log: Log
    let diary: Diary
    /// What waits in `queue`, whose monitor guards it.
    let lane = RecordLane()

    let hot: UnsafeMutablePointer<ClientHot>
    let dispatcher: Dispatcher

    package init(_ options: ClientOptions) throws(Fault) {
        edge = try Edge(
            region: options.region, wsHost: options.wsHost, allowInsecure: options.allowInsecure,
            appKey: options.appKey, version: Library.version, dialect: options.dialect)
        var options = options
        let needsLibcurl = edge.usesTLS || options.authEndpoint != nil || options.memberAuthEndpoint != nil
        let trust = try TrustSettings(options, isUsed: needsLibcurl)
        self.needsLibcurl = needsLibcurl
        route = try Route(
            host: edge.host, port: edge.port, isSecure: edge.usesTLS, address: options.address,
            verified: ((edge.usesTLS ? options.tlsVerifyName?.host : nil) ?? edge.host, "tls_verify_name"),
            trust: trust, proxy: options.proxy)
        options.session.hasChannelAuthorizer = options.asksAuthorizer || options.authEndpoint != nil
        options.session.hasMemberAuthorizer = options.asksMemberAuthorizer || options.memberAuthEndpoint != nil
        authEndpoint = try options.authEndpoint.map { (text) throws(Fault) in
            try HTTPEndpoint(text, option: "auth_endpoint", options, trust)
        }
        memberAuthEndpoint = try options.memberAuthEndpoint.map { (text) throws(Fault) in
            try HTTPEndpoint(text, option: "member_auth_endpoint", options, trust)
        }
        if options.delivery == .queue, options.queue == nil {
            throw Fault(
                BIRD_ERR_VALUE, .argument, field: "delivery",
                "Delivery \"queue\" needs a queue: bird_options_set_queue().")
        }
        if options.needsRequests, options.records & (1 << UInt64(BIRD_RECORD_REQUEST)) == 0 {
            throw Fault(
                BIRD_ERR_VALUE, .argument, field: "records",
                "Option records leaves out request records, by which an authorizer, header provider or may_reconnect is asked."
            )
        }
        log = try Log(options, lock)
        // The handler ends with the client, which may be held longer than that.
        options.log.handler = nil
        loop = options.loop
        isHostDriven = loop != nil
        options.loop = nil
        self.options = options
        diary = Diary(lock)
        switch options.delivery {
        case .queue: queue = options.queue
        case .thread:
            let membership = DeliveryPool.Membership()
            pool = membership
            queue = RecordQueue(onReady: { membership.schedule() })
        case .loop: queue = nil
        }
        try loop?.attachClient()
        do throws(Fault) {
            try queue?.attachClient()
        } catch {
            loop?.detachClient()
            throw error
        }
        hot = .allocate(capacity: 1)
        book = BindingBook(hot, options.dialect)
        hot.initialize(to: ClientHot(options, scope: book.scope.state))
        dispatcher = Dispatcher(hot)
        dispatcher.client = self
        log.client = self
        pool?.client = self
        hot.pointee.handle = Handles.register(self, as: .client)
    }

    deinit {
        hot.deinitialize(count: 1)
        hot.deallocate()
    }

    // MARK: What other threads read

    package var state: ConnectionState {
        ConnectionState(rawValue: stateValue.load(ordering: .acquiring)) ?? .initialized
    }

    package var connectionID: String { lock.withLock { connectionIDText } }
    package var memberID: String { lock.withLock { memberIDText } }
    /// With what `set` has changed.
    package var currentOptions: ClientOptions { lock.withLock { changedOptions?.value ?? options } }

    /// The end has begun: nothing more is delivered.
    @inline(__always)
    var isEnding: Bool { hot.pointee.ending.load(ordering: .relaxed) }
    package var isClosed: Bool { isEnding || closed.load(ordering: .acquiring) }

    package static let closedFault = Fault(BIRD_ERR_CLOSED, .argument, field: "client", "The client has been closed.")

    /// From the driver. `ending`: why no connection will come by itself, unless the program wants none.
    func mirror(state: ConnectionState, connectionID: String, ending: Fault? = nil) {
        lock.withLock {
            connectionIDText = connectionID
            self.ending = ending
            stateValue.store(state.rawValue, ordering: .releasing)
            lock.signalAll()
        }
    }

    func mirror(memberID: String?) { lock.withLock { memberIDText = memberID ?? "" } }

    /// Lock held.
    var registeredChannelsLocked: [Channel] { channels.values }

    // MARK: Calls of the program

    package func connect() throws(Fault) {
        guard !isClosed else { throw Self.closedFault }
        try requireRoom()
        try startReactor()
        try lock.withLock { () throws(Fault) in
            try postLocked(.input(.connect))
            connectsWaiting += 1
        }
    }

    /// From the driver: a connect has been carried out.
    func didConnect() {
        lock.withLock {
            connectsWaiting -= 1
            lock.signalAll()
        }
    }

    package func disconnect() throws(Fault) {
        guard !isClosed else { throw Self.closedFault }
        try startReactor()
        try post(.input(.disconnect))
    }

    package func retryNow() throws(Fault) {
        guard !isClosed else { throw Self.closedFault }
        try requireRoom()
        try post(.input(.retryNow))
    }

    /// Changes an option of the living client.
    package func set(_ key: String, _ value: String) throws(Fault) {
        try change([key]) { (options) throws(Fault) in try options.set(key, value) }
    }

    package func set(_ key: String, _ value: Int64) throws(Fault) {
        try change([key]) { (options) throws(Fault) in try options.set(key, value) }
    }

    /// Changes several options at once, or none. The change has its place among the other calls, and what is asked after it shows it.
    package func change(_ keys: [String], _ set: (inout ClientOptions) throws(Fault) -> Void) throws(Fault) {
        guard !isClosed else { throw Self.closedFault }
        for key in keys where try !Option.named(key).isLive {
            throw Fault(
                BIRD_ERR_STATE, .argument, field: key,
                "Option \(key) is fixed when the client is created: set it on the options before.")
        }
        try requireRoom()
        try lock.withLock { () throws(Fault) in
            let current = changedOptions?.value ?? options
            var changed = current
            try set(&changed)
            if changed.session != current.session {
                try postLocked(.input(.configure(changed.session)))
            }
            changedOptions = ChangedOptions(changed)
            log.change(to: changed.log)
        }
    }

    /// What the host knows of the network. Before the first connect there is nothing that could use it.
    package func networkHint(_ hint: NetworkHint) throws(Fault) {
        guard !isClosed else { throw Self.closedFault }
        try lock.withLock { () throws(Fault) in
            if driverIsAttached { try postLocked(.network(hint)) }
        }
    }

    /// The counted reference of a name (Bird protocol 8).
    package func subscribe(_ name: String, operation: UInt64) throws(Fault) -> Channel {
        guard !isClosed else { throw Self.closedFault }
        try ChannelName.check(name)
        return try lock.withLock { () throws(Fault) -> Channel in
            let known = channels[name]
            known?.forgetFailure()
            // The same wish again, with nobody to answer to, is none.
            let isWish = known == nil || operation != 0 || known?.state == .failed
            // A channel that has been made has a handle: nothing is refused after that.
            if isWish {
                try requireRoom()
                try requireWritableLocked()
                try requireCommandRoomLocked()
            }
            let channel = known ?? Channel(client: self, name: name, isMemberChannel: false)
            if isWish {
                try postLocked(.subscribe(channel, operation: operation))
                wishes += 1
                promise(operation)
            }
            channels[name] = channel
            channel.addReference()
            return channel
        }
    }

    func unsubscribe(_ channel: Channel) throws(Fault) {
        guard !isClosed else { throw Self.closedFault }
        let isOver = try lock.withLock { () throws(Fault) -> Bool in
            guard channel.markUnsubscribed() else { throw Channel.unsubscribedFault }
            channels[channel.name] = nil
            if !forgetSubscribesLocked(channel) {
                // A channel that is going must not fail to go.
                commands.append(.unsubscribe(channel))
                wishes += 1
            }
            book.unbindAll(of: channel)
            return !channel.isReferenced
        }
        wakeReactor()
        announceChores()
        if isOver { Handles.release(channel.handle, .channel) }
    }

    /// Before the first connect calls only wait. True if nothing that waits concerns the channel any more.
    private func forgetSubscribesLocked(_ channel: Channel) -> Bool {
        guard !driverIsAttached else { return false }
        var isWaitedFor = false
        commands.removeAll { command in
            guard case .subscribe(let other, let operation) = command, other === channel else { return false }
            // An operation still gets its completion.
            if operation != 0 { isWaitedFor = true } else { wishes -= 1 }
            return operation == 0
        }
        return !isWaitedFor
    }

    package func signin(refresh: Bool, operation: UInt64) throws(Fault) {
        guard !isClosed else { throw Self.closedFault }
        let now = state
        guard (now != .failed && now != .disconnected) || lock.withLock({ connectsWaiting > 0 }) else {
            throw Fault(
                BIRD_ERR_STATE, .signin, field: "state",
                "A signin needs a connection, now or planned; the state is \(now): connect first.")
        }
        guard options.session.hasMemberAuthorizer else {
            throw Fault(
                BIRD_ERR_VALUE, .signin, field: "member_auth_endpoint",
                "A signin needs the option member_auth_endpoint or member_authorizer.")
        }
        try requireRoom()
        try lock.withLock { () throws(Fault) in
            try requireWritableLocked()
            try postLocked(.input(.signin(refresh: refresh, operation: operation)))
            wishes += 1
        }
        promise(operation)
    }

    /// For calls whose frames the edge has to read: an edge that does not gets no more. What leaves a channel is not refused, since each
    /// leave has a subscribe before it.
    private func requireWritableLocked() throws(Fault) {
        let waiting = wishes + wishesUnwritten.load(ordering: .relaxed)
        guard waiting >= Self.wishesMax + 2 * channels.count else { return }
        throw Fault(
            BIRD_ERR_FULL, .connection, field: "client",
            "\(waiting) calls of subscribe, unsubscribe and signin wait to be written: the edge does not read, or there is no connection.",
            isRetriable: true)
    }

    /// For calls that make records of their own: a program that does not consume them gets no more.
    private func requireRoom() throws(Fault) {
        guard queue != nil, hot.pointee.isReserveFull(promised: promised.load(ordering: .relaxed)) else { return }
        throw Fault(
            BIRD_ERR_FULL, .argument, field: "queue_records_max",
            "The program's queue is full, with its reserved room: consume records first.", isRetriable: true)
    }

    private func promise(_ operation: UInt64) {
        if operation != 0 { promised.wrappingAdd(1, ordering: .relaxed) }
    }

    package func memberChannelReference() throws(Fault) -> Channel {
        try lock.withLock { () throws(Fault) -> Channel in
            guard !isClosed, !isFinished else { throw Self.closedFault }
            memberChannelLocked.addReference()
            return memberChannelLocked
        }
    }

    /// For the driver.
    var memberChannel: Channel { lock.withLock { memberChannelLocked } }

    private var memberChannelLocked: Channel {
        if let knownMemberChannel { return knownMemberChannel }
        let channel = Channel(client: self, name: ChannelName.memberPrefix, isMemberChannel: true)
        // The client's own, until it finishes.
        channel.addReference()
        knownMemberChannel = channel
        return channel
    }

    private var heldChannelsLocked: [Channel] { channels.values + (knownMemberChannel.map { [$0] } ?? []) }

    func queueClientEvent(_ channel: Channel, _ event: String, _ data: [UInt8]?) throws(Fault) {
        let bytes = event.utf8.count + Int(channel.hot.pointee.nameLength) + (data?.count ?? 0) + 64
        guard outboundBytes.load(ordering: .relaxed) + bytes <= options.outboundBytesMax else {
            throw Fault(
                BIRD_ERR_FULL, .connection, field: "outbound_bytes_max",
                "More than outbound_bytes_max (\(options.outboundBytesMax)) bytes wait to be written.",
                isRetriable: true)
        }
        outboundBytes.wrappingAdd(bytes, ordering: .relaxed)
        do {
            try post(.trigger(channel, event: event, data: data, bytes: bytes))
        } catch {
            outboundBytes.wrappingSubtract(bytes, ordering: .relaxed)
            throw error
        }
    }

    package func wait(for wanted: ConnectionState, timeoutMs: Int64) throws(Fault) {
        guard birdlinux_callback_depth() == 0 else { throw Self.inCallback }
        let reached = waitUntil(timeoutMs) {
            isClosed || (connectsWaiting == 0 && (state == wanted || ending != nil))
        }
        if state == wanted { return }
        if isClosed { throw Self.closedFault }
        if let ending = lock.withLock({ ending }) { throw ending }
        if !reached { throw Self.timeout("The client is \(state), not yet \(wanted).") }
    }

    package func flush(timeoutMs: Int64) throws(Fault) {
        guard birdlinux_callback_depth() == 0 else { throw Self.inCallback }
        guard !isClosed else { throw Self.closedFault }
        try awaitDriver(timeoutMs) { .flush($0) }
    }

    package func close(timeoutMs: Int64) throws(Fault) {
        guard birdlinux_callback_depth() == 0 else { throw Self.inCallback }
        guard !closed.exchange(true, ordering: .acquiringAndReleasing), !isEnding else { throw Self.closedFault }
        lock.withLock { lock.signalAll() }
        try awaitDriver(timeoutMs) { .close($0) }
    }

    private func awaitDriver(_ timeoutMs: Int64, _ command: (Waiter) -> DriverCommand) throws(Fault) {
        guard lock.withLock({ driverIsAttached }) else { return }
        let waiter = Waiter(lock)
        postUnbounded(command(waiter))
        let isDone = waitUntil(timeoutMs) { waiter.isDone || isEnding }
        if isEnding { throw Self.closedFault }
        if !isDone { throw Self.timeout("Not everything was written in time.") }
        if let fault = lock.withLock({ waiter.fault }) { throw fault }
    }

    /// Waits until `isDone`, which is asked with the lock held; the owner of a host-driven loop runs it meanwhile. False on timeout.
    private func waitUntil(_ timeoutMs: Int64, _ isDone: () -> Bool) -> Bool {
        guard !HostProcess.isEnding else { return lock.withLock(isDone) }
        let loop: Reactor? = lock.withLock { reactor?.isHostDriven == true ? reactor : nil }
        guard let loop, loop.isCallerOwner else {
            return lock.withLock { lock.wait(timeoutMs: timeoutMs, until: isDone) }
        }
        let deadline = timeoutMs < 0 ? nil : System.now() + min(timeoutMs, System.waitMsMax)
        while !lock.withLock(isDone) {
            // What has come by the deadline counts: it is looked at once more when the deadline has passed.
            let left = deadline.map { max(0, $0 - System.now()) } ?? -1
            guard (try? loop.runOnce(timeoutMs: left)) != nil else {
                // Another thread has begun to run it.
                return lock.withLock { lock.wait(timeoutMs: left, until: isDone) }
            }
            if left == 0 { return lock.withLock(isDone) }
        }
        return true
    }

    static func timeout(_ message: String) -> Fault {
        Fault(BIRD_ERR_TIMEOUT, .connection, field: "timeout_ms", message, isRetriable: true)
    }

    private static let inCallback = Fault(
        BIRD_ERR_CALLBACK, .argument, field: "client", "A waiting call is not possible inside a handler.")

    /// Tells an error of a call that had no other way to say it, as a record in its order.
    package func report(_ fault: Fault) {
        guard !isClosed, (try? requireRoom()) != nil, (try? startReactor()) != nil else { return }
        try? post(.report(fault))
    }

    /// The same for what the log meets, which is told only while there is somebody to tell it.
    func reportLog(_ fault: Fault) {
        if lock.withLock({ driverIsAttached }) { report(fault) }
    }

    // MARK: Commands to the driver

    private func startReactor() throws(Fault) {
        guard !lock.withLock({ driverIsAttached }) else { return }
        let reactor = try acquireReactor()
        let isMine = lock.withLock { () -> Bool in
            guard !driverIsAttached, !isEnding else { return false }
            driverIsAttached = true
            self.reactor = reactor
            LogWriter.join()
            return true
        }
        guard isMine else {
            release(reactor)
            return
        }
        do {
            if let pool { try pool.join() }
        } catch {
            lock.withLock { driverIsAttached = false }
            leaveReactor()
            throw error
        }
        // A destroy that came in between has taken the reactor away, with its fds.
        wakeReactor()
    }

    /// Once, whether a failed start or the end comes first.
    private func leaveReactor() {
        let used = lock.withLock { () -> Reactor? in
            defer { reactor = nil }
            return reactor
        }
        guard let used else { return }
        release(used)
        LogWriter.leave()
    }

    private func acquireReactor() throws(Fault) -> Reactor {
        if needsLibcurl { try Shared.startLibcurl() }
        guard isHostDriven else { return try Shared.acquireReactor() }
        guard let loop = lock.withLock({ loop }) else { throw Self.closedFault }
        return loop.reactor
    }

    private func release(_ reactor: Reactor) {
        if !isHostDriven { Shared.release(reactor) }
    }

    private func post(_ command: DriverCommand) throws(Fault) {
        try lock.withLock { () throws(Fault) in try postLocked(command) }
    }

    /// For what is bounded by other means: answers by the questions asked, waits by the threads that wait.
    func postUnbounded(_ command: DriverCommand) {
        lock.withLock {
            commands.append(command)
            reactor?.schedule(self)
        }
    }

    private func requireCommandRoomLocked() throws(Fault) {
        guard commands.count >= Self.commandsMax else { return }
        throw Fault(
            BIRD_ERR_FULL, .connection, field: "client", "Too many calls wait for the connection.", isRetriable: true)
    }

    private func postLocked(_ command: DriverCommand) throws(Fault) {
        try requireCommandRoomLocked()
        commands.append(command)
        let isOneOfMany = if case .trigger = command { true } else { false }
        reactor?.schedule(self, isOneOfMany: isOneOfMany)
    }

    func wakeReactor() { lock.withLock { reactor?.schedule(self, isOneOfMany: true) } }

    func takeCommands() -> [DriverCommand] {
        lock.withLock {
            defer { (commands, wishes, awaitsNames) = ([], 0, false) }
            return commands
        }
    }

    // MARK: Delivery

    /// The delivery context calls handlers that were bound late and runs destructors; without a connection that would ever deliver,
    /// nothing is running and it is done here.
    func announceChores() {
        lock.withLock {
            guard driverIsAttached, book.names.awaitsAdoption, !awaitsNames else { return }
            awaitsNames = true
            commands.append(.letGoOfNames)
            reactor?.schedule(self)
        }
        guard book.hasRetired.load(ordering: .acquiring) || book.hasLate.load(ordering: .acquiring) else { return }
        if let queue, options.delivery == .queue || lock.withLock({ driverIsAttached }) {
            queue.nudge(self)
        } else if lock.withLock({ driverIsAttached }) {
            _ = try? post(.runChores)
        } else {
            dispatcher.runChores()
        }
    }

    /// The calling thread delivers from now on. False: the client has ended.
    func enterDelivery() -> Bool {
        let isAllowed = lock.withLock { () -> Bool in
            guard !isEnding else { return false }
            deliveryThread = pthread_self()
            return true
        }
        if isAllowed {
            birdlinux_callback_depth_add(1)
            birdlinux_handlers_begin()
        }
        return isAllowed
    }

    func leaveDelivery() {
        let finishes = lock.withLock { () -> Bool in
            deliveryThread = nil
            lock.signalAll()
            return finishesAfterDelivery
        }
        if finishes { finish() }
        birdlinux_handlers_end()
        birdlinux_callback_depth_add(-1)
    }

    /// From the consumer.
    func didConsume(bytes: Int, records: Int) {
        hot.pointee.queuedBytes.wrappingSubtract(bytes, ordering: .sequentiallyConsistent)
        hot.pointee.queuedRecords.wrappingSubtract(records, ordering: .sequentiallyConsistent)
        let isAwaited = awaitsRoom.load(ordering: .sequentiallyConsistent)
        guard isAwaited || hot.pointee.isOverflowing.load(ordering: .sequentiallyConsistent), !hot.pointee.isOverHalf
        else { return }
        hot.pointee.isOverflowing.store(false, ordering: .relaxed)
        if isAwaited { wakeReactor() }
    }

    // MARK: The end

    /// False if it had begun before.
    package func destroy() -> Bool {
        // One of several destroys at once; the others must not get as far as the handle, which would then be given up for nothing.
        guard !hot.pointee.ending.exchange(true, ordering: .acquiringAndReleasing) else { return false }
        Handles.release(handle, .client)
        let reactor = lock.withLock { () -> Reactor? in
            lock.signalAll()
            return self.reactor
        }
        // Handlers that waited for each other's end would wait for ever.
        let mayWait = birdlinux_callback_depth() == 0
        switch reactor?.end(self, mayWait: mayWait) {
        case .done, nil: finishAfterDelivery(mayWait: mayWait)
        case .afterHandler: lock.withLock { finishesOnReactor = true }
        case .laterInRound: break
        }
        return true
    }

    /// Finishes now or, if a handler is running on another thread or below this call and may not be waited for, right after it.
    func finishAfterDelivery(mayWait: Bool) {
        let isDelivering = lock.withLock { () -> Bool in
            if mayWait { _ = lock.wait(timeoutMs: -1) { deliveryThread == nil } }
            finishesAfterDelivery = deliveryThread != nil
            return finishesAfterDelivery
        }
        if !isDelivering { finish() }
    }

    /// Destroyed by its own handler in LOOP mode: whoever runs on the reactor finishes.
    var endsOnReactor: Bool { lock.withLock { finishesOnReactor } }

    /// Nothing of the client runs any more: destructors, references, threads.
    func finish() {
        let left: (bindings: [Binding], channels: [Channel], member: Channel?)? = lock.withLock {
            guard !isFinished else { return nil }
            isFinished = true
            let held = heldChannelsLocked
            channels = FewOrMany()
            commands = []
            return (book.takeAll(of: held), held, knownMemberChannel)
        }
        guard let left else { return }
        for binding in left.bindings { binding.runDestructor() }
        left.member?.release()
        for channel in left.channels where lock.withLock({ !channel.isReferenced }) {
            Handles.release(channel.handle, .channel)
        }
        queue?.detach(self)
        pool?.leave()
        let loop = lock.withLock { () -> HostLoop? in
            defer { self.loop = nil }
            knownMemberChannel = nil
            return self.loop
        }
        log.end()
        leaveReactor()
        loop?.detachClient()
    }

    /// In a forked child, with the lock held: the channels, which the client no longer keeps.
    func takeChannelsInherited() -> [Channel] {
        defer {
            channels = FewOrMany()
            knownMemberChannel = nil
            commands = []
            book.forgetChannels()
        }
        return heldChannelsLocked
    }
}

/// Few clients have them: in an object of their own they cost the others nothing.
private final class ChangedOptions: Sendable {
    let value: ClientOptions

    init(_ value: ClientOptions) {
        self.value = value
    }
}

/// Lets a thread wait for the driver.
/// `@unchecked Sendable`: guarded by the client's lock.
final class Waiter: @unchecked Sendable {
    private let lock: Monitor
    private(set) var isDone = false
    /// What is said to the thread that waits, in place of "done".
    private(set) var fault: Fault?

    init(_ lock: Monitor) {
        self.lock = lock
    }

    func finish(_ fault: Fault? = nil) {
        lock.withLock {
            isDone = true
            self.fault = fault
            lock.signalAll()
        }
    }
}

/// What the program's threads ask of the driver.
enum DriverCommand {
    case input(SessionInput)
    case answered(QuestionID, Request.Answer)
    case network(NetworkHint)
    case subscribe(Channel, operation: UInt64)
    case unsubscribe(Channel)
    case trigger(Channel, event: String, data: [UInt8]?, bytes: Int)
    case flush(Waiter)
    case close(Waiter)
    case runChores
    case letGoOfNames
    case report(Fault)
}
