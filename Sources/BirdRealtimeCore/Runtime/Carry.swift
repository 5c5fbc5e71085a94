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

    mutating func keep(_ bytes: UnsafeRawBufferPointer) {
        grow(to: bytes.count)
        if let base, let source = bytes.baseAddress { memmove(base, source, bytes.count) }
        count = bytes.count
        wanted = 0
    }

    /// Makes room for the whole message of `total` bytes, of which `count` are here.
    mutating func want(_ total: Int) {
        wanted = total
        grow(to: total)
    }

    private mutating func grow(to bytes: Int) {
        guard bytes > capacity else { return }
        var total = Self.bytesMin
        while total < bytes, total < Reactor.headroomBytes { total *= 2 }
        total = max(total, bytes)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: total + 64, alignment: 64)
        if let base {
            memcpy(larger, base, count)
            base.deallocate()
        }
        base = larger
        capacity = total
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
