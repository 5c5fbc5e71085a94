@testable import BirdRealtimeCore

/// A client's end of one connection.
struct Socket {
    static let messageBytesMax = 65_536

    struct Outgoing {
        var bytes: [UInt8]
        var isAwaited: Bool
        /// The channel that it subscribes to.
        var subscribes: String?
    }

    let link: Link
    let key: String
    var upgrade: UpgradeResponse
    var decoder = FrameDecoder(messageBytesMax: messageBytesMax)
    var isUpgraded = false
    /// Read, and not taken.
    var inbox: [UInt8] = []
    /// Bytes of frames and of the upgrade that were taken.
    var taken = 0
    /// The program is slow, or waits for keys: nothing is read.
    var isPaused = false
    private(set) var outbox: [Outgoing] = []
    var isBlocked = false

    init(link: Link, key: String) {
        self.link = link
        self.key = key
        upgrade = UpgradeResponse(key: key)
    }

    mutating func put(_ outgoing: Outgoing) { outbox.append(outgoing) }

    /// What a socket takes that has room for so many bytes, and the frames that are through with it.
    mutating func take(_ count: Int) -> (bytes: [UInt8], written: [Outgoing]) {
        var bytes: [UInt8] = []
        var written: [Outgoing] = []
        while let first = outbox.first {
            let room = count - bytes.count
            guard first.bytes.count <= room else {
                bytes += first.bytes.prefix(room)
                outbox[0].bytes.removeFirst(room)
                break
            }
            bytes += first.bytes
            written.append(first)
            outbox.removeFirst()
        }
        return (bytes, written)
    }

    var outboxBytes: Int { outbox.reduce(0) { $0 + $1.bytes.count } }

    mutating func drop(_ count: Int) {
        inbox.removeFirst(count)
        taken += count
    }
}
