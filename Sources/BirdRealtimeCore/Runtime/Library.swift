import CBirdRealtimeABI

package enum Library {
    package static let version = "\(BIRD_VERSION_MAJOR).\(BIRD_VERSION_MINOR).\(BIRD_VERSION_PATCH)"
    static let userAgent = "bird-realtime/\(version)"
}
