import Testing

@testable import BirdRealtimeCore

/// What the kernel's messages come to: which changes are told, and when the routes have to be asked for again.
@Suite struct NetworkViewTests {
    /// A machine with a cable (2) and a radio (3), both with a default route of IPv4, the cable's better; told already.
    private final class Machine {
        private(set) var view = NetworkView()
        var routes = [Machine.route(2, metric: 100), Machine.route(3, metric: 600)]

        static let cable = NetworkAddress.v4(192, 0, 2, 2)
        static let radio = NetworkAddress.v4(198, 51, 100, 3)

        init() {
            for interface in [1, 2, 3] as [Int32] {
                _ = view.note(.link(interface: interface, isRunning: true))
            }
            add(Self.cable, 2)
            add(Self.radio, 3)
            #expect(look() == NetworkChange())
        }

        static func route(
            _ interface: Int32, metric: UInt32, family: NetworkAddress.Family = .v4, gateway: UInt8 = 1
        ) -> DefaultRoute {
            DefaultRoute(
                family: family, metric: metric,
                hops: [DefaultRoute.Hop(interface: interface, gateway: [192, 0, 2, gateway])])
        }

        func note(_ content: RouteMessage.Content) -> Bool { view.note(content) }
        func settle() -> NetworkChange { view.settle() }
        func forget() { view.forget() }

        func add(_ address: NetworkAddress, _ interface: Int32) {
            let isLookNeeded = view.note(.address(address, interface: interface, isThere: true))
            #expect(!isLookNeeded)
        }

        /// The kernel is asked for the default routes.
        func look() -> NetworkChange {
            view.beginRoutes()
            for route in routes { view.addRoute(route) }
            view.endRoutes()
            return view.settle()
        }
    }

    @Test func nothingIsToldOfHowThingsAre() {
        let machine = Machine()
        #expect(machine.settle() == NetworkChange())
        #expect(machine.look() == NetworkChange())
    }

    @Test func theBestRouteGoes() {
        let machine = Machine()
        #expect(machine.note(.defaultRoute(machine.routes[0], isThere: false)))
        machine.routes.removeFirst()
        // The other one takes its place: connections of the first are in doubt, and those that wait have a way.
        #expect(machine.look() == NetworkChange(lostDefaults: [.v4], hasNewDefault: true))
        machine.routes = []
        #expect(machine.look() == NetworkChange(lostDefaults: [.v4]))
        machine.routes = [Machine.route(3, metric: 600)]
        #expect(machine.look() == NetworkChange(hasNewDefault: true))
    }

    @Test func aRouteThatIsNotUsedMayComeAndGo() {
        let machine = Machine()
        machine.routes.removeLast()
        #expect(machine.look() == NetworkChange())
        machine.routes.append(Machine.route(4, metric: 900))
        #expect(machine.look() == NetworkChange())
    }

    @Test func anotherMetricOfTheSameRouteIsNoChange() {
        let machine = Machine()
        machine.routes[0].metric = 50
        #expect(machine.look() == NetworkChange())
    }

    @Test func anotherGatewayIsAChange() {
        let machine = Machine()
        machine.routes[0] = Machine.route(2, metric: 100, gateway: 9)
        #expect(machine.look() == NetworkChange(lostDefaults: [.v4], hasNewDefault: true))
    }

    @Test func familiesAreApart() {
        let machine = Machine()
        machine.routes.append(Machine.route(2, metric: 1_024, family: .v6))
        #expect(machine.look() == NetworkChange(hasNewDefault: true))
        machine.routes.removeLast()
        #expect(machine.look() == NetworkChange(lostDefaults: [.v6]))
    }

