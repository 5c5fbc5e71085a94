/// Dates of HTTP header fields (RFC 9110 section 5.6.7).
enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// nil: a date in none of the three forms, or one that no calendar has. The name of the day is not looked at.
    static func secondsSince1970(_ value: [UInt8]) -> Int64? {
        let words = value.split(whereSeparator: { $0 == 0x20 }).map { String(decoding: $0, as: UTF8.self) }
        switch words.count {
        // Sun, 06 Nov 1994 08:49:37 GMT
        case 6 where words[5] == "GMT":
            return seconds(year: number(words[3], digits: 4), words[2], day: number(words[1], digits: 2), words[4])
        // Sunday, 06-Nov-94 08:49:37 GMT
        case 4 where words[3] == "GMT":
            let parts = words[1].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 3, let short = number(parts[2], digits: 2) else { return nil }
            let year = short < 70 ? 2000 + short : 1900 + short
            return seconds(year: year, parts[1], day: number(parts[0], digits: 2), words[2])
        // Sun Nov  6 08:49:37 1994
        case 5:
            let day = number(words[2], digits: words[2].utf8.count == 1 ? 1 : 2)
            return seconds(year: number(words[4], digits: 4), words[1], day: day, words[3])
        default: return nil
        }
    }

    private static func seconds(year: Int64?, _ month: String, day: Int64?, _ time: String) -> Int64? {
        let parts = time.split(separator: ":", omittingEmptySubsequences: false).map { number(String($0), digits: 2) }
        guard let year, year > 0, let day, let month = months.firstIndex(of: month), (1...31).contains(day),
            parts.count == 3,
            let hour = parts[0], let minute = parts[1], let second = parts[2],
            hour < 24, minute < 60, second <= 60
        else { return nil }
        return days(year, Int64(month) + 1, day) * 86_400 + hour * 3_600 + minute * 60 + second
    }

    private static func number(_ text: String, digits: Int) -> Int64? {
        guard text.utf8.count == digits, text.utf8.allSatisfy(ASCII.isDigit) else { return nil }
        return Int64(text)
    }

    /// From 1970-01-01, by the calendar of today. Years begin in March here, so that a leap day is the last of its year.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let year = month > 2 ? year : year - 1
        let monthFromMarch = (month + 9) % 12
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        return year * 365 + year / 4 - year / 100 + year / 400 + dayOfYear - 719_468
    }
}
