import CBirdRealtimeABI
import Glibc

/// The names in records as strings. Each is made when it is another one than before: one of more than 15 bytes would cost every event an
/// allocation.
///
/// `@unchecked Sendable`: it belongs to one handler, and handlers run one at a time.
final class RecordNames: @unchecked Sendable {
    private var channel = ""
    private var event = ""

    func channel(of record: bird_record) -> String {
        if !isSame(channel, record.channel_name, record.channel_name_length) { channel = record.channelName }
        return channel
    }

    func event(of record: bird_record) -> String {
        if !isSame(event, record.event, record.event_length) { event = record.eventName }
        return event
    }

    private func isSame(_ name: String, _ bytes: UnsafePointer<CChar>?, _ count: UInt32) -> Bool {
        let isSame = name.utf8.withContiguousStorageIfAvailable { name in
            guard name.count == count, let known = name.baseAddress, let bytes else { return false }
            return memcmp(known, bytes, name.count) == 0
        }
        return isSame ?? false
    }
}
