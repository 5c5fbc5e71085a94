/// How long to wait before an attempt that follows a failed one (option reconnect).
package enum ReconnectPolicy: String, CaseIterable, Sendable {
    /// Uniform between 0 and a window that doubles: many clients that lose one edge do not come back in step.
    case jitter
    /// Always the same.
    case fixed
    /// So many attempts at one distance, then so many at another; after the last stage the schedule begins again.
    case staged
}

/// A schedule of the policy `staged`, written "5x3000,5x9000": five attempts 3 s apart, then five 9 s apart.
package struct ReconnectStages: Equatable, Sendable {
    struct Stage: Equatable, Sendable {
        var attempts: Int
        var delayMs: Int64
    }

    /// Why a text is no schedule.
    struct Problem: Error {
        var text: String
    }

    static let stagesMax = 16
    /// In all stages together.
    static let attemptsMax = 1_000
    static let delayMsRange: ClosedRange<Int64> = 1...86_400_000

    package static let initial = ReconnectStages([(5, 3_000), (5, 9_000), (5, 15_000)])

    let stages: [Stage]

    private init(_ stages: [(attempts: Int, delayMs: Int64)]) {
        self.stages = stages.map { Stage(attempts: $0.attempts, delayMs: $0.delayMs) }
    }

    init(_ text: String) throws(Problem) {
        var stages: [Stage] = []
        for part in text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            guard stages.count < Self.stagesMax else {
                throw Problem(text: "it has more than \(Self.stagesMax) stages")
            }
            stages.append(try Self.stage(part, "stage \(stages.count + 1)"))
        }
        let attempts = stages.reduce(0) { $0 + $1.attempts }
        guard attempts <= Self.attemptsMax else {
            throw Problem(text: "its stages have \(attempts) attempts, more than \(Self.attemptsMax)")
        }
        self.stages = stages
    }

    /// What is wrong with a text that is no schedule.
    @Sendable static func problem(_ text: String) -> String {
        do throws(Problem) {
            _ = try ReconnectStages(text)
            return ""
        } catch {
            return error.text
        }
    }

    private static func stage(_ part: Substring.UTF8View, _ name: String) throws(Problem) -> Stage {
        let numbers = part.split(separator: UInt8(ascii: "x"), omittingEmptySubsequences: false)
        guard numbers.count == 2, let attempts = Int(String(Substring(numbers[0]))),
            let delayMs = Int64(String(Substring(numbers[1])))
        else { throw Problem(text: "\(name) is \"\(Substring(part))\"") }
        guard 1...attemptsMax ~= attempts else {
            throw Problem(text: "\(name) has \(attempts) attempts, not 1 to \(attemptsMax)")
        }
        guard delayMsRange ~= delayMs else {
            throw Problem(
                text: "\(name) waits \(delayMs) ms, not \(delayMsRange.lowerBound) to \(delayMsRange.upperBound)")
        }
        return Stage(attempts: attempts, delayMs: delayMs)
    }

    /// `index`: attempts that came before this one.
    func delayMs(_ index: Int) -> Int64 {
        var index = index % stages.reduce(0) { $0 + $1.attempts }
        for stage in stages {
            if index < stage.attempts { return stage.delayMs }
            index -= stage.attempts
        }
        return Self.delayMsRange.upperBound
    }

    package var text: String {
        stages.map { "\($0.attempts)x\($0.delayMs)" }.joined(separator: ",")
    }
}
