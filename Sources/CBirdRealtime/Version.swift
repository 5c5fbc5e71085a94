import CBirdRealtimeABI

@c @implementation
public func bird_version_number() -> Int32 { BIRD_VERSION_NUMBER }

@c @implementation
public func bird_version_string() -> UnsafePointer<CChar>! { constant("0.1.0") }
