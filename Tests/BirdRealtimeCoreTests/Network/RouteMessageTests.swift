import Testing

@testable import BirdRealtimeCore

/// Messages as a kernel sent them, and what becomes of them when their lengths lie.
@Suite struct RouteMessageTests {
    /// An interface by the name v0 with the number 3.
    static let addressAdded =
        "4c000000140000005b440d6b4c170000021880000300000008000100c000020208000200c000020207000300763000000800080080000000"
        + "14000600ffffffffffffffff5ebe28005ebe2800"
    static let defaultRoute =
        "34000000180000065b440d6b6217000002000000fe0300010000000008000f00fe00000008000500c00002010800040003000000"
    static let defaultRouteV6 =
        "74000000180000065c440d6b911700000a000000fe0300010000000008000f00fe00000008000600320000001400050020010db800000000"
        + "0000000000000001080004000300000024000c00000000000000000000000000000000000000000000000000000000000000000005001400"
        + "00000000"
    static let twoHops =
        "50000000180000065d440d6ba317000002000000fe0300010000000008000f00fe000000080006004d000000240009001000000003000000"
        + "08000500c0000201100000000300000008000500c0000207"
    static let otherTable =
        "34000000180000065d440d6bb717000002000000640300010000000008000f006400000008000500c00002090800040003000000"
    static let subnet =
        "3c00000018000006000000000000000002180000fe02fd010000000008000f00fe00000008000100c000020008000700c000020208000400"
        + "03000000"
    static let bridgePortGone =
        "5400000011000000000000000000000007000100030000000210000000000000070003007630000008000a000400000008000400dc050000"
        + "05001000020000000a0001003aaba5e60ed900000800050002000000"

    static let everyVector = [
        addressAdded, defaultRoute, defaultRouteV6, twoHops, otherTable, subnet, bridgePortGone,
    ]

    private let gateway: [UInt8] = [192, 0, 2, 1]

    private func contents(_ bytes: [UInt8]) -> (contents: [RouteMessage.Content], isWhole: Bool) {
        var found: [RouteMessage.Content] = []
        let isWhole = bytes.withUnsafeBytes { RouteMessage.parse($0) { found.append($0.content) } }
        return (found, isWhole)
    }

    private func content(_ vector: String) -> RouteMessage.Content? {
        let (contents, isWhole) = contents(Netlink.bytes(vector))
        return isWhole && contents.count == 1 ? contents[0] : nil
    }

    @Test func aDefaultRoute() {
        let route = DefaultRoute(family: .v4, hops: [DefaultRoute.Hop(interface: 3, gateway: gateway)])
        #expect(content(Self.defaultRoute) == .defaultRoute(route, isThere: true))
    }

