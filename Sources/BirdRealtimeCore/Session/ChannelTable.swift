/// The channels of a session by slot, by name and by reference. A slot keeps its number as long as its channel lives; slots
/// in order are the order in which channels are subscribed on a new connection.
struct ChannelTable: Sendable {
    /// A free slot keeps its last channel until it is used again.
    private var slots: [Subscription] = []
    private var isInUse: [Bool] = []
    private var freeSlots: [Int] = []
    private var byName = FewOrMany<ExactText, Int>()
    private var byReference = FewOrMany<ChannelReference, Int>()

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
        byName[ExactText(name)]
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
        byName[ExactText(channel.name)] = slot
        byReference[channel.reference] = slot
        return slot
    }

    mutating func remove(_ slot: Int) {
        let channel = self[slot]
        byName[ExactText(channel.name)] = nil
        byReference[channel.reference] = nil
        isInUse[slot] = false
        freeSlots.append(slot)
    }
}
