import CBirdRealtimeABI
import Testing

@testable import BirdRealtime

@Suite struct RecordNamesTests {
    private func expect(_ names: RecordNames, _ channel: String, _ event: String) {
        channel.withCString { channelText in
            event.withCString { eventText in
                var record = bird_record()
                record.channel_name = channelText
                record.channel_name_length = UInt32(channel.utf8.count)
                record.event = eventText
                record.event_length = UInt32(event.utf8.count)
                #expect(names.channel(of: record) == channel)
                #expect(names.event(of: record) == event)
            }
        }
    }

    @Test func namesAreThoseOfTheRecordWhateverCameBefore() {
        let names = RecordNames()
        let long = "presence-a-room-with-a-long-name"
        let all = [
            "orders", "orders", "orderz", "", "", "or", "bestellüng", long, long, long + "1", long + "2", "x",
        ]
        for name in all { expect(names, name, "tick") }
        for name in all { expect(names, "orders", name) }
    }

    @Test func aRecordWithoutNamesHasEmptyOnes() {
        let names = RecordNames()
        expect(names, "orders", "tick")
        #expect(names.channel(of: bird_record()) == "")
        #expect(names.event(of: bird_record()) == "")
    }
}
