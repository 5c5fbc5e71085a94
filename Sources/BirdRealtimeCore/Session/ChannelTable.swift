/// The channels of a session by slot, by name and by reference. A slot keeps its number as long as its channel lives; slots
/// in order are the order in which channels are subscribed on a new connection.
struct ChannelTable: Sendable {
    /// A free slot keeps its last channel until it is used again.
    private var slots: [Subscription] = []
    private var isInUse: [Bool] = []
    private var freeSlots: [Int] = []
    private var byName: NameTable
    private var byReference: [ChannelReference: Int] = [:]

    init(seed: UInt64) {
        byName = NameTable(seed: seed)
    }

    var count: Int { byReference.count }
    /// Every slot, free ones included.
    var allSlots: Range<Int> { slots.indices }

    func isUsed(_ slot: Int) -> Bool {
        isInUse.indices.contains(slot) && isInUse[slot]
    }

    /// The slot must be in use.
    subscript(_ slot: Int) -> Subscription {
        get { slots[slot] }
        _modify { yield &slots[slot] }
    }

    func slot(named name: String) -> Int? {
        let value = byName.value(of: name)
        return value == 0 ? nil : Int(value) - 1
    }

    func slot(of reference: ChannelReference) -> Int? {
        byReference[reference]
    }

    mutating func insert(_ channel: Subscription) -> Int {
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
            slots[slot] = channel
            isInUse[slot] = true
        } else {
            slot = slots.count
            slots.append(channel)
            isInUse.append(true)
        }
        byName.insert(channel.name, UInt64(slot) + 1)
        byReference[channel.reference] = slot
        return slot
    }

    mutating func remove(_ slot: Int) {
        let channel = self[slot]
        byName.remove(channel.name)
        byReference[channel.reference] = nil
        isInUse[slot] = false
        freeSlots.append(slot)
    }
}
