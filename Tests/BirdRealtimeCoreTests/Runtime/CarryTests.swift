import Testing

@testable import BirdRealtimeCore

/// Where the next read of a connection goes (`Carry.isOwnBuffer`).
struct CarryTests {
    private static func kept(_ count: Int, wanted: Int = 0, in carry: inout Carry) {
        let bytes = [UInt8](repeating: 1, count: count)
        bytes.withUnsafeBytes { carry.keep($0, wanted: wanted) }
    }

    /// What a pause has left is more than fits before the shared buffer. When that is consumed, small reads would follow it.
    @Test func goesBackToTheSharedBuffer() {
        var carry = Carry()
        Self.kept(Reactor.headroomBytes + 8_000, in: &carry)
        var isOwn = carry.isOwnBuffer
        #expect(isOwn)
        carry.clear()
        isOwn = carry.isOwnBuffer
        #expect(!isOwn)
        // The beginning of the next message lies in the same memory.
        Self.kept(300, wanted: 500, in: &carry)
        isOwn = carry.isOwnBuffer
        #expect(!isOwn)
    }

    @Test func readsALargeMessageBehindItsBeginning() {
        var carry = Carry()
        Self.kept(300, wanted: 1_000_000, in: &carry)
        var isOwn = carry.isOwnBuffer
        #expect(isOwn)
        carry.clear()
        // One after the other: the memory is larger than the shared buffer.
        isOwn = carry.isOwnBuffer
        #expect(isOwn)
    }
}
