/// The channels of a session by slot, by name and by reference. A slot keeps its number as long as its channel lives; slots
/// in order are the order in which channels are subscribed on a new connection.
struct ChannelTable: Sendable {
    /// A free slot keeps its last channel until it is used again.
    private var slots: [Subscription] = []
    private var isInUse: [Bool] = []
    private var freeSlots: [Int] = []
    private var byName = FewOrMany<ExactText, Int>()
    private var byReference = FewOrMany<ChannelReference, Int>()
    /// Slots that nobody wants, in the order in which they were left.
    private(set) var owed: [Int] = []

    /// Beyond this number the edge's answer for the channel that was left first is forgotten.
    static let owedMax = 1024

    /// Owed ones included.
    var count: Int { byName.count }
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

    /// The slot of this name, held by `reference` from now on unless somebody holds it already.
    mutating func hold(_ name: String, _ kind: ChannelKind, _ reference: ChannelReference) -> Int {
        guard let slot = slot(named: name) else {
            return insert(Subscription(name: name, kind: kind, reference: reference))
        }
        if !slots[slot].isWanted {
            owed.removeAll { $0 == slot }
            slots[slot].reference = reference
            byReference[reference] = slot
        }
        return slot
    }

    private mutating func insert(_ channel: Subscription) -> Int {
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

    /// Nobody wants the channel any more; what the edge was asked stays.
    mutating func owe(_ slot: Int, _ asked: Asked) {
        let channel = slots[slot]
        byReference[channel.reference] = nil
        slots[slot] = Subscription(name: channel.name, kind: channel.kind, reference: .none)
        slots[slot].admission.asked = asked
        owed.append(slot)
    }

    mutating func remove(_ slot: Int) {
        let channel = self[slot]
        byName[ExactText(channel.name)] = nil
        if channel.isWanted {
            byReference[channel.reference] = nil
        } else {
            owed.removeAll { $0 == slot }
        }
        isInUse[slot] = false
        freeSlots.append(slot)
    }
}