    @Test func aDefaultRouteOfIPv6() {
        let hop = DefaultRoute.Hop(
            interface: 3, gateway: [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1])
        #expect(
            content(Self.defaultRouteV6)
                == .defaultRoute(DefaultRoute(family: .v6, metric: 50, hops: [hop]), isThere: true))
    }

    @Test func aDefaultRouteOverTwoGateways() {
        let hops = [1, 7].map { DefaultRoute.Hop(interface: 3, gateway: [192, 0, 2, $0]) }
        #expect(
            content(Self.twoHops) == .defaultRoute(DefaultRoute(family: .v4, metric: 77, hops: hops), isThere: true))
    }

    @Test("other routes, and links in a bridge, are nothing", arguments: [otherTable, subnet, bridgePortGone])
    func nothing(vector: String) {
        #expect(content(vector) == .other)
    }

    @Test func anAddress() {
        let address = NetworkAddress.v4(192, 0, 2, 2)
        #expect(content(Self.addressAdded) == .address(address, interface: 3, isThere: true))
        var gone = Netlink.bytes(Self.addressAdded)
        gone[4] = 21
        #expect(contents(gone).contents == [.address(address, interface: 3, isThere: false)])
    }

    @Test("an address that nobody may use yet is not there", arguments: [0x40, 0x08] as [UInt8])
    func tentative(flag: UInt8) {
        let address = NetworkAddress.v4(192, 0, 2, 2)
        var bytes = Netlink.bytes(Self.addressAdded)
        let wideFlags = 52
        #expect(bytes[wideFlags - 4] == 8)
        bytes[wideFlags] |= flag
        #expect(contents(bytes).contents == [.address(address, interface: 3, isThere: false)])
    }

    @Test(
        "a link runs when it is up and has somebody at the other end",
        arguments: [(0x1043, true), (0x1003, false), (0x1002, false)])
    func link(flags: UInt32, isRunning: Bool) {
        #expect(contents(Netlink.link(3, flags: flags)).contents == [.link(interface: 3, isRunning: isRunning)])
        #expect(contents(Netlink.link(3, flags: flags, isThere: false)).contents == [.linkGone(interface: 3)])
    }

    @Test func theEndOfAnAnswer() {
        let refused = Netlink.message(2, Netlink.word(UInt32(bitPattern: -1)) + [UInt8](repeating: 0, count: 16))
        #expect(contents(Netlink.message(3, Netlink.word(0))).contents == [.done])
        #expect(contents(refused).contents == [.refused(1)])
        var found: [RouteMessage] = []
        _ = Netlink.message(3, [], flags: 0x12, sequence: 7, port: 9).withUnsafeBytes {
            RouteMessage.parse($0) { found.append($0) }
        }
        #expect(found == [RouteMessage(content: .done, sequence: 7, port: 9, isInterrupted: true)])
    }

    @Test func severalInOneDatagram() {
        let (found, isWhole) = contents(Self.everyVector.flatMap(Netlink.bytes))
        #expect(isWhole)
        #expect(found.count == Self.everyVector.count)
        #expect(found[1] == content(Self.defaultRoute))
    }

    @Test("a datagram that ends anywhere is not read beyond its end", arguments: everyVector)
    func truncated(vector: String) {
        let bytes = Netlink.bytes(vector)
        for count in 0..<bytes.count {
            // Memory of its own, so that a look beyond its end is one that a sanitizer sees.
            let (found, isWhole) = contents(Array(bytes.prefix(count)))
            #expect(found == [] && isWhole == (count == 0))
        }
    }

    @Test("a length that lies is no message", arguments: [0, 1, 15, 0x7FFF_FFFF, 0xFFFF_FFFF] as [UInt32])
    func lyingLength(length: UInt32) {
        var bytes = Netlink.bytes(Self.defaultRoute)
        bytes.replaceSubrange(0..<4, with: Netlink.word(length))
        #expect(contents(bytes) == ([], false))
    }

    @Test("the body of a message may be as short as it likes", arguments: everyVector)
    func shortBody(vector: String) {
        let bytes = Netlink.bytes(vector)
        for count in 16..<bytes.count {
            var short = Array(bytes.prefix(count))
            short.replaceSubrange(0..<4, with: Netlink.word(UInt32(count)))
            #expect(contents(short).isWhole)
        }
    }

    @Test func lengthsOfAttributesAndHopsLie() {
        for vector in Self.everyVector {
            let bytes = Netlink.bytes(vector)
            for offset in stride(from: 16, to: bytes.count - 1, by: 2) {
                for length in [0, 1, 3, 4, 5, 7, 9, 0x7FFF, 0xFFFF] as [UInt16] {
                    var lying = bytes
                    lying[offset] = UInt8(length & 0xFF)
                    lying[offset + 1] = UInt8(length >> 8)
                    #expect(contents(lying).isWhole)
                }
            }
        }
    }

    @Test func anythingAtAll() {
        var random = SplitMix64(seed: 7)
        for round in 0..<20_000 {
            var bytes = Netlink.bytes(Self.everyVector[round % Self.everyVector.count])
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let (found, _) = contents(bytes)
            #expect(found.count <= bytes.count / 16)
            for case .defaultRoute(let route, _) in found {
                #expect(route.hops.count <= RouteMessage.hopsMax)
            }
        }
    }
}

extension NetworkAddress {
    static func v4(_ bytes: UInt8...) -> NetworkAddress {
        guard let address = NetworkAddress(.v4, bytes) else { preconditionFailure("an address has four bytes") }
        return address
    }
}

/// Makes messages of the kernel's.
enum Netlink {
    static func bytes(_ hex: String) -> [UInt8] {
        let digits = hex.utf8.map { UInt8($0 > 0x39 ? $0 - 0x57 : $0 - 0x30) }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    static func word(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

    static func message(
        _ type: UInt16, _ body: [UInt8], flags: UInt16 = 0, sequence: UInt32 = 0, port: UInt32 = 0
    ) -> [UInt8] {
        word(UInt32(16 + body.count)) + word(UInt32(type) | UInt32(flags) << 16) + word(sequence) + word(port) + body
    }

    static func link(_ interface: UInt32, flags: UInt32, isThere: Bool = true) -> [UInt8] {
        message(isThere ? 16 : 17, word(1 << 16) + word(interface) + word(flags) + word(0))
    }
}
