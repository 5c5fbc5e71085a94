import BirdRealtime
import Foundation
import Synchronization
import Testing

/// What a client tells of itself, without a connection.
@Suite struct LogTests {
    private func options(_ handler: LogHandler? = nil) -> BirdRealtimeOptions {
        BirdRealtimeOptions(
            appKey: "pk", region: "us1", deliveryQueue: DispatchQueue(label: "delivery"), autoConnect: false,
            log: LogOptions(handler: handler, level: .verbose))
    }

    @Test func entriesSayWhatAndWhen() throws {
        final class Entries: Sendable {
            let all = Mutex<[LogEntry]>([])
        }
        let entries = Entries()
        let before = Date()
        let bird = BirdRealtime(options: options { entry in entries.all.withLock { $0.append(entry) } })
        bird.subscribe("two words")
        try bird.close()
        let all = entries.all.withLock { $0 }
        #expect(!all.isEmpty)
        for entry in all {
            #expect(entry.level != .off)
            #expect(LogAreas.all.contains(entry.area))
            #expect(!"\(entry.area)".isEmpty && !"\(entry.area)".contains(","))
            #expect(!entry.message.isEmpty && !entry.message.contains("\n"))
            #expect(entry.date >= before.addingTimeInterval(-1) && entry.date <= Date().addingTimeInterval(1))
            #expect(entry.clientNumber > 0)
        }
    }

    @Test func theHandlerIsReleasedWithTheClient() {
        final class Witness: Sendable {}
        weak var witness: Witness?
        do {
            let kept = Witness()
            witness = kept
            _ = BirdRealtime(options: options { _ in withExtendedLifetime(kept) {} })
        }
        #expect(witness == nil)
    }

    @Test func aClientTellsAllOfItself() throws {
        let bird = BirdRealtime(options: options())
        bird.subscribe("orders")
        #expect(bird.dump["client"]?["state"] == "initialized")
        #expect(bird.dump["channels"]?[0]?["name"] == "orders")
        #expect(BirdRealtime(options: .init(appKey: "pk")).dump.isNull)
    }
}
