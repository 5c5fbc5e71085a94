import BirdRealtimeCore
public import CBirdRealtimeABI
import Synchronization

/// What a `bird_options` names.
final class OptionsBox: Sendable {
    let options = Mutex(ClientOptions())
}

private func options(_ handle: OpaquePointer?) throws(Fault) -> OptionsBox {
    try object(handle, .options, as: OptionsBox.self)
}

/// The options to create a client from.
func optionsValue(_ handle: OpaquePointer?) throws(Fault) -> ClientOptions {
    try options(handle).options.withLock { $0 }
}

func changeOptions(
    _ handle: OpaquePointer?, _ error: UnsafeMutablePointer<OpaquePointer?>?,
    _ body: (inout ClientOptions) throws(Fault) -> Void
) -> bird_status {
    attempt(error) { () throws(Fault) in
        let box = try options(handle)
        try box.options.withLock { (value) throws(Fault) in try body(&value) }
    }
}

func setLogHandler(_ handle: OpaquePointer?, _ handler: LogHandler) throws(Fault) {
    let replaced = try options(handle).options.withLock { value -> LogHandler? in
        defer { value.log.handler = handler }
        return value.log.handler
    }
    // Its destructor may run now, and call the library.
    withExtendedLifetime(replaced) {}
}

@c @implementation
public func bird_options_create(_ options: UnsafeMutablePointer<OpaquePointer?>!) -> bird_status {
    attempt { () throws(Fault) in
        let target = try out(options, "options")
        target.pointee = OpaquePointer(bitPattern: Handles.register(OptionsBox(), as: .options))
    }
}

@c @implementation
public func bird_options_destroy(_ options: OpaquePointer!) {
    Handles.release(UInt(bitPattern: options), .options)
}

@c @implementation
public func bird_options_set(
    _ options: OpaquePointer!, _ key: UnsafePointer<CChar>!, _ value: UnsafePointer<CChar>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    changeOptions(options, error) { (target) throws(Fault) in
        let key = try text(key, "key", malformed: BIRD_ERR_OPTION)
        guard let value = try optionalText(value, key, malformed: BIRD_ERR_VALUE) else { throw missing("value") }
        try target.set(key, value)
    }
}

@c @implementation
public func bird_options_set_int(
    _ options: OpaquePointer!, _ key: UnsafePointer<CChar>!, _ value: Int64,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    changeOptions(options, error) { (target) throws(Fault) in
        try target.set(text(key, "key", malformed: BIRD_ERR_OPTION), value)
    }
}

@c @implementation
public func bird_options_set_auth_header(
    _ options: OpaquePointer!, _ name: UnsafePointer<CChar>!, _ value: UnsafePointer<CChar>!,
    _ error: UnsafeMutablePointer<OpaquePointer?>!
) -> bird_status {
    changeOptions(options, error) { (target) throws(Fault) in
        try target.setAuthHeader(
            text(name, "name", malformed: BIRD_ERR_VALUE), text(value, "value", malformed: BIRD_ERR_VALUE))
    }
}

@c @implementation
public func bird_options_set_queue(_ options: OpaquePointer!, _ queue: OpaquePointer!) -> bird_status {
    changeOptions(options, nil) { (target) throws(Fault) in
        target.queue = try CBirdRealtime.queue(queue)
        target.delivery = .queue
    }
}

@c @implementation
public func bird_options_set_tag(_ options: OpaquePointer!, _ tag: UInt64) -> bird_status {
    changeOptions(options, nil) { (target) throws(Fault) in target.tag = tag }
}

@c @implementation
public func bird_options_count() -> Int { Option.table.count }

@c @implementation
public func bird_options_describe(_ index: Int, _ option: UnsafeMutablePointer<bird_option>!) -> bird_status {
    attempt { () throws(Fault) in
        let target = try out(option, "option")
        guard Option.table.indices.contains(index) else {
            throw Fault(BIRD_ERR_ARGUMENT, .argument, field: "index", "There are \(Option.table.count) options.")
        }
        try fill(target, bird_option(Option.table[index]), Int(target.pointee.struct_size), "bird_option")
    }
}

extension bird_option {
    fileprivate init(_ row: Option) {
        self.init()
        key = constant(row.key)
        unit = constant(row.unit)
        default_text = constant(row.defaultText)
        accepts = constant(row.accepts)
        group = row.group.rawValue
        is_live = row.isLive ? 1 : 0
        purpose = constant(row.purpose)
        switch row.storage {
        case .text: type = BIRD_OPTION_TEXT
        case .flag:
            type = BIRD_OPTION_BOOL
            maximum = 1
        case .number(let range, _):
            type = BIRD_OPTION_INT
            minimum = range.lowerBound
            maximum = range.upperBound
        }
    }
}
