/// The questions to the authorizer that are open, and who waits for his turn to ask.
struct Authorizations: Sendable {
    struct Waiter {
        var applicant: Applicant
        var ticket: UInt64
    }

    private let inFlightMax: Int
    private var inFlight: [QuestionID: Applicant] = [:]
    /// In order of arrival from `head` on; entries with an old ticket are void.
    private(set) var waiters: [Waiter] = []
    private var head = 0

    init(inFlightMax: Int) {
        self.inFlightMax = max(1, inFlightMax)
    }

    var hasRoom: Bool { inFlight.count < inFlightMax }

    mutating func enqueue(_ applicant: Applicant, ticket: UInt64) {
        waiters.append(Waiter(applicant: applicant, ticket: ticket))
    }

    /// The next waiter; the caller checks that the ticket is still good.
    mutating func dequeue() -> Waiter? {
        guard head < waiters.count else {
            waiters.removeAll(keepingCapacity: true)
            head = 0
            return nil
        }
        head += 1
        return waiters[head - 1]
    }

    /// Drops void entries once they are the larger part; `applicants` is how many can wait at all.
    mutating func compact(applicants: Int, _ isValid: (Waiter) -> Bool) {
        guard waiters.count > 2 * applicants + 64 else { return }
        waiters = waiters[head...].filter(isValid)
        head = 0
    }

    mutating func begin(_ id: QuestionID, _ applicant: Applicant) {
        inFlight[id] = applicant
    }

    /// Whose question it was; nil if it is not open any more.
    mutating func end(_ id: QuestionID) -> Applicant? {
        inFlight.removeValue(forKey: id)
    }
}
