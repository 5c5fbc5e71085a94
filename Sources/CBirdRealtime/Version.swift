public import CBirdRealtimeABI

@c @implementation
public func bird_version_number() -> Int32 { BIRD_VERSION_NUMBER }

@c @implementation
public func bird_version_string() -> UnsafePointer<CChar>! { constant("0.1.0") }

@c @implementation
public func bird_version_check(_ header_number: Int32) -> bird_status {
    // Below 1.0 a minor version may change anything (docs: ABI); a library older than the header lacks what the header declares.
    let isSameLine = header_number / 1_000 == BIRD_VERSION_NUMBER / 1_000
    return isSameLine && header_number <= BIRD_VERSION_NUMBER ? BIRD_OK : BIRD_ERR_UNSUPPORTED
}
