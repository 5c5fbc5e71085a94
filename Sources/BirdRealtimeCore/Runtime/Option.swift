import CBirdRealtimeABI

/// One row of the option table. Its texts are read by C, so they live for ever and end with a NUL.
package struct Option: Sendable {
    /// Headings of docs/options.md, in its order.
    package enum Group: Int32, Sendable, CaseIterable {
        case edge
        case authorization
        case tls
        case deadlines
        case reconnect
        case limits
        case delivery
        case observability
    }

    package let key: StaticString
    package let group: Group
    package let unit: StaticString
    /// As `ClientOptions.set` takes it; "": unset, and `purpose` says what holds then.
    package let defaultText: StaticString
    /// What is accepted, as it stands behind "must be"; "" where the range says it.
    package let accepts: StaticString
    /// A client that exists takes a new value too.
    package let isLive: Bool
    package let purpose: StaticString
    package let storage: Storage
    /// What about a text is not acceptable, where `accepts` leaves that open.
    let detail: (@Sendable (String) -> String)?

    package enum Storage: Sendable {
        /// `write` is false for a text that is not acceptable.
        case text(write: @Sendable (inout ClientOptions, String) -> Bool)
        case flag(write: @Sendable (inout ClientOptions, Bool) -> Void)
        case number(ClosedRange<Int64>, write: @Sendable (inout ClientOptions, Int64) -> Void)
    }

    private init(
        _ key: StaticString, _ group: Group, unit: StaticString = "", default defaultText: StaticString,
        accepts: StaticString = "", isLive: Bool, _ purpose: StaticString, _ storage: Storage,
        detail: (@Sendable (String) -> String)? = nil
    ) {
        self.key = key
        self.group = group
        self.unit = unit
        self.defaultText = defaultText
        self.accepts = accepts
        self.isLive = isLive
        self.purpose = purpose
        self.storage = storage
        self.detail = detail
    }
}

// MARK: - The kinds of rows

extension Option {
    /// A text; without control characters, which no option needs and which would end up in headers and logs.
    static func text(
        _ key: StaticString, _ group: Group, unit: StaticString = "", default defaultText: StaticString = "",
        accepts: StaticString, isLive: Bool = false, _ purpose: StaticString,
        detail: (@Sendable (String) -> String)? = nil,
        write: @escaping @Sendable (inout ClientOptions, String) -> Bool
    ) -> Option {
        Option(
            key, group, unit: unit, default: defaultText, accepts: accepts, isLive: isLive, purpose,
            .text { options, value in
                !value.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) && write(&options, value)
            }, detail: detail)
    }

    /// A text that is judged when the client is made, together with the other options.
    static func text(
        _ key: StaticString, _ group: Group, unit: StaticString = "", accepts: StaticString,
        isLive: Bool = false, _ path: any WritableKeyPath<ClientOptions, String?> & Sendable,
        _ purpose: StaticString
    ) -> Option {
        text(key, group, unit: unit, accepts: accepts, isLive: isLive, purpose) { options, value in
            options[keyPath: path] = value
            return true
        }
    }

    /// One of a few words.
    static func choice<Word: RawRepresentable<String> & SendableMetatype>(
        _ key: StaticString, _ group: Group, default defaultText: StaticString, accepts: StaticString,
        isLive: Bool = false, _ path: any WritableKeyPath<ClientOptions, Word> & Sendable,
        _ purpose: StaticString
    ) -> Option {
        text(key, group, default: defaultText, accepts: accepts, isLive: isLive, purpose) { options, value in
            guard let word = Word(rawValue: value) else { return false }
            options[keyPath: path] = word
            return true
        }
    }

    static func flag(
        _ key: StaticString, _ group: Group, default defaultText: StaticString, isLive: Bool = false,
        _ path: any WritableKeyPath<ClientOptions, Bool> & Sendable, _ purpose: StaticString
    ) -> Option {
        Option(key, group, default: defaultText, isLive: isLive, purpose, .flag { $0[keyPath: path] = $1 })
    }

    static func number<Number: FixedWidthInteger & SendableMetatype>(
        _ key: StaticString, _ group: Group, unit: StaticString, default defaultText: StaticString,
        _ range: ClosedRange<Int64>, isLive: Bool = false,
        _ path: any WritableKeyPath<ClientOptions, Number> & Sendable, _ purpose: StaticString
    ) -> Option {
        Option(
            key, group, unit: unit, default: defaultText, isLive: isLive, purpose,
            .number(range) { $0[keyPath: path] = Number(clamping: $1) })
    }

    /// A number that means something else while it is not set.
    static func number(
        _ key: StaticString, _ group: Group, unit: StaticString, _ range: ClosedRange<Int64>,
        isLive: Bool = false, _ path: any WritableKeyPath<ClientOptions, Int64?> & Sendable,
        _ purpose: StaticString
    ) -> Option {
        Option(key, group, unit: unit, default: "", isLive: isLive, purpose, .number(range) { $0[keyPath: path] = $1 })
    }

    /// A duration: at most a day.
    static func time(
        _ key: StaticString, _ group: Group, default defaultText: StaticString, isLive: Bool = false,
        _ path: any WritableKeyPath<ClientOptions, Int64> & Sendable, _ purpose: StaticString
    ) -> Option {
        number(key, group, unit: "ms", default: defaultText, day, isLive: isLive, path, purpose)
    }

    static let day: ClosedRange<Int64> = 1...86_400_000
}

