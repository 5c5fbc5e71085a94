/// Bytes of a netlink message, valid as long as the datagram: numbers in the machine's order, nil for what is not there.
struct NetlinkBytes: RandomAccessCollection {
    private let bytes: UnsafeRawBufferPointer

    static var none: NetlinkBytes { NetlinkBytes(UnsafeRawBufferPointer(start: nil, count: 0)) }

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    var startIndex: Int { 0 }
    var endIndex: Int { bytes.count }
    subscript(position: Int) -> UInt8 { bytes[position] }

    func u8(_ offset: Int) -> UInt8? { load(offset) }
    func u16(_ offset: Int) -> UInt16? { load(offset) }
    func u32(_ offset: Int) -> UInt32? { load(offset) }
    func i32(_ offset: Int) -> Int32? { load(offset) }

    private func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Number? {
        guard offset >= 0, offset <= bytes.count - MemoryLayout<Number>.size else { return nil }
        return bytes.loadUnaligned(fromByteOffset: offset, as: Number.self)
    }

    func part(_ offset: Int, _ count: Int) -> NetlinkBytes? {
        guard offset >= 0, count >= 0, offset <= bytes.count - count else { return nil }
        return NetlinkBytes(UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)]))
    }

    func from(_ offset: Int) -> NetlinkBytes? { part(offset, bytes.count - offset) }

    /// Everything begins at a multiple of 4.
    static func aligned(_ count: Int) -> Int { (count + 3) & ~3 }

    /// Ends at the first attribute that does not fit.
    func forEachAttribute(_ take: (_ type: UInt16, _ value: NetlinkBytes) -> Void) {
        var rest = self
        while let length = rest.u16(0), let type = rest.u16(2), length >= 4, let value = rest.part(4, Int(length) - 4) {
            // The two highest bits say how the value is written.
            take(type & 0x3FFF, value)
            rest = rest.from(Self.aligned(Int(length))) ?? .none
        }
    }
}
