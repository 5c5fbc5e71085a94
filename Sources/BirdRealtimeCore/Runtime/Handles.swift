import Synchronization

/// What a C handle names. Raw values are part of the handle's bits.
package enum HandleKind: UInt8, Sendable {
    case options = 1
    case client = 2
    case channel = 3
    case queue = 4
    case batch = 5
    case request = 6
    case loop = 7
}

/// Gives objects numbers that a C caller may get wrong: a handle carries kind, generation and index and is never dereferenced,
/// so that NULL, stale, foreign and invented handles are found out.
package enum Handles {
    private static let mark: UInt = 0xB1

    private struct Slot {
        var object: AnyObject?
        var generation: UInt32 = 1
        var kind: HandleKind = .options
        var process: UInt32 = 0
    }

    /// So many freed slots rest, which delays the reuse of a number.
    private static let restingMin = 1_024

    private struct Table: ~Copyable {
        var slots: [Slot] = []
        /// Oldest first, so that a generation comes round as late as possible.
        var free = Ring<UInt32>()

        /// With room for those that rest and some that are in use: batches that come and go make the table grow no more.
        init() {
            slots.reserveCapacity(restingMin + 256)
            free.reserve(restingMin + 256)
        }
    }

    private static let monitor = Monitor()
    nonisolated(unsafe) private static var table = Table()  // guarded by `monitor`

    package static func register(_ object: AnyObject, as kind: HandleKind) -> UInt {
        HostProcess.watchForks()
        return monitor.withLock {
            let index: UInt32
            if table.free.count > restingMin, let old = table.free.popFirst() {
                index = old
            } else {
                index = UInt32(truncatingIfNeeded: table.slots.count)
                table.slots.append(Slot())
            }
            table.slots[Int(index)].object = object
            table.slots[Int(index)].kind = kind
            table.slots[Int(index)].process = HostProcess.generation
            return bits(kind, table.slots[Int(index)].generation, index)
        }
    }

    package enum Lookup {
        case object(AnyObject)
        case invalid
        /// Belongs to the parent process.
        case inherited
    }

    package static func lookup(_ handle: UInt, _ kind: HandleKind) -> Lookup {
        monitor.withLock {
            guard let index = slotIndex(handle, kind) else { return .invalid }
            guard table.slots[index].process == HostProcess.generation else { return .inherited }
            guard let object = table.slots[index].object else { return .invalid }
            return .object(object)
        }
    }

    /// Ends a handle; later lookups find nothing. False if it was none.
    @discardableResult
    package static func release(_ handle: UInt, _ kind: HandleKind) -> Bool {
        // The object goes after the lock: its deinit may release handles of its own.
        let object: AnyObject? = monitor.withLock {
            guard let index = slotIndex(handle, kind), let object = table.slots[index].object else { return nil }
            table.slots[index].object = nil
            table.slots[index].generation = (table.slots[index].generation &+ 1) & 0xFF_FFFF
            table.free.append(UInt32(truncatingIfNeeded: index))
            return object
        }
        return object != nil
    }

    /// Ends an inherited handle, which still says so when it is used; nil if that has been done, or may not be here.
    @discardableResult
    package static func disinherit(_ handle: UInt, _ kind: HandleKind) -> AnyObject? {
        guard !LogHandler.isRunning else { return nil }
        return monitor.withLock {
            guard let index = slotIndex(handle, kind), table.slots[index].process != HostProcess.generation else {
                return nil
            }
            defer { table.slots[index].object = nil }
            return table.slots[index].object
        }
    }

    /// What the inherited handles of a kind name.
    static func inherited(_ kind: HandleKind) -> [AnyObject] {
        monitor.withLock {
            table.slots.compactMap { $0.kind == kind && $0.process != HostProcess.generation ? $0.object : nil }
        }
    }

    /// True for a handle that once was one, whether or not it still is.
    package static func hasBeenIssued(_ handle: UInt, _ kind: HandleKind) -> Bool {
        monitor.withLock {
            let index = Int(handle & 0xFFFF_FFFF)
            guard handle >> 56 == mark + UInt(kind.rawValue), index < table.slots.count else { return false }
            return (handle >> 32) & 0xFF_FFFF <= UInt(table.slots[index].generation)
        }
    }

    static func lockForFork() { monitor.lock() }
    static func unlockAfterFork() { monitor.unlock() }
    static func unlockInChild() { monitor.unlockInChild() }

    private static func bits(_ kind: HandleKind, _ generation: UInt32, _ index: UInt32) -> UInt {
        (mark + UInt(kind.rawValue)) << 56 | UInt(generation & 0xFF_FFFF) << 32 | UInt(index)
    }

    private static func slotIndex(_ handle: UInt, _ kind: HandleKind) -> Int? {
        guard handle >> 56 == mark + UInt(kind.rawValue) else { return nil }
        let index = Int(handle & 0xFFFF_FFFF)
        guard index < table.slots.count, table.slots[index].kind == kind,
            UInt(table.slots[index].generation) == (handle >> 32) & 0xFF_FFFF
        else { return nil }
        return index
    }
}
