import BirdRealtimeCore
import Testing

/// RFC 9110 sections 10.2.3 and 5.6.7.
@Suite struct RetryAfterTests {
    /// 1994-11-06 08:49:37 UTC, the moment of the RFC's examples.
    private static let moment: Int64 = 784_111_777

    private func waitMs(_ value: String, secondsBefore: Int64 = 0) -> Int64? {
        RetryAfter(value.utf8)?.waitMs(wallClockMs: (Self.moment - secondsBefore) * 1_000)
    }

    @Test(
        arguments: [
            ("0", 0), ("1", 1_000), ("007", 7_000), ("59", 59_000), ("60", 60_000), ("61", 60_000), ("3600", 60_000),
            ("9223372036854775807", 60_000), ("9223372036854775808", 60_000), ("99999999999999999999", 60_000),
            (String(repeating: "9", count: 10_000), 60_000), (String(repeating: "0", count: 20) + "5", 5_000),
        ] as [(String, Int64)])
    func seconds(_ value: String, _ wanted: Int64) {
        #expect(waitMs(value) == wanted)
    }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun Nov 06 08:49:37 1994",
    ])
    func datesInEachForm(_ value: String) {
        #expect(RetryAfter(value.utf8) == .moment(Self.moment))
        #expect(waitMs(value, secondsBefore: 3) == 3_000)
        #expect(waitMs(value, secondsBefore: 3_600) == 60_000)
        #expect(waitMs(value, secondsBefore: -1) == 0, "a moment that has passed")
    }

    /// Computed with another implementation.
    @Test(
        arguments: [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800), ("Sun, 28 Feb 2100 23:59:59 GMT", 4_107_542_399),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400), ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799), ("Mon, 01 Jan 0001 00:00:00 GMT", -62_135_596_800),
        ] as [(String, Int64)])
    func calendar(_ value: String, _ wanted: Int64) {
        #expect(RetryAfter(value.utf8) == .moment(wanted))
    }

    @Test(arguments: [
        "", "-1", "1.5", "+5", "5 s", "soon", "0x10", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 06-Nov 08:49:37 GMT",
        "Sun Nov  6 08:49:37 94", "Sat, 01 Jan 0000 00:00:00 GMT", "\u{0}", "1\u{0}", "99999999999999999999x",
    ])
    func others(_ value: String) {
        #expect(waitMs(value) == nil)
    }
}
