import Glibc

/// The beginning of a message whose rest has not come yet, kept from one read to the next. The memory stays while there is traffic and
/// is given back when the connection is idle.
struct Carry: ~Copyable {
    /// Most messages are smaller than this, so that the memory does not grow with every longer one.
    private static let bytesMin = 4_096

    private(set) var base: UnsafeMutableRawPointer?
    private(set) var capacity = 0
    private(set) var count = 0
    /// Bytes of the message in all, as far as is known; 0 when it is not.
    private(set) var wanted = 0

    deinit { base?.deallocate() }

    /// What is there does not fit before the shared buffer: the rest is read behind it, where nothing has to be moved. So is what follows,
    /// unless that would make for smaller reads than the shared buffer does.
    var isOwnBuffer: Bool { max(count, wanted) > Reactor.headroomBytes || capacity >= Reactor.scratchBytes }

    /// `bytes` may lie in the memory itself. There will be room for `wanted` bytes.
    mutating func keep(_ bytes: UnsafeRawBufferPointer, wanted: Int = 0) {
        let old = base
        let isLarger = max(bytes.count, wanted) > capacity
        if isLarger { allocate(max(bytes.count, wanted)) }
        if let base, let source = bytes.baseAddress, source != base { memmove(base, source, bytes.count) }
        if isLarger { old?.deallocate() }
        count = bytes.count
        self.wanted = wanted
    }

    private mutating func allocate(_ bytes: Int) {
        capacity = Self.bytesMin
        while capacity < bytes, capacity < Reactor.headroomBytes { capacity *= 2 }
        capacity = max(capacity, bytes)
        base = .allocate(byteCount: capacity + 64, alignment: 64)
    }

    mutating func added(_ bytes: Int) { count += bytes }

    mutating func clear() {
        count = 0
        wanted = 0
    }

    mutating func giveBack() {
        guard count == 0 else { return }
        base?.deallocate()
        base = nil
        capacity = 0
    }
}
