import CBirdRealtimeABI
import CLinux
import Glibc
import Synchronization

/// Something with an fd that the reactor watches. Reactor thread only.
class EventSource {
    fileprivate(set) var token: UInt64 = 0
    fileprivate(set) var watchedFD: Int32 = -1
    fileprivate var watchedEvents: UInt32 = 0

    func handle(_ events: UInt32, _ now: Instant) {}
    /// More input waits although no event will tell (a read budget ran out, or it lies in the TLS buffer).
    func resume(_ now: Instant) {}
}

/// Waits for every socket, timer and call of its clients (epoll), on a thread of its own or, when the host drives it, on the thread that
/// runs a round. "Reactor thread" is whichever thread that is.
/// `@unchecked Sendable`: the fields under "Any thread" are guarded by `monitor` or atomic, all others belong to the reactor thread.
final class Reactor: @unchecked Sendable {
    static let scratchBytes = 262_144
    /// Room before the scratch area for the beginning of a message that an earlier read brought.
    static let headroomBytes = 65_536
    private static let eventsPerRoundMax = 256
    private static let refusedAgainMs: Int64 = 100
    /// How much later than the timer fd a wait ends by itself.
    private static let timerLateMs: Int64 = 1_000
    private static let wakeToken = UInt64.max
    private static let timerToken = UInt64.max - 1

    // Any thread.
    let isHostDriven: Bool
    private let monitor = Monitor()
    private let safePoint = SafePoint()
    private var scheduled: [Client] = []
    private var completions: [() -> Void] = []
    private var endings: [Ending] = []
    private var isStopping = false
    private var thread = pthread_t()
    /// Always readable, and watched for one event at a time: to watch it again is a wake-up. Nothing is ever written, least of all into a
    /// file of the host's that has got the number after the host closed the fd.
    private let wakeFD: Int32
    /// How many clients use it; guarded by the lock of `Shared`.
    var users = 0
    /// Host-driven: the thread that works on the reactor now.
    private var runner: pthread_t?
    /// Host-driven: threads that want it for a moment, between two rounds, and whether one of them is the runner.
    private var visitors = 0
    private var isVisited = false
    /// Host-driven: it has been destroyed.
    private var isShut = false
    /// Host-driven: `nextWork` at the end of the last round, in milliseconds.
    private let planned = Atomic<Int64>(Instant.distantFuture.milliseconds)
    /// Host-driven: who created it, or ran it last.
    private var owner = pthread_self()

    private struct Ending {
        var client: Client
        /// nil: nobody waits, and whoever runs the round finishes the client.
        var waiter: Waiter?
    }

    enum End {
        case done
        /// A handler of the client is below this call: the driver finishes the client after it.
        case afterHandler
        /// Whoever runs the loop finishes the client.
        case laterInRound
    }

    // Reactor thread.
    let epollFD: Int32
    private let timerFD: Int32
    /// When the timer fd becomes readable; nil: never.
    private var timerDue: Instant?
    private let events: UnsafeMutablePointer<epoll_event>
    private var sources: [EventSource?] = []
    private var freeSources: [Int] = []
    /// What the kernel would not watch, by operation and token, and when it is asked again.
    private var refused: [(operation: Int32, token: UInt64)] = []
    private var refusedTimer: ReactorTimer?
    private var generation: UInt64 = 1
    private var drivers: [ObjectIdentifier: Driver] = [:]
    private var timers = TimerHeap()
    private var resumable: [EventSource] = []
    private let buffer: UnsafeMutableRawPointer
    private(set) lazy var connector = Connector(reactor: self)
    private(set) lazy var posts = HTTPPosts(reactor: self)
    let tlsSessions = TLSSessionTable()
    private(set) lazy var network = NetworkWatcher(reactor: self)
    private(set) var now = System.now()
    var random = RandomSource()
    private var suspension = Suspension()
    /// In a forked child: this reactor is the parent's, and does nothing any more.
    private(set) var isInherited = false

