import Glibc

/// What a `bird_members` points to: a roster as C reads it. Its strings are made when one of them is first asked for, since few programs
/// that get the roster of a success look at it.
/// `@unchecked Sendable`: immutable but for the strings, which `monitor` guards until they are there.
package final class MembersObject: @unchecked Sendable {
    private struct Strings {
        let memory: UnsafeMutablePointer<CChar>
        var starts: [(id: Int, info: Int)] = []
    }

    private let roster: Roster
    private let monitor = Monitor()
    private var strings: Strings?

    package init(_ roster: Roster) { self.roster = roster }

    deinit { strings?.memory.deallocate() }

    package var count: Int { roster.count }

    /// Valid as long as this object; nil beyond the end.
    package func id(_ index: Int) -> UnsafePointer<CChar>? { text(index) { $0.id } }
    package func info(_ index: Int) -> UnsafePointer<CChar>? { text(index) { $0.info } }

    /// Without the NUL; 0 beyond the end.
    package func idLength(_ index: Int) -> Int {
        let starts = made().starts
        return starts.indices.contains(index) ? starts[index].info - starts[index].id - 1 : 0
    }

    private func made() -> Strings {
        monitor.withLock {
            let made = self.strings ?? Self.strings(of: roster)
            self.strings = made
            return made
        }
    }

    private func text(_ index: Int, _ part: ((id: Int, info: Int)) -> Int) -> UnsafePointer<CChar>? {
        let strings = made()
        guard strings.starts.indices.contains(index) else { return nil }
        return UnsafePointer(strings.memory + part(strings.starts[index]))
    }

    private static func strings(of roster: Roster) -> Strings {
        var size = 0
        roster.forEach { id, info in size += id.count + (info?.count ?? 0) + 2 }
        var strings = Strings(memory: .allocate(capacity: max(1, size)))
        strings.starts.reserveCapacity(roster.count)
        var next = 0
        roster.forEach { id, info in
            let start = next
            next = copy(id, into: strings.memory, at: next)
            strings.starts.append((start, next))
            next = copy(info, into: strings.memory, at: next)
        }
        return strings
    }

    /// Where the next string begins.
    private static func copy(
        _ bytes: UnsafeRawBufferPointer?, into memory: UnsafeMutablePointer<CChar>, at start: Int
    ) -> Int {
        let count = bytes?.count ?? 0
        if let source = bytes?.baseAddress { memcpy(memory + start, source, count) }
        memory[start + count] = 0
        return start + count + 1
    }

    /// Borrowed: valid as long as this object.
    package var pointer: OpaquePointer { OpaquePointer(Unmanaged.passUnretained(self).toOpaque()) }

    package static func at(_ pointer: OpaquePointer) -> MembersObject {
        Unmanaged<MembersObject>.fromOpaque(UnsafeRawPointer(pointer)).takeUnretainedValue()
    }
}