    @Test func aCutCableCountsAsLost() {
        let machine = Machine()
        #expect(machine.note(.link(interface: 2, isRunning: false)))
        #expect(
            machine.look() == NetworkChange(lostDefaults: [.v4], hasNewDefault: true, lostAddresses: [Machine.cable]))
        #expect(!machine.note(.link(interface: 2, isRunning: false)), "the same again")
        #expect(machine.settle() == NetworkChange())
        _ = machine.note(.link(interface: 2, isRunning: true))
        #expect(
            machine.look() == NetworkChange(lostDefaults: [.v4], hasNewDefault: true, newAddresses: [Machine.cable]))
    }

    @Test func aRouteOverTwoLinksLivesOnOne() {
        let machine = Machine()
        machine.routes = [
            DefaultRoute(
                family: .v4,
                hops: [DefaultRoute.Hop(interface: 2, gateway: [1]), DefaultRoute.Hop(interface: 3, gateway: [2])])
        ]
        _ = machine.look()
        _ = machine.note(.link(interface: 2, isRunning: false))
        #expect(machine.look().lostDefaults == [.v4], "half of the connections went that way")
        _ = machine.note(.link(interface: 3, isRunning: false))
        #expect(!machine.look().hasNewDefault)
    }

    @Test func aBridgeThatComesAndGoesIsNothing() {
        let machine = Machine()
        let address = NetworkAddress.v4(172, 17, 0, 1)
        var told: [NetworkChange] = []
        for _ in 0..<3 {
            #expect(!machine.note(.link(interface: 9, isRunning: false)))
            #expect(!machine.note(.address(address, interface: 9, isThere: true)))
            told.append(machine.settle())
            #expect(!machine.note(.link(interface: 9, isRunning: true)))
            told.append(machine.settle())
            #expect(!machine.note(.address(address, interface: 9, isThere: false)))
            #expect(!machine.note(.linkGone(interface: 9)))
            told.append(machine.settle())
        }
        for change in told {
            for source in [Machine.cable, Machine.radio] {
                #expect(!change.cutsOff(source) && !change.opensWay(from: source))
            }
            #expect(!change.opensWay(from: nil))
        }
        #expect(told[1].newAddresses == [address])
    }

    @Test func anAddressComesAndGoes() {
        let machine = Machine()
        #expect(
            machine.note(.address(Machine.cable, interface: 2, isThere: false)),
            "IPv4 drops routes of the link without a word")
        #expect(machine.settle() == NetworkChange(lostAddresses: [Machine.cable]))
        machine.add(Machine.cable, 2)
        #expect(machine.settle() == NetworkChange(newAddresses: [Machine.cable]))
        machine.add(Machine.cable, 2)
        #expect(machine.settle() == NetworkChange(), "its lease was renewed")
    }

    @Test func anAddressOnTwoLinksIsThereWhileOneIs() {
        let machine = Machine()
        machine.add(Machine.cable, 3)
        #expect(machine.settle() == NetworkChange())
        _ = machine.note(.address(Machine.cable, interface: 2, isThere: false))
        #expect(machine.settle() == NetworkChange())
    }

    @Test func aLinkTakesItsAddressesAlong() {
        let machine = Machine()
        #expect(machine.note(.linkGone(interface: 3)))
        machine.routes.removeLast()
        #expect(machine.look() == NetworkChange(lostAddresses: [Machine.radio]))
    }

    @Test func aFlapThatIsOverIsNoChange() {
        let machine = Machine()
        for _ in 0..<100 {
            _ = machine.note(.link(interface: 2, isRunning: false))
            _ = machine.note(.link(interface: 2, isRunning: true))
        }
        #expect(machine.look() == NetworkChange())
    }

    @Test func everythingAnew() {
        let machine = Machine()
        machine.forget()
        for interface in [1, 2] as [Int32] { _ = machine.note(.link(interface: interface, isRunning: true)) }
        machine.add(Machine.cable, 2)
        machine.routes.removeLast()
        #expect(machine.look() == NetworkChange(lostAddresses: [Machine.radio]), "what was lost is found out")
    }

    @Test func whoseConnectionsAreInDoubt() throws {
        let v6 = try #require(NetworkAddress(.v6, [UInt8](repeating: 1, count: 16)))
        let local = NetworkAddress.v4(127, 0, 0, 1)
        let noRoute = NetworkChange(lostDefaults: [.v4])
        #expect(noRoute.cutsOff(Machine.cable))
        #expect(!noRoute.cutsOff(v6))
        #expect(!noRoute.cutsOff(local))
        #expect(!noRoute.opensWay(from: Machine.cable))
        let moved = NetworkChange(lostAddresses: [Machine.cable], newAddresses: [Machine.radio])
        #expect(moved.cutsOff(Machine.cable) && !moved.cutsOff(Machine.radio))
        #expect(moved.opensWay(from: Machine.radio) && !moved.opensWay(from: Machine.cable))
        #expect(NetworkChange(hasNewDefault: true).opensWay(from: nil))
    }

    @Test func loopback() {
        #expect(NetworkAddress(.v4, [127, 9, 9, 9])?.isLoopback == true)
        #expect(NetworkAddress(.v4, [128, 0, 0, 1])?.isLoopback == false)
        #expect(NetworkAddress(.v6, [UInt8](repeating: 0, count: 15) + [1])?.isLoopback == true)
        #expect(NetworkAddress(.v6, [0x7F] + [UInt8](repeating: 0, count: 15))?.isLoopback == false)
        #expect(NetworkAddress(.v6, [127, 0, 0, 1]) == nil)
    }

    @Test func whatIsKeptIsBounded() {
        var view = NetworkView()
        for number in 0..<Int32(NetworkView.linksMax + 10) {
            _ = view.note(.link(interface: number, isRunning: true))
        }
        view.beginRoutes()
        for number in 0..<UInt32(NetworkView.defaultRoutesMax + 10) {
            view.addRoute(Machine.route(Int32(number), metric: number))
        }
        view.endRoutes()
        // Whether a link counts tells whether it is known, and on a route that is.
        let last = Int32(NetworkView.defaultRoutesMax) - 1
        let isKnown = [last, last + 1].map { view.note(.link(interface: $0, isRunning: false)) }
        #expect(isKnown == [true, false])
    }
}
