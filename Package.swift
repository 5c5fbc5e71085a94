// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
    name: "bird-realtime",
    products: [
        .library(name: "BirdRealtime", targets: ["BirdRealtime"]),
        .library(name: "birdrealtime", type: .dynamic, targets: ["CBirdRealtime"]),
    ],
    targets: [
        // include/birdrealtime.h: the exports and the record layouts come from it.
        .systemLibrary(name: "CBirdRealtimeABI", path: "include"),
        .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
        .target(name: "CCurl", dependencies: ["CLinux"], linkerSettings: [.linkedLibrary("curl")]),
        .target(name: "CLinux"),
        .target(
            name: "BirdRealtimeCore", dependencies: ["CBirdRealtimeABI", "CCurl", "CLinux", "CSodium"],
            swiftSettings: strict),
        .target(
            name: "CBirdRealtime", dependencies: ["BirdRealtimeCore", "CBirdRealtimeABI"], swiftSettings: strict),
        .target(
            name: "BirdRealtime", dependencies: ["BirdRealtimeCore", "CBirdRealtimeABI"], swiftSettings: strict),
        .testTarget(
            name: "BirdRealtimeCoreTests",
            dependencies: ["BirdRealtimeCore", "CBirdRealtimeABI", "CSodium", "FuzzTargets"], swiftSettings: strict),
        .target(
            name: "FuzzTargets", dependencies: ["BirdRealtimeCore", "CBirdRealtime", "CBirdRealtimeABI"],
            path: "Tests/Fuzz/Targets", swiftSettings: strict),
        // Built by scripts/fuzz with libFuzzer.
        .executableTarget(
            name: "fuzz", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Program", swiftSettings: strict),
        .executableTarget(
            name: "swift-example", dependencies: ["BirdRealtime"], path: "examples/swift", swiftSettings: strict),
        // Driven by Tests/integration.
        .executableTarget(
            name: "swift-script", dependencies: ["BirdRealtime"], path: "Tests/SwiftScript", swiftSettings: strict),
        .executableTarget(
            name: "swift-client", dependencies: ["BirdRealtime"], path: "Tests/SwiftClient", swiftSettings: strict),
        .executableTarget(
            name: "swift-usage", dependencies: ["BirdRealtime"], path: "Tests/SwiftUsage", swiftSettings: strict),
        // Driven by Benchmarks/run.py.
        .executableTarget(
            name: "swift-bench", dependencies: ["BirdRealtime"], path: "Benchmarks/client_swift",
            swiftSettings: strict),
        // Driven by scripts/autobahn.
        .executableTarget(
            name: "autobahn-client", dependencies: ["BirdRealtimeCore"], path: "Tests/Autobahn", swiftSettings: strict),
        // Driven by Tests/integration/conformance.py.
        .executableTarget(
            name: "conformance", dependencies: ["BirdRealtimeCore"], path: "Tests/Conformance", swiftSettings: strict),
        .testTarget(
            name: "BirdRealtimeTests", dependencies: ["BirdRealtime", "CBirdRealtimeABI", "FuzzTargets"],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
