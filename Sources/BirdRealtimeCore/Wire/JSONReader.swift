/// The grammar of RFC 8259 over bytes that it neither owns nor changes. Nothing here allocates or recurses.
///
/// UTF-8 is not checked here: `sawNonASCII` says whether there is anything to check.
struct JSONReader {
    static let depthMax = 512

    let bytes: UnsafePointer<UInt8>
    let count: Int
    var position = 0
    var sawNonASCII = false

    /// nil when there are no bytes, which is no JSON text.
    @inline(__always)
    init?(_ buffer: UnsafeRawBufferPointer) {
        guard let base = buffer.baseAddress, buffer.count > 0 else { return nil }
        bytes = base.assumingMemoryBound(to: UInt8.self)
        count = buffer.count
    }

    @inline(__always)
    var isAtEnd: Bool { position >= count }

    /// The byte at `position`; 0, which no rule of the grammar accepts, at the end.
    @inline(__always)
    var current: UInt8 { position < count ? bytes[position] : 0 }

    @inline(__always)
    mutating func skipWhitespace() {
        while position < count, Self.isWhitespace(bytes[position]) {
            position &+= 1
        }
    }

    @inline(__always)
    static func isWhitespace(_ byte: UInt8) -> Bool {
        byte <= 0x20 && (byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09)
    }

    @inline(__always)
    mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position &+= 1
        return true
    }

    /// A string; `position` is at its opening quote and moves behind the closing one.
    @inline(__always)
    mutating func string() -> Span? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        let start = position
        if count &- start >= ByteBlock.byteCount {
            // Names and short texts end within the first block, without escapes.
            let block = ByteBlock(bytes + start)
            let special = block.specialLanes.highBits
            let length = special.trailingZeroBitCount
            if special != 0, bytes[start &+ length] == UInt8(ascii: "\"") {
                position = start &+ length &+ 1
                sawNonASCII = sawNonASCII || block.highBits & (special &- 1) & ~special != 0
                return Span(offset: start, length: length, isEscaped: false)
            }
        }
        return longString()
    }

    /// `position` is behind the opening quote.
    @inline(never)
    private mutating func longString() -> Span? {
        let scan = JSONStringScan(bytes, count: count, from: position)
        guard let span = scan.span else { return nil }
        position = span.offset &+ span.length &+ 1
        sawNonASCII = sawNonASCII || scan.sawNonASCII
        return span
    }

    /// Any value, skipped; `depth` containers are open around it.
    mutating func skipValue(depth outer: Int) -> Bool {
        var open = ContainerStack()
        while true {
            // A value is due.
            skipWhitespace()
            switch current {
            case UInt8(ascii: "\""):
                guard string() != nil else { return false }
            case UInt8(ascii: "{"):
                position &+= 1
                guard outer &+ open.depth < Self.depthMax else { return false }
                skipWhitespace()
                if !take(UInt8(ascii: "}")) {
                    open.push(isObject: true)
                    guard skipKey() else { return false }
                    continue
                }
            case UInt8(ascii: "["):
                position &+= 1
                guard outer &+ open.depth < Self.depthMax else { return false }
                skipWhitespace()
                if !take(UInt8(ascii: "]")) {
                    open.push(isObject: false)
                    continue
                }
            case UInt8(ascii: "t"):
                guard literal("true") else { return false }
            case UInt8(ascii: "f"):
                guard literal("false") else { return false }
            case UInt8(ascii: "n"):
                guard literal("null") else { return false }
            default:
                guard number() else { return false }
            }
            // A value has ended, and with it perhaps containers around it.
            while true {
                guard open.depth > 0 else { return true }
                skipWhitespace()
                if take(UInt8(ascii: ",")) {
                    guard !open.isObject || skipKey() else { return false }
                    break
                }
                guard take(open.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { return false }
                open.pop()
            }
        }
    }

    /// A key and its colon, whitespace before either included.
    @inline(__always)
    private mutating func skipKey() -> Bool {
        skipWhitespace()
        guard string() != nil else { return false }
        skipWhitespace()
        return take(UInt8(ascii: ":"))
    }

    @inline(__always)
    private mutating func literal(_ text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        guard count &- position >= length else { return false }
        for index in 0..<length where bytes[position &+ index] != text.utf8Start[index] {
            return false
        }
        position &+= length
        return true
    }

    private mutating func number() -> Bool {
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) {
            guard digits() else { return false }
        }
        if take(UInt8(ascii: ".")) {
            guard digits() else { return false }
        }
        if current | 0x20 == UInt8(ascii: "e") {
            position &+= 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") {
                position &+= 1
            }
            guard digits() else { return false }
        }
        return true
    }

    /// At least one digit.
    @inline(__always)
    private mutating func digits() -> Bool {
        let start = position
        while current &- UInt8(ascii: "0") < 10 {
            position &+= 1
        }
        return position > start
    }
}

/// Which of the open containers are objects: a stack of bits, so that hostile nesting costs no memory.
private struct ContainerStack {
    private(set) var depth = 0
    private var words = InlineArray<8, UInt64>(repeating: 0)
    /// The innermost container.
    private(set) var isObject = false

    @inline(__always)
    mutating func push(isObject newIsObject: Bool) {
        let bit: UInt64 = 1 &<< UInt64(truncatingIfNeeded: depth)
        let word = (depth &>> 6) & 7
        if newIsObject {
            words[word] |= bit
        } else {
            words[word] &= ~bit
        }
        depth &+= 1
        isObject = newIsObject
    }

    @inline(__always)
    mutating func pop() {
        depth &-= 1
        guard depth > 0 else { return }
        let top = depth &- 1
        isObject = (words[(top &>> 6) & 7] &>> UInt64(truncatingIfNeeded: top)) & 1 == 1
    }
}
