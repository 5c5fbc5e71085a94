/// A default route of the main table.
struct DefaultRoute: Equatable, Sendable {
    struct Hop: Hashable, Sendable {
        /// 0: the message did not say.
        var interface: Int32 = 0
        /// As it stood in the message; empty for a route without one.
        var gateway: [UInt8] = []
    }

    var family: NetworkAddress.Family
    /// The smallest is used.
    var metric: UInt32 = 0
    var hops: [Hop] = []
}

/// One message of the kernel's about the network (rtnetlink), reduced to what this library looks at.
struct RouteMessage: Equatable, Sendable {
    enum Content: Equatable, Sendable {
        /// Running: it is up, and there is somebody at the other end of the cable.
        case link(interface: Int32, isRunning: Bool)
        case linkGone(interface: Int32)
        case address(NetworkAddress, interface: Int32, isThere: Bool)
        case defaultRoute(DefaultRoute, isThere: Bool)
        /// The end of an answer.
        case done
        /// The request was refused; an errno value.
        case refused(Int32)
        case other
    }

    var content: Content
    /// Those of the request, in an answer to one.
    var sequence: UInt32
    var port: UInt32
    /// The answer may not fit together: things changed while it was given.
    var isInterrupted: Bool
}

/// The numbers are those of linux/netlink.h, linux/rtnetlink.h, linux/if_link.h and linux/if_addr.h. Every length in the bytes may lie.
extension RouteMessage {
    static let hopsMax = 64

    /// Hands over each message of a datagram. False: something in it is no message, and what follows was not looked at.
    static func parse(_ datagram: UnsafeRawBufferPointer, _ take: (RouteMessage) -> Void) -> Bool {
        var rest = NetlinkBytes(datagram)
        while rest.count > 0 {
            guard let length = rest.u32(0), length >= 16, let message = rest.part(0, Int(length)),
                let type = rest.u16(4), let flags = rest.u16(6), let sequence = rest.u32(8), let port = rest.u32(12),
                let body = message.from(16)
            else { return false }
            take(
                RouteMessage(
                    content: content(type, body), sequence: sequence, port: port, isInterrupted: flags & 0x10 != 0))
            rest = rest.from(NetlinkBytes.aligned(Int(length))) ?? NetlinkBytes.none
        }
        return true
    }

    private static func content(_ type: UInt16, _ body: NetlinkBytes) -> Content {
        switch type {
        case 2: .refused(body.i32(0).map { 0 &- $0 } ?? 0)
        case 3: .done
        case 16, 17: link(body, isThere: type == 16) ?? .other
        case 20, 21: address(body, isThere: type == 20) ?? .other
        case 24, 25: defaultRoute(body).map { .defaultRoute($0, isThere: type == 24) } ?? .other
        default: .other
        }
    }

    /// A family here means that it is only about the link's part in something else, such as a bridge.
    private static func link(_ body: NetlinkBytes, isThere: Bool) -> Content? {
        guard body.u8(0) == 0, let interface = body.i32(4), let flags = body.u32(8) else { return nil }
        let upAndRunning: UInt32 = 0x1 | 0x40
        return isThere
            ? .link(interface: interface, isRunning: flags & upAndRunning == upAndRunning)
            : .linkGone(interface: interface)
    }

    private static func address(_ body: NetlinkBytes, isThere: Bool) -> Content? {
        guard let family = body.u8(0).flatMap(NetworkAddress.Family.init), let shortFlags = body.u8(2),
            let interface = body.i32(4)
        else { return nil }
        var flags = UInt32(shortFlags)
        var found: NetlinkBytes?
        var local: NetlinkBytes?
        body.from(8)?.forEachAttribute { type, value in
            switch type {
            case 1: found = value
            // Where both are, the other one is that of the far end.
            case 2: local = value
            case 8: flags = value.u32(0) ?? flags
            default: break
            }
        }
        guard let address = (local ?? found).flatMap({ NetworkAddress(family, $0) }) else { return nil }
        // Nobody may use an address before it is known that it is not somebody else's (tentative), or when it is.
        let isUsable = flags & (0x40 | 0x08) == 0
        return .address(address, interface: interface, isThere: isThere && isUsable)
    }

    private static func defaultRoute(_ body: NetlinkBytes) -> DefaultRoute? {
        let main: UInt32 = 254
        let unicast: UInt8 = 1
        let cloned: UInt32 = 0x200
        guard let family = body.u8(0).flatMap(NetworkAddress.Family.init), body.u8(1) == 0, body.u8(2) == 0,
            let shortTable = body.u8(4), body.u8(7) == unicast, let flags = body.u32(8), flags & cloned == 0
        else { return nil }
        var route = DefaultRoute(family: family)
        var table = UInt32(shortTable)
        var hop = DefaultRoute.Hop()
        body.from(12)?.forEachAttribute { type, value in
            switch type {
            case 4: hop.interface = value.i32(0) ?? 0
            case 5, 18: hop.gateway = Array(value)
            case 6: route.metric = value.u32(0) ?? 0
            case 9: route.hops = hops(value)
            case 15: table = value.u32(0) ?? table
            default: break
            }
        }
        guard table == main else { return nil }
        if route.hops.isEmpty { route.hops = [hop] }
        return route
    }

    private static func hops(_ list: NetlinkBytes) -> [DefaultRoute.Hop] {
        var hops: [DefaultRoute.Hop] = []
        var rest = list
        while hops.count < hopsMax, let length = rest.u16(0), length >= 8, let one = rest.part(0, Int(length)),
            let interface = one.i32(4)
        {
            var hop = DefaultRoute.Hop(interface: interface)
            one.from(8)?.forEachAttribute { type, value in
                if type == 5 || type == 18 { hop.gateway = Array(value) }
            }
            hops.append(hop)
            rest = rest.from(NetlinkBytes.aligned(Int(length))) ?? NetlinkBytes.none
        }
        return hops
    }
}
