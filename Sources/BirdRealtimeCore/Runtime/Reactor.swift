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

/// One thread that waits for every socket, timer and call of its clients (epoll).
/// `@unchecked Sendable`: the fields under "Any thread" are guarded by `monitor`, all others belong to the reactor thread.
final class Reactor: @unchecked Sendable {
    static let scratchBytes = 262_144
    /// Room before the scratch area for the beginning of a message that an earlier read brought.
    static let headroomBytes = 65_536
    private static let eventsPerWaitMax = 256

    // Any thread.
    private let monitor = Monitor()
    private var scheduled: [Client] = []
    private var completions: [() -> Void] = []
    private var endings: [Ending] = []
    private var isStopping = false
    private let isParking = Atomic<Bool>(false)
    private let isParked = Atomic<Bool>(false)
    private var thread = pthread_t()
    private let wakeFD: Int32

    private struct Ending {
        var client: Client
        var waiter: Waiter
    }

    // Reactor thread.
    private let epollFD: Int32
    private var sources: [EventSource?] = []
    private var freeSources: [Int] = []
    private var generation: UInt64 = 1
    private var drivers: [ObjectIdentifier: Driver] = [:]
    private var timers = TimerHeap()
    private var resumable: [EventSource] = []
    private let buffer: UnsafeMutableRawPointer
    private(set) lazy var connector = Connector(reactor: self)
    private(set) lazy var posts = HTTPPosts(reactor: self)
    private(set) var now = System.now()

    init() throws(Fault) {
        let epoll = System.retrying { Int(epoll_create1(Int32(EPOLL_CLOEXEC))) }
        guard case .success(let epollFD) = epoll, case .success(let wakeFD) = System.makeEventFD() else {
            if case .success(let fd) = epoll { System.closeFD(Int32(fd)) }
            throw Fault(
                BIRD_ERR_SYSTEM, .system, field: "fd",
                "No file descriptor for the reactor: \(Errno(code: errno).message).",
                isRetriable: true)
        }
        self.epollFD = Int32(epollFD)
        self.wakeFD = wakeFD
        buffer = .allocate(byteCount: Self.headroomBytes + Self.scratchBytes + 64, alignment: 64)
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = UInt64.max
        epoll_ctl(self.epollFD, EPOLL_CTL_ADD, wakeFD, &event)
    }

    deinit {
        buffer.deallocate()
        System.closeFD(wakeFD)
        System.closeFD(epollFD)
    }

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
        guard error == 0 else {
            me.release()
            throw Fault(
                BIRD_ERR_SYSTEM, .system, field: "thread", "No reactor thread: \(Errno(code: error).message).",
                isRetriable: true)
        }
    }

    private var isOnThread: Bool { pthread_equal(thread, pthread_self()) != 0 }

    /// After the last client: ends the thread and waits for it, unless called on it.
    func stop() {
        monitor.withLock { isStopping = true }
        wake()
        if isOnThread {
            pthread_detach(thread)
        } else {
            pthread_join(thread, nil)
        }
    }

    func attach(_ client: Client) { schedule(client) }

    /// The client has commands. The client's lock may be held.
    func schedule(_ client: Client) {
        let isFirst = monitor.withLock { () -> Bool in
            if client.isScheduled { return false }
            client.isScheduled = true
            scheduled.append(client)
            return true
        }
        if isFirst { wake() }
    }

    /// Runs on the reactor thread soon.
    func perform(_ work: @escaping () -> Void) {
        monitor.withLock { completions.append(work) }
        wake()
    }

    /// Ends a client's driver. False: called from the client's own handler; the driver ends the client after it.
    func end(_ client: Client) -> Bool {
        if isOnThread {
            guard let driver = drivers[ObjectIdentifier(client)] else { return true }
            if driver.isInHandler {
                return false
            }
            remove(driver)
            return true
        }
        let waiter = Waiter(client.lock)
        monitor.withLock { endings.append(Ending(client: client, waiter: waiter)) }
        wake()
        client.lock.withLock { _ = client.lock.wait(timeoutMs: -1) { waiter.isDone } }
        return true
    }

    private func wake() { System.signalEventFD(wakeFD) }

    /// At exit of the process: no TLS call is running, and none begins, after this returns (or 100 ms have passed).
    func park() {
        guard !isOnThread else { return }
        isParking.store(true, ordering: .sequentiallyConsistent)
        wake()
        for _ in 0..<100 where !isParked.load(ordering: .sequentiallyConsistent) { usleep(1_000) }
    }

    // MARK: The loop

    private func run() {
        var events = [epoll_event](repeating: epoll_event(), count: Self.eventsPerWaitMax)
        while true {
            let count = waitForEvents(&events)
            if isParking.load(ordering: .sequentiallyConsistent) {
                isParked.store(true, ordering: .sequentiallyConsistent)
                while true { pause() }
            }
            now = System.now()
            for position in 0..<count {
                let event = events[position]
                if event.data.u64 == UInt64.max {
                    System.clearEventFD(wakeFD)
                } else if let source = source(event.data.u64) {
                    source.handle(event.events, now)
                }
            }
            runResumable()
            runCompletions()
            runScheduled()
            runEndings()
            while let timer = timers.popDue(now) { timer.fire(now) }
            if monitor.withLock({ isStopping }) { break }
        }
        connector.shutDown()
        posts.shutDown()
    }

    private func waitForEvents(_ events: inout [epoll_event]) -> Int {
        var timeout: Int32 = -1
        if !resumable.isEmpty {
            timeout = 0
        } else if let next = timers.next {
            timeout = Int32(clamping: max(0, next - System.now()))
        }
        let count = epoll_wait(epollFD, &events, Int32(events.count), timeout)
        return max(0, Int(count))
    }

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
            ending.waiter.finish()
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
        var event = epoll_event()
        event.events = source.watchedEvents
        event.data.u64 = source.token
        epoll_ctl(epollFD, operation, source.watchedFD, &event)
    }

    private func source(_ token: UInt64) -> EventSource? {
        let index = Int(token & 0xFFFF_FFFF)
        guard index < sources.count, let source = sources[index], source.token == token else { return nil }
        return source
    }
}
