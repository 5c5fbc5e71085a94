import BirdRealtimeCore
import CBirdRealtimeABI
import Glibc

// What every export needs: handles to objects, C text to Swift text, faults to statuses. Exports validate, convert and forward; no
// trap is reachable from caller input.

/// Longer names and option values are refused before they are copied.
let textBytesMax = 65_536

/// Runs the body; a fault becomes the status, and the error object if the caller wants one.
func attempt(_ error: UnsafeMutablePointer<OpaquePointer?>?, _ body: () throws(Fault) -> Void) -> bird_status {
    error?.pointee = nil
    do throws(Fault) {
        if LogHandler.isRunning { throw LogHandler.insideFault }
        try body()
        return BIRD_OK
    } catch let fault {
        if let error {
            error.pointee = OpaquePointer(Unmanaged.passRetained(ErrorObject(fault)).toOpaque())
        }
        return fault.status
    }
}

func attempt(_ body: () throws(Fault) -> Void) -> bird_status { attempt(nil, body) }

func object<T: AnyObject>(_ handle: OpaquePointer?, _ kind: HandleKind, as type: T.Type) throws(Fault) -> T {
    switch Handles.lookup(UInt(bitPattern: handle), kind) {
    case .object(let object):
        if let typed = object as? T { return typed }
    case .inherited:
        throw Fault(
            BIRD_ERR_FORKED, .argument, field: "\(kind)",
            "The \(kind) belongs to the parent process; create a new one here.")
    case .invalid: break
    }
    throw Fault(BIRD_ERR_HANDLE, .argument, field: "\(kind)", "This is no \(kind) handle, or no longer one.")
}

/// A client that is open; only destroy takes one that was closed.
func client(_ handle: OpaquePointer?) throws(Fault) -> Client {
    let client = try object(handle, .client, as: Client.self)
    guard !client.isClosed else { throw Client.closedFault }
    return client
}

/// A channel of an open client; only release takes another.
func channel(_ handle: OpaquePointer?) throws(Fault) -> Channel {
    let channel = try object(handle, .channel, as: Channel.self)
    guard !channel.client.isClosed else { throw Client.closedFault }
    return channel
}

func queue(_ handle: OpaquePointer?) throws(Fault) -> RecordQueue { try object(handle, .queue, as: RecordQueue.self) }

/// A NUL-terminated text; NULL is a bad argument, too long or not UTF-8 is `malformed`.
func text(
    _ pointer: UnsafePointer<CChar>?, _ argument: String, malformed status: Int32 = BIRD_ERR_ARGUMENT
) throws(Fault) -> String {
    guard let text = try optionalText(pointer, argument, malformed: status) else { throw missing(argument) }
    return text
}

func optionalText(
    _ pointer: UnsafePointer<CChar>?, _ argument: String, malformed status: Int32 = BIRD_ERR_ARGUMENT
) throws(Fault) -> String? {
    guard let bytes = try optionalBytes(pointer, argument, malformed: status) else { return nil }
    guard UTF8Validator.isValid(bytes) else {
        throw Fault(status, .argument, field: argument, "Argument \(argument) is not valid UTF-8.")
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// The bytes before the NUL.
func optionalBytes(
    _ pointer: UnsafePointer<CChar>?, _ argument: String, malformed status: Int32 = BIRD_ERR_ARGUMENT
) throws(Fault) -> UnsafeRawBufferPointer? {
    guard let pointer else { return nil }
    let length = strnlen(pointer, textBytesMax + 1)
    guard length <= textBytesMax else {
        throw Fault(status, .argument, field: argument, "Argument \(argument) has more than \(textBytesMax) bytes.")
    }
    return UnsafeRawBufferPointer(start: pointer, count: length)
}

/// A payload of a given length, or of BIRD_NUL. nil for NULL.
func payload(_ data: UnsafeRawPointer?, _ length: Int, limit: Int, _ argument: String) throws(Fault)
    -> UnsafeRawBufferPointer?
{
    guard let data else {
        guard length == 0 || length == -1 else { throw missing(argument) }
        return nil
    }
    // SIZE_MAX arrives as -1; a length that does not fit into a signed number is larger than every limit.
    if length >= 0 { return UnsafeRawBufferPointer(start: data, count: length) }
    guard length == -1 else {
        throw Fault(BIRD_ERR_SIZE, .argument, field: argument, "Argument \(argument) is larger than memory.")
    }
    return UnsafeRawBufferPointer(start: data, count: strnlen(data.assumingMemoryBound(to: CChar.self), limit + 1))
}

func missing(_ argument: String) -> Fault {
    Fault(BIRD_ERR_ARGUMENT, .argument, field: argument, "Argument \(argument) must not be NULL.")
}

/// Where a result goes.
func out<T>(_ pointer: UnsafeMutablePointer<T>?, _ argument: String) throws(Fault) -> UnsafeMutablePointer<T> {
    guard let pointer else { throw missing(argument) }
    return pointer
}

/// The copy-out convention of the header.
func copyOut(
    _ text: String, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ length: UnsafeMutablePointer<Int>?
) throws(Fault) {
    let bytes = Array(text.utf8)
    length?.pointee = bytes.count
    if buffer == nil, size != 0 { throw missing("buffer") }
    // Sizes beyond the signed range are as good as unlimited.
    guard let buffer, size < 0 || size > bytes.count else {
        throw Fault(
            BIRD_ERR_SPACE, .argument, field: "buffer", "The buffer needs \(bytes.count + 1) bytes.", isRetriable: true)
    }
    for (position, byte) in bytes.enumerated() { buffer[position] = CChar(bitPattern: byte) }
    buffer[bytes.count] = 0
}

/// A C string that lives for ever.
func constant(_ text: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}

/// Fills the caller's struct, whose first field is its size. An older program's is shorter: only what it has room for is written.
func fill<T>(_ target: UnsafeMutablePointer<T>, _ value: T, _ size: Int, _ name: String) throws(Fault) {
    guard size >= 16 else {
        throw Fault(BIRD_ERR_ARGUMENT, .argument, field: "struct_size", "Set struct_size to sizeof(\(name)).")
    }
    withUnsafeBytes(of: value) { source in
        for offset in MemoryLayout<UInt32>.size..<min(size, source.count) {
            UnsafeMutableRawPointer(target).storeBytes(of: source[offset], toByteOffset: offset, as: UInt8.self)
        }
    }
}
