// swift-tools-version: 6.2
import PackageDescription

// The pure part of the core and the simulation of it, without the rest of the library, as run.py has copied them.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
    name: "mutants",
    targets: [
        .systemLibrary(name: "CBirdRealtimeABI", path: "include"),
        .systemLibrary(name: "CSodium", pkgConfig: "libsodium"),
        .target(name: "BirdRealtimeCore", dependencies: ["CBirdRealtimeABI", "CSodium"], swiftSettings: strict),
        .executableTarget(
            name: "Simulation", dependencies: ["BirdRealtimeCore", "CBirdRealtimeABI", "CSodium"],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
