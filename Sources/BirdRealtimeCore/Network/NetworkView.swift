/// What is different in the network, as far as a client may care.
struct NetworkChange: Equatable, Sendable {
    /// Families whose default route has gone, or is another one now.
    var lostDefaults: Set<NetworkAddress.Family> = []
    /// A family has a default route that it did not have.
    var hasNewDefault = false
    var lostAddresses: Set<NetworkAddress> = []
    var newAddresses: Set<NetworkAddress> = []

    var isEmpty: Bool { self == NetworkChange() }

    /// Packets of a socket with this address may not get through any more.
    func cutsOff(_ source: NetworkAddress) -> Bool {
        lostAddresses.contains(source) || (lostDefaults.contains(source.family) && !source.isLoopback)
    }

    /// A connection that failed may succeed now. `source`: the address of the last one.
    func opensWay(from source: NetworkAddress?) -> Bool {
        hasNewDefault || source.map(newAddresses.contains) ?? false
    }
}

/// The links, addresses and default routes of the machine, put together from the kernel's messages. A route through a link that does not
/// run, or an address on one, counts as gone.
///
/// Links and addresses never change without a message. Default routes do: IPv4 drops those of a link that goes down or loses its address
/// silently. So they are taken from whole answers only, and `note` says when to ask again.
struct NetworkView: Sendable {
    /// More than these are not looked at.
    static let linksMax = 65_536
    static let addressesMax = 65_536
    static let defaultRoutesMax = 256

    private struct Assignment: Hashable, Sendable {
        var address: NetworkAddress
        var interface: Int32
    }

    private struct Picture: Sendable {
        var defaults: [NetworkAddress.Family: Set<DefaultRoute.Hop>]
        var addresses: Set<NetworkAddress>
    }

    private var links: [Int32: Bool] = [:]
    private var assignments: Set<Assignment> = []
    private var routes: [DefaultRoute] = []
    private var answered: [DefaultRoute] = []
    /// Since the last `settle`.
    private var hasNews = true
    /// At the last `settle`.
    private var picture: Picture?

    /// Everything is asked for again.
    mutating func forget() {
        links = [:]
        assignments = []
    }

    /// True: the default routes must be asked for again.
    mutating func note(_ content: RouteMessage.Content) -> Bool {
        switch content {
        case .link(let interface, let isRunning):
            guard links[interface] != isRunning, links[interface] != nil || links.count < Self.linksMax else {
                return false
            }
            links[interface] = isRunning
            hasNews = true
            return isOnDefaultRoute(interface)
        case .linkGone(let interface):
            links[interface] = nil
            assignments = assignments.filter { $0.interface != interface }
            hasNews = true
            return isOnDefaultRoute(interface)
        case .address(let address, let interface, isThere: true):
            guard assignments.count < Self.addressesMax else { return false }
            hasNews = assignments.insert(Assignment(address: address, interface: interface)).inserted || hasNews
            return false
        case .address(let address, let interface, isThere: false):
            guard assignments.remove(Assignment(address: address, interface: interface)) != nil else { return false }
            hasNews = true
            return isOnDefaultRoute(interface)
        case .defaultRoute: return true
        case .done, .refused, .other: return false
        }
    }

    mutating func beginRoutes() { answered = [] }

    mutating func addRoute(_ route: DefaultRoute) {
        if answered.count < Self.defaultRoutesMax { answered.append(route) }
    }

    mutating func endRoutes() {
        routes = answered
        hasNews = true
    }

    /// What is different since the last call; nothing at the first, which only learns how things are.
    mutating func settle() -> NetworkChange {
        guard hasNews else { return NetworkChange() }
        hasNews = false
        let before = picture
        let now = look()
        picture = now
        guard let before else { return NetworkChange() }
        var change = NetworkChange()
        for family in [NetworkAddress.Family.v4, .v6] where now.defaults[family] != before.defaults[family] {
            if before.defaults[family] != nil { change.lostDefaults.insert(family) }
            if now.defaults[family] != nil { change.hasNewDefault = true }
        }
        change.lostAddresses = before.addresses.subtracting(now.addresses)
        change.newAddresses = now.addresses.subtracting(before.addresses)
        return change
    }

    private func isOnDefaultRoute(_ interface: Int32) -> Bool {
        routes.contains { $0.hops.contains { $0.interface == interface } }
    }

    private func isRunning(_ interface: Int32) -> Bool { links[interface] ?? true }

    private func look() -> Picture {
        var defaults: [NetworkAddress.Family: Set<DefaultRoute.Hop>] = [:]
        for route in routes.sorted(by: { $0.metric < $1.metric }) where defaults[route.family] == nil {
            let hops = Set(route.hops.filter { isRunning($0.interface) })
            if !hops.isEmpty { defaults[route.family] = hops }
        }
        return Picture(
            defaults: defaults, addresses: Set(assignments.lazy.filter { isRunning($0.interface) }.map(\.address)))
    }
}
