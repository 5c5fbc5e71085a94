import Testing

@testable import BirdRealtimeCore

@Suite struct ReconnectStagesTests {
    @Test(
        "a schedule goes on from stage to stage and begins again",
        arguments: [
            ("5x3000,5x9000,5x15000", [3_000, 9_000, 15_000].flatMap { [Int64](repeating: $0, count: 5) }),
            ("1x1", [1]), ("2x7,1x86400000", [7, 7, 86_400_000]), ("1000x5", [Int64](repeating: 5, count: 1_000)),
        ] as [(String, [Int64])])
    func schedule(text: String, cycle: [Int64]) throws {
        let stages = try ReconnectStages(text)
        for round in 0..<3 {
            #expect(cycle.indices.map { stages.delayMs(round * cycle.count + $0) } == cycle)
        }
        #expect(stages.text == text)
    }

    @Test func theFirstScheduleIsTheSeeds() throws {
        #expect(try ReconnectStages("5x3000,5x9000,5x15000") == .initial)
        #expect((0..<15).reduce(0) { $0 + ReconnectStages.initial.delayMs($1) } == 135_000)
    }

    @Test(
        "what is wrong is said, and where",
        arguments: [
            ("", "stage 1 is \"\""), ("5x3000,", "stage 2 is \"\""), ("5x3000,5y9000", "stage 2 is \"5y9000\""),
            ("5", "stage 1 is \"5\""), ("x", "stage 1 is \"x\""), ("5x", "stage 1 is \"5x\""),
            ("x5", "stage 1 is \"x5\""),
            ("5x3x1", "stage 1 is \"5x3x1\""), (" 5x3000", "stage 1 is \" 5x3000\""), ("5x3s", "stage 1 is \"5x3s\""),
            ("5X3000", "stage 1 is \"5X3000\""), ("99999999999999999999x1", "stage 1 is"),
            ("0x3000", "stage 1 has 0 attempts, not 1 to 1000"), ("1x1,-2x3000", "stage 2 has -2 attempts"),
            ("1001x5", "stage 1 has 1001 attempts"),
            ("1x1,1x0", "stage 2 waits 0 ms, not 1 to 86400000"), ("1x86400001", "stage 1 waits 86400001 ms"),
            ("600x1,600x2", "have 1200 attempts, more than 1000"),
            ([String](repeating: "1x1", count: 17).joined(separator: ","), "more than 16 stages"),
        ])
    func problems(text: String, expected: String) {
        let problem = #expect(throws: ReconnectStages.Problem.self) { try ReconnectStages(text) }
        #expect(problem?.text.contains(expected) == true, "\(problem?.text ?? "")")
    }

    @Test func theLongestIsGood() throws {
        let stages = try ReconnectStages([String](repeating: "62x1", count: 16).joined(separator: ","))
        #expect(stages.delayMs(16 * 62 - 1) == 1)
    }
}
