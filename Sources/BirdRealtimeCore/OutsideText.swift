/// Texts that others wrote, made fit for messages and log lines.
package enum OutsideText {
    /// Of what a server said, as far as a message repeats it.
    private static let wordsCharactersMax = 200
    private static let placeCharactersMax = 512
    /// Of a body, as far as it is searched for words.
    package static let searchedBytesMax = 4_096

    /// One line that reads in one direction: characters that break a line, change its direction or command a terminal become blanks.
    package static func line(_ text: String) -> String {
        guard !text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }), text.unicodeScalars.contains(where: isUnfit) else {
            return text
        }
        var line = String.UnicodeScalarView()
        for character in text.unicodeScalars { line.append(isUnfit(character) ? " " : character) }
        return String(line)
    }

    /// Controls (C0, DEL, C1), the line and paragraph separators, and everything that embeds, overrides, isolates or marks a direction.
    static func isUnfit(_ character: Unicode.Scalar) -> Bool {
        switch character.value {
        case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x206F, 0xFFF9...0xFFFB: true
        default: false
        }
    }

    /// Where a redirect leads: without a user, a password, a query or a fragment, which may be secret.
    package static func place(_ location: String) -> String {
        let shown = location.unicodeScalars.prefix { $0 != "?" && $0 != "#" }
        var parts = String(shown).split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        if parts.count > 2, parts[1].isEmpty, let at = parts[2].lastIndex(of: "@") {
            parts[2] = parts[2][parts[2].index(after: at)...]
        }
        return line(String(parts.joined(separator: "/").prefix(placeCharactersMax)))
    }

    /// What the body of an answer says to people, in quotes and cut: the title of a page, the message of a JSON object, else the first line of a
    /// text. nil: nothing, or nothing that is fit to be repeated. Only for answers that refuse: others may hold secrets.
    package static func words(of body: some Collection<UInt8>) -> String? {
        var text = String(decoding: body.prefix(searchedBytesMax), as: UTF8.self)[...]
        if text.first == "\u{FEFF}" { text.removeFirst() }
        text = text.drop { $0.isWhitespace }
        let found: Substring?
        switch text.first {
        case "<": found = title(of: text) ?? line(ofPage: text)
        case "{", "[": found = message(ofJSON: Array(text.utf8))
        default:
            let first = text.prefix { !$0.isNewline }
            found = first.unicodeScalars.contains { $0 != "\t" && isUnfit($0) } ? nil : first
        }
        guard let words = found.map({ line(trimmed($0)) }), !words.isEmpty, !words.unicodeScalars.contains("\u{FFFD}")
        else {
            return nil
        }
        return "\"\(words.prefix(wordsCharactersMax))\(words.count > wordsCharactersMax ? "…" : "")\""
    }

    private static func title(of page: Substring) -> Substring? {
        let lowered = Array(page.utf8.map(ASCII.lowercased))
        guard let open = index(of: "<title", in: lowered, from: 0), let start = index(of: ">", in: lowered, from: open),
            let end = index(of: "</title", in: lowered, from: start)
        else { return nil }
        return Substring(String(decoding: Array(page.utf8)[(start + 1)..<end], as: UTF8.self))
    }

    /// The first text between tags.
    private static func line(ofPage page: Substring) -> Substring? {
        for part in page.split(separator: "<") {
            guard let end = part.firstIndex(of: ">") else { continue }
            let text = part[part.index(after: end)...]
            if !trimmed(text).isEmpty { return text }
        }
        return nil
    }

    private static func message(ofJSON bytes: [UInt8]) -> Substring? {
        guard let document = JSONDocument.parse(bytes) else { return nil }
        for key in ["message", "error", "detail", "reason", "title"] {
            if let text = document[key]?.string ?? document[key]?["message"]?.string { return text[...] }
        }
        return nil
    }

    private static func index(of text: StaticString, in bytes: [UInt8], from start: Int) -> Int? {
        text.withUTF8Buffer { wanted in
            guard bytes.count >= wanted.count, start <= bytes.count - wanted.count else { return nil }
            return (start...(bytes.count - wanted.count)).first {
                bytes[$0..<($0 + wanted.count)].elementsEqual(wanted)
            }
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text.drop { $0.isWhitespace }
        while let last = text.last, last.isWhitespace { text.removeLast() }
        return String(text)
    }
}
