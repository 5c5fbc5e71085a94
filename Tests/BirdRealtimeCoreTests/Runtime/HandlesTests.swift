import Testing

@testable import BirdRealtimeCore

@Suite struct HandlesTests {
    private final class Thing {}

    private func finds(_ handle: UInt, _ kind: HandleKind) -> Bool {
        if case .object = Handles.lookup(handle, kind) { true } else { false }
    }

    @Test func handleIsGoodForItsKindUntilReleased() {
        let handle = Handles.register(Thing(), as: .channel)
        #expect(finds(handle, .channel))
        #expect(!finds(handle, .client))
        #expect(Handles.release(handle, .channel))
        #expect(!finds(handle, .channel))
        #expect(!Handles.release(handle, .channel))
        #expect(Handles.hasBeenIssued(handle, .channel))
    }

    @Test func numbersAreNotReusedSoon() {
        var seen: Set<UInt> = []
        for _ in 0..<5_000 {
            let handle = Handles.register(Thing(), as: .request)
            #expect(seen.insert(handle).inserted)
            Handles.release(handle, .request)
        }
    }

    @Test(arguments: [0, 1, 8, UInt.max, 0xB400_0001_FFFF_FFFF, 0x7FFF_0000_1234])
    func inventedOnesAreFoundOut(_ handle: UInt) {
        for kind in [HandleKind.options, .client, .channel, .queue, .batch, .request] {
            #expect(!finds(handle, kind))
            #expect(!Handles.release(handle, kind))
        }
    }
}