    init(isHostDriven: Bool) throws(Fault) {
        self.isHostDriven = isHostDriven
        epollFD = try Self.fd(System.ownFD { epoll_create1(Int32(EPOLL_CLOEXEC)) })
        do throws(Fault) {
            wakeFD = try Self.fd(System.makeEventFD(count: 1))
        } catch {
            System.closeFD(epollFD)
            throw error
        }
        do throws(Fault) {
            // CLOCK_BOOTTIME: what became due during a suspend of the machine is due at once after it.
            timerFD = try Self.fd(System.ownFD { timerfd_create(CLOCK_BOOTTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK)) })
        } catch {
            System.closeFD(epollFD)
            System.closeFD(wakeFD)
            throw error
        }
        events = .allocate(capacity: Self.eventsPerRoundMax)
        buffer = .allocate(byteCount: Self.headroomBytes + Self.scratchBytes + 64, alignment: 64)
        _ = try Self.fd(watchOwn(EPOLL_CTL_ADD, wakeFD, EPOLLONESHOT.rawValue, Self.wakeToken))
        _ = try Self.fd(watchOwn(EPOLL_CTL_ADD, timerFD, EPOLLIN.rawValue, Self.timerToken))
        isWhole = true
    }

    private func watchOwn(_ operation: Int32, _ fd: Int32, _ events: UInt32, _ token: UInt64) -> Result<Int32, Errno> {
        var event = epoll_event()
        event.events = events
        event.data.u64 = token
        return System.retrying { Int(epoll_ctl(epollFD, operation, fd, &event)) }.map { Int32(truncatingIfNeeded: $0) }
    }

    private static func fd(_ result: Result<Int32, Errno>) throws(Fault) -> Int32 {
        switch result {
        case .success(let fd): return fd
        case .failure(let error):
            throw Fault(
                BIRD_ERR_SYSTEM, .system, field: "fd", "No file descriptor for the reactor: \(error.message).",
                isRetriable: true)
        }
    }

    deinit {
        buffer.deallocate()
        events.deallocate()
        closeFDs()
    }

    /// Guards `isClosed`: a thread that wakes a loop while another one destroys it must not write to a number that is somebody else's by then.
    private let wakeMonitor = Monitor()
    private var isClosed = false
    /// `init` has come to its end.
    private var isWhole = false

    private func closeFDs() {
        let isMine = wakeMonitor.withLock { () -> Bool in
            defer { isClosed = true }
            return !isClosed
        }
        guard isMine else { return }
        // The parent's fds are as good as they were, and epoll is the parent's.
        let mayAsk = isWhole && !isInherited
        let (ownsTimer, ownsWake) = mayAsk ? (ownsTimerFD, ring()) : (true, true)
        if ownsWake { System.closeFD(wakeFD) }
        if ownsTimer { System.closeFD(timerFD) }
        if ownsWake || ownsTimer { System.closeFD(epollFD) }
    }

    // MARK: Fds that the host has closed

    // A host may close fds that are not its own, and open files under their numbers. epoll knows what it watches by file and number: what
    // it does not know is not ours, and nothing is written to it, and it is not closed.

    private var ownsTimerFD: Bool {
        if case .success = watchOwn(EPOLL_CTL_MOD, timerFD, EPOLLIN.rawValue, Self.timerToken) { true } else { false }
    }

    /// Makes the epoll fd readable. False: an fd is not ours.
    private func ring() -> Bool {
        for _ in 0..<2 {
            switch watchOwn(EPOLL_CTL_MOD, wakeFD, EPOLLIN.rawValue | EPOLLONESHOT.rawValue, Self.wakeToken) {
            case .success: return true
            case .failure(let error) where [EBADF, ENOENT, EINVAL, EPERM, ELOOP].contains(error.code): return false
            case .failure: continue
            }
        }
        return false
    }

    /// Wakes the reactor when its fds have gone and it has not noticed yet. `wakeMonitor` held.
    private func wakeWithoutFDs() {
        if ownsTimerFD { System.arm(timerFD, at: Instant(milliseconds: 0)) }
        // The wait may be one on an epoll that has no number any more.
        if hasThread, !isInterrupted {
            isInterrupted = true
            birdlinux_interrupt(thread)
        }
    }

    // Guarded by `wakeMonitor`.
    private var hasThread = false
    private var isInterrupted = false
    private var isWoken = false
    /// Its own fds have gone: it watches nothing any more, and waits for calls only. Written on the reactor thread.
    private let isDeaf = Atomic<Bool>(false)

    static let lostFDs = Fault(
        BIRD_ERR_SYSTEM, .system, field: "fd",
        "The program has closed file descriptors of the library. Destroy the client and create another one.")

    /// Every connection ends, and no client gets another one.
    private func loseFDs() {
        isDeaf.store(true, ordering: .sequentiallyConsistent)
        Shared.lost(self)
        resumable = []
        connector.disown()
        posts.disown()
        network.shutDown()
        for driver in drivers.values { driver.loseFDs() }
    }

    var hasLostFDs: Bool { isDeaf.load(ordering: .relaxed) }

    // MARK: Any thread

    func start() throws(Fault) {
        // The thread's own reference, given back when it ends.
        let me = Unmanaged.passRetained(self)
        let error = birdlinux_thread_start(
            &thread, "bird-reactor",
            { argument in
                guard let argument else { return nil }
                let reactor = Unmanaged<Reactor>.fromOpaque(argument).takeRetainedValue()
                birdlinux_callback_depth_add(1)
                reactor.run()
                return nil
            }, me.toOpaque())
        wakeMonitor.withLock { hasThread = error == 0 }
        guard error == 0 else {
            me.release()
            throw Fault(
                BIRD_ERR_SYSTEM, .system, field: "thread", "No reactor thread: \(Errno(code: error).message).",
                isRetriable: true)
        }
    }

    private var isOnThread: Bool {
        guard isHostDriven else { return pthread_equal(thread, pthread_self()) != 0 }
        return monitor.withLock { runner.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    /// Nobody waits for the thread, since it has stopped itself. Reactor thread.
    private var endsAlone = false

    /// After the last client: ends the thread and waits for it, unless called on it.
    func stop() {
        monitor.withLock { isStopping = true }
        wake()
        // Its number may be another thread's soon.
        wakeMonitor.withLock { hasThread = false }
        guard !isOnThread else {
            endsAlone = true
            return
        }
        pthread_join(thread, nil)
        Shared.joined()
    }

    /// The client has commands. The client's lock may be held. Commands that come by thousands need not look each whether the reactor has
    /// lost its fds since it was woken for the one before.
    func schedule(_ client: Client, isOneOfMany: Bool = false) {
        let isFirst = monitor.withLock { () -> Bool in
            if client.isScheduled { return false }
            client.isScheduled = true
            scheduled.append(client)
            return true
        }
        if isFirst || !isOneOfMany { wake() }
    }

    /// Runs on the reactor thread soon.
    func perform(_ work: @escaping () -> Void) {
        monitor.withLock { completions.append(work) }
        wake()
    }

    /// Ends a client's driver. `mayWait` false, in a handler: does not wait for handlers that another thread runs on a host-driven loop,
    /// since they may wait for this one; a reactor with a thread of its own waits for nobody.
    func end(_ client: Client, mayWait: Bool) -> End {
        guard !HostProcess.isEnding else { return .done }
        if isOnThread {
            guard let driver = drivers[ObjectIdentifier(client)] else { return .done }
            if driver.isInHandler { return .afterHandler }
            remove(driver)
            return .done
        }
        if isHostDriven {
            let isDone = visit(unlessRunning: mayWait ? nil : Ending(client: client, waiter: nil)) {
                if let driver = drivers[ObjectIdentifier(client)] { remove(driver) }
            }
            return isDone ? .done : .laterInRound
        }
        let waiter = Waiter(client.lock)
        monitor.withLock { endings.append(Ending(client: client, waiter: waiter)) }
        wake()
        client.lock.withLock { _ = client.lock.wait(timeoutMs: -1) { waiter.isDone } }
        return .done
    }

    func wake() {
        wakeMonitor.withLock {
            guard !isClosed else { return }
            isWoken = true
            wakeMonitor.signalAll()
            if !hasLostFDs, !ring() { wakeWithoutFDs() }
        }
    }

    /// For a wait without fds.
    private func waitToBeWoken(timeoutMs: Int64) {
        wakeMonitor.withLock {
            _ = wakeMonitor.wait(timeoutMs: timeoutMs) { isWoken }
            isWoken = false
        }
    }

    /// The reactor does nothing from when this returns until `letGo`; see `SafePoint`. On the reactor thread itself nothing is done.
    func hold(timeoutMs: Int64) { if !isOnThread { safePoint.hold(timeoutMs: timeoutMs) } }

    func letGo() { if !isOnThread { safePoint.letGo() } }

    // Across a fork, after `hold`.
    func lockForFork() {
        monitor.lock()
        wakeMonitor.lock()
    }
    func unlockAfterFork() {
        wakeMonitor.unlock()
        monitor.unlock()
    }
    func unlockInChild() {
        wakeMonitor.unlockInChild()
        monitor.unlockInChild()
    }

    // MARK: Driven by the host

    /// True on the thread that created the loop or ran it last, unless it is running it right now.
    var isCallerOwner: Bool {
        isHostDriven && monitor.withLock { runner == nil && pthread_equal(owner, pthread_self()) != 0 }
    }

    /// One round on the calling thread. Throws if another thread runs one, or if called from a handler of this one.
    func runOnce(timeoutMs: Int64) throws(Fault) {
        guard !HostProcess.isEnding else { return rest(timeoutMs: timeoutMs) }
        try monitor.withLock { () throws(Fault) in
            let me = pthread_self()
            if let runner, pthread_equal(runner, me) != 0 { throw Self.busy }
            // What a visitor does is short.
            _ = monitor.wait(timeoutMs: -1) { visitors == 0 || (runner != nil && !isVisited) }
            guard runner == nil else { throw Self.busy }
            guard !isShut else {
                throw Fault(BIRD_ERR_HANDLE, .argument, field: "loop", "The loop has been destroyed meanwhile.")
            }
            runner = me
            owner = me
        }
        birdlinux_callback_depth_add(1)
        var wait = timeoutMs
        repeat {
            round(timeoutMs: wait)
            wait = 0
        } while !isInherited && !leaveUnlessEndings()
        guard !isInherited else {
            throw Fault(BIRD_ERR_FORKED, .argument, field: "loop", "The loop belongs to the parent process.")
        }
        birdlinux_callback_depth_add(-1)
    }

    /// A round at the end of the process: nothing is done.
    private func rest(timeoutMs: Int64) { waitToBeWoken(timeoutMs: timeoutMs) }

    /// What was left to this round is done in it.
    private func leaveUnlessEndings() -> Bool {
        monitor.withLock {
            guard endings.isEmpty else { return false }
            runner = nil
            monitor.signalAll()
            return true
        }
    }

    private static let busy = Fault(
        BIRD_ERR_BUSY, .argument, field: "loop", "The loop is being run, by another thread or by the caller itself.",
        isRetriable: true)

    /// Does something on the reactor between two rounds. Not from one of its handlers. With an ending nothing is waited for: while a thread
    /// runs a round the ending is left to that round, and the work is not done (false).
    @discardableResult
    private func visit(unlessRunning ending: Ending? = nil, _ work: () -> Void) -> Bool {
        guard !HostProcess.isEnding else { return true }
        let isMine = monitor.withLock { () -> Bool in
            if runner != nil { wake() }
            if let ending, runner != nil, !isVisited {
                endings.append(ending)
                return false
            }
            visitors += 1
            _ = monitor.wait(timeoutMs: -1) { runner == nil }
            runner = pthread_self()
            isVisited = true
            return true
        }
        guard isMine else { return false }
        safePoint.beginWork()
        now = System.now()
        work()
        armTimer()
        safePoint.endWork()
        monitor.withLock {
            visitors -= 1
            isVisited = false
            runner = nil
            monitor.signalAll()
        }
        return true
    }

    /// How long nothing has to be done if nothing comes from outside; nil: for ever. As of the last round if another thread runs one.
    func idleMs() -> Int64? {
        if monitor.withLock({ !scheduled.isEmpty || !completions.isEmpty }) { return 0 }
        let next = isOnThread ? nextWork : Instant(milliseconds: planned.load(ordering: .relaxed))
        return next == .distantFuture ? nil : max(0, next - System.now())
    }

    /// No thread works on it.
    var isIdle: Bool { monitor.withLock { runner == nil } }

    /// Nobody uses the loop any more.
    func shutDown() {
        visit { endLastWork() }
        // Nobody begins a round from here on: a thread may just have looked the handle up.
        monitor.withLock {
            _ = monitor.wait(timeoutMs: -1) { runner == nil }
            isShut = true
        }
        // What no round will come to any more: clients that ended with calls waiting, which hold the loop by their options.
        let unserved = monitor.withLock { () -> ([Client], [() -> Void]) in
            defer { (scheduled, completions) = ([], []) }
            return (scheduled, completions)
        }
        withExtendedLifetime(unserved) {}
        closeFDs()
    }

    // MARK: The loop

    private func run() {
        while !isInherited {
            round(timeoutMs: -1)
            if monitor.withLock({ isStopping }) { break }
        }
        guard !isInherited else { return }
        // Ends TLS sessions, which a fork or the end of the process must not come upon either.
        safePoint.beginWork()
        endLastWork()
        safePoint.endWork()
        Shared.ended(self, leaving: endsAlone ? thread : nil)
    }

    private func endLastWork() {
        // A connection that was to go on reading refers to the reactor in turn.
        resumable = []
        connector.shutDown()
        posts.shutDown()
        tlsSessions.shutDown()
        network.shutDown()
    }

    /// Waits for something to do, not longer than `timeoutMs` (negative: as long as it takes), and does it.
    private func round(timeoutMs: Int64) {
        let count = waitForEvents(timeoutMs: resumable.isEmpty ? timeoutMs : 0)
        let hasRested = safePoint.beginWork()
        now = System.now()
        let hasSlept = suspension.hasEnded(now, System.monotonicNow())
        if hasRested { tellRest() }
        if !hasLostFDs, count == Self.hasLost { loseFDs() }
        // A handler may have forked: in the child nothing of this goes on.
        for position in 0..<max(0, Int(count)) where !isInherited { handle(events[position]) }
        if !isInherited, count < 0 || hasSlept || timers.next ?? .distantFuture <= now { lookAgain() }
        if !isInherited { runResumable() }
        if !isInherited { runCompletions() }
        if !isInherited { runScheduled() }
        if !isInherited { runEndings() }
        if !isInherited, hasSlept { wokeUp() }
        while !isInherited, let timer = timers.popDue(now) { timer.fire(now) }
        if !isInherited { armTimer() }
        handlers.end()
        safePoint.endWork()
    }

    /// In place of a number of events.
    private static let hasLost: Int32 = -2

    /// -1: a signal has ended the wait.
    private func waitForEvents(timeoutMs: Int64) -> Int32 {
        // By a deadline that has passed unnoticed the timer fd is known to be lost.
        let left = timers.next.map { max(0, $0 - System.now()) + Self.timerLateMs }
        let bounded = timeoutMs < 0 ? left ?? -1 : min(timeoutMs, left ?? timeoutMs)
        guard !hasLostFDs else {
            waitToBeWoken(timeoutMs: timers.next.map { min($0 - System.now(), bounded) } ?? bounded)
            return 0
        }
        let count = birdlinux_wait(
            epollFD, events, Int32(Self.eventsPerRoundMax), Int32(clamping: bounded),
            { reactor in
                if let reactor { Unmanaged<Reactor>.fromOpaque(reactor).takeUnretainedValue().run() }
            }, Unmanaged.passUnretained(self).toOpaque())
        if count < 0 { return errno == EINTR ? -1 : Self.hasLost }
        return count == 0 && bounded != timeoutMs && !ownsTimerFD ? Self.hasLost : count
    }

    /// What has come by `now` is looked at before time is judged by it: a signal may have ended the wait, it may have returned long ago, or
    /// there was more than it had room for.
    private func lookAgain() {
        var looks = 0
        while !hasLostFDs, !isInherited, looks <= sources.count / Self.eventsPerRoundMax {
            let count = Int(epoll_wait(epollFD, events, Int32(Self.eventsPerRoundMax), 0))
            for position in 0..<max(0, count) where !isInherited { handle(events[position]) }
            guard count == Self.eventsPerRoundMax else { return }
            looks += 1
        }
    }

    // MARK: The program's code

    let handlers = HandlerMask()

    private func tellRest() {
        for driver in drivers.values {
            driver.client.log.write(
                .verbose, .process, "the reactor has rested while the process forked or began to end")
        }
    }

    private func handle(_ event: epoll_event) {
        switch event.data.u64 {
        case Self.wakeToken: break
        case Self.timerToken:
            System.clearEventFD(timerFD)
            timerDue = nil
        default: source(event.data.u64)?.handle(event.events, now)
        }
    }

    /// Makes the timer fd readable when the next timer is due, or before: it is not moved back, since a wake-up too many costs less than
    /// a system call for each deadline that moves.
    private func armTimer() {
        let next: Instant
        if isHostDriven {
            next = nextWork
            planned.store(next.milliseconds, ordering: .relaxed)
        } else {
            next = timers.next ?? .distantFuture
        }
        guard next < timerDue ?? .distantFuture, !hasLostFDs else { return }
        timerDue = next
        System.arm(timerFD, at: next)
    }

    /// A host that only polls the fd has to learn that there is something left to do.
    private var nextWork: Instant { resumable.isEmpty ? timers.next ?? .distantFuture : now }

    private func runResumable() {
        guard !resumable.isEmpty else { return }
        let all = resumable
        resumable = []
        for source in all where source.watchedFD >= 0 { source.resume(now) }
    }

    private func runCompletions() {
        let all = monitor.withLock { () -> [() -> Void] in
            guard !completions.isEmpty else { return [] }
            defer { completions = [] }
            return completions
        }
        for work in all { work() }
    }

    private func runScheduled() {
        let all = monitor.withLock { () -> [Client] in
            guard !scheduled.isEmpty else { return [] }
            for client in scheduled { client.isScheduled = false }
            defer { scheduled = [] }
            return scheduled
        }
        for client in all where !client.isEnding {
            driver(for: client).runCommands(now)
        }
    }

    private func runEndings() {
        let all = monitor.withLock { () -> [Ending] in
            guard !endings.isEmpty else { return [] }
            defer { endings = [] }
            return endings
        }
        for ending in all {
            if let driver = drivers[ObjectIdentifier(ending.client)] { remove(driver) }
            if let waiter = ending.waiter {
                waiter.finish()
            } else {
                ending.client.finishAfterDelivery(mayWait: false)
            }
        }
    }

    private func driver(for client: Client) -> Driver {
        if let driver = drivers[ObjectIdentifier(client)] { return driver }
        let driver = Driver(client: client, reactor: self)
        drivers[ObjectIdentifier(client)] = driver
        return driver
    }

    func remove(_ driver: Driver) {
        drivers[ObjectIdentifier(driver.client)] = nil
        driver.tearDown()
    }

    // MARK: The network

    /// Up to so many clients may begin attempts at one moment.
    private static let crowdMin = 8
    /// Attempts a second of more clients than that.
    private static let attemptsPerSecond: Int64 = 1_000

    /// Over how long the attempts of all clients are spread that have the same reason to begin now.
    var spreadMs: Int64 {
        drivers.count <= Self.crowdMin ? 0 : max(1_000, Int64(drivers.count) * 1_000 / Self.attemptsPerSecond)
    }

    func networkChanged(_ change: NetworkChange) {
        for driver in drivers.values where !isInherited { driver.networkChanged(change) }
    }

    /// The machine was suspended.
    private func wokeUp() {
        for driver in drivers.values where !isInherited { driver.take(.resumed) }
    }

    // MARK: In a forked child

    /// On the reactor thread, inside a handler that has forked: what is on the stack below it ends without doing anything.
    func becomeInheritedOnThread() {
        guard isOnThread else { return }
        handlers.forget()
        isInherited = true
        for driver in drivers.values { driver.disown() }
        connector.disown()
        posts.disown()
        tlsSessions.disown()
        resumable = []
    }

    /// Closes this process's copies of the client's fds, and with the last client's those of the reactor. Nothing of it reaches libcurl,
    /// epoll or the sockets themselves: they belong to the parent. True when nothing is left.
    func closeInherited(_ client: Client) -> Bool {
        isInherited = true
        if let driver = drivers.removeValue(forKey: ObjectIdentifier(client)) {
            driver.disown()
            driver.closeInherited()
        }
        guard drivers.isEmpty, !isHostDriven else { return drivers.isEmpty }
        closeInheritedLoop()
        return true
    }

    /// The fds of the reactor itself.
    func closeInheritedLoop() {
        isInherited = true
        connector.closeInherited()
        posts.closeInherited()
        tlsSessions.disown()
        network.closeInherited()
        closeFDs()
    }

    // MARK: For what lives on the reactor thread

    /// The shared read buffer: `headroomBytes`, then `scratchBytes`, then a little room for a NUL.
    var scratch: UnsafeMutableRawPointer { buffer }

    func setTimer(_ timer: ReactorTimer, _ deadline: Instant?) { timers.set(timer, deadline) }

    func resumeSoon(_ source: EventSource) { resumable.append(source) }

    func watch(_ source: EventSource, fd: Int32, _ events: UInt32) {
        if source.watchedFD < 0 {
            let index = freeSources.popLast() ?? sources.count
            if index == sources.count { sources.append(nil) }
            sources[index] = source
            generation &+= 1
            source.token = (generation & 0x7FFF_FFFF) << 32 | UInt64(index)
            source.watchedFD = fd
            source.watchedEvents = events
            control(EPOLL_CTL_ADD, source)
        } else if source.watchedEvents != events {
            source.watchedEvents = events
            control(EPOLL_CTL_MOD, source)
        }
    }

    /// Before the fd is closed.
    func unwatch(_ source: EventSource) {
        guard source.watchedFD >= 0 else { return }
        control(EPOLL_CTL_DEL, source)
        let index = Int(source.token & 0xFFFF_FFFF)
        sources[index] = nil
        freeSources.append(index)
        source.watchedFD = -1
    }

    private func control(_ operation: Int32, _ source: EventSource) {
        guard !hasLostFDs else { return }
        var event = epoll_event()
        event.events = source.watchedEvents
        event.data.u64 = source.token
        // Without memory, or beyond the watches that a user may have, it is tried again; deadlines say when that takes too long.
        guard epoll_ctl(epollFD, operation, source.watchedFD, &event) < 0, operation != EPOLL_CTL_DEL else { return }
        refused.append((operation, source.token))
        let timer = refusedTimer ?? ReactorTimer { [weak self] _ in self?.watchRefused() }
        refusedTimer = timer
        setTimer(timer, System.now() + Self.refusedAgainMs)
    }

    private func watchRefused() {
        let again = refused
        refused = []
        for (operation, token) in again {
            if let source = source(token) { control(operation, source) }
        }
    }

    private func source(_ token: UInt64) -> EventSource? {
        let index = Int(token & 0xFFFF_FFFF)
        guard index < sources.count, let source = sources[index], source.token == token else { return nil }
        return source
    }
}
