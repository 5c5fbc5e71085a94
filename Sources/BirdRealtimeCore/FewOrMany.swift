/// A dictionary that mostly has a handful of entries, in each of thousands of clients: these stand in an array, which takes half of the
/// memory. With more than that they all move to a hash table.
struct FewOrMany<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private static var fewMax: Int { 8 }

    private var few: [(key: Key, value: Value)] = []
    /// Empty unless there are more than few.
    private var many: [Key: Value] = [:]

    var isEmpty: Bool { few.isEmpty && many.isEmpty }
    var count: Int { few.count + many.count }
    var keys: [Key] { few.map { $0.key } + many.keys }
    var values: [Value] { few.map { $0.value } + many.values }

    /// The key of the only entry whose value is such; nil if there is none, or more than one.
    func onlyKey(where isSuch: (Value) -> Bool) -> Key? {
        var only: Key?
        for entry in few where isSuch(entry.value) {
            guard only == nil else { return nil }
            only = entry.key
        }
        for entry in many where isSuch(entry.value) {
            guard only == nil else { return nil }
            only = entry.key
        }
        return only
    }

    subscript(key: Key) -> Value? {
        get { many.isEmpty ? few.first { $0.key == key }?.value : many[key] }
        set {
            guard many.isEmpty else {
                many[key] = newValue
                return
            }
            let position = few.firstIndex { $0.key == key }
            switch (position, newValue) {
            case (let position?, let value?): few[position].value = value
            case (let position?, nil):
                few.remove(at: position)
                if few.isEmpty { few = [] }
            case (nil, let value?) where few.count < Self.fewMax: few.append((key, value))
            case (nil, let value?):
                for entry in few { many[entry.key] = entry.value }
                many[key] = value
                few = []
            case (nil, nil): break
            }
        }
    }
}