// MARK: - Setting

extension Option {
    /// The option whose key begins like this one, or is not far from it; "" if there is none.
    private static func suggestion(for key: String) -> String {
        let wanted = Array(key.prefix(64).utf8)
        var nearest: (key: String, distance: Int)?
        for option in table {
            let known = option.key.withUTF8Buffer { Array($0) }
            let distance = distance(wanted, known)
            if distance <= max(2, known.count / 4), distance < nearest?.distance ?? .max {
                nearest = (String(decoding: known, as: UTF8.self), distance)
            }
        }
        return nearest.map { " Did you mean \"\($0.key)\"?" } ?? ""
    }

    /// Bytes to insert, remove or replace (Levenshtein).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var row = Array(0...right.count)
        for (i, one) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, other) in right.enumerated() {
                let changed = diagonal + (one == other ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(changed, row[j] + 1, row[j + 1] + 1)
            }
        }
        return row[right.count]
    }

    static func named(_ key: String) throws(Fault) -> Option {
        guard let row = table.first(where: { $0.key.withUTF8Buffer { $0.elementsEqual(key.utf8) } }) else {
            throw Fault(
                BIRD_ERR_OPTION, .argument, field: String(key.prefix(64)),
                "There is no option \"\(key.prefix(64))\".\(suggestion(for: key))")
        }
        return row
    }

    func set(_ options: inout ClientOptions, _ value: String) throws(Fault) {
        switch storage {
        case .text(let write):
            guard write(&options, value) else {
                throw unacceptable("must be \(accepts)\(detail.map { "; \($0(value))" } ?? "")")
            }
        case .flag(let write):
            switch value {
            case "1", "true": write(&options, true)
            case "0", "false": write(&options, false)
            default: throw unacceptable("must be 1, 0, true or false")
            }
        case .number:
            guard let number = Int64(value) else { throw unacceptable("must be a whole number") }
            try set(&options, number)
        }
    }

    func set(_ options: inout ClientOptions, _ value: Int64) throws(Fault) {
        switch storage {
        case .text: throw unacceptable("is text, not a number")
        case .flag(let write):
            guard value == 0 || value == 1 else { throw unacceptable("must be 0 or 1") }
            write(&options, value == 1)
        case .number(let range, let write):
            guard range.contains(value) else {
                throw unacceptable("must be from \(range.lowerBound) to \(range.upperBound), not \(value)")
            }
            write(&options, value)
        }
    }

    private func unacceptable(_ what: String) -> Fault {
        Fault(BIRD_ERR_VALUE, .argument, field: "\(key)", "Option \(key) \(what).")
    }
}
