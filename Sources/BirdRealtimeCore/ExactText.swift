import Glibc

/// A text as a key: the same when its bytes are. Strings of the standard library are equal when they look alike, but ids and names that
/// were written in different bytes are different ones to the edge.
package struct ExactText: Hashable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (left: ExactText, right: ExactText) -> Bool {
        let (left, right) = (left.text.utf8, right.text.utf8)
        // Compared by words, not by bytes, where the bytes lie together.
        let isSame = left.withContiguousStorageIfAvailable { left in
            right.withContiguousStorageIfAvailable { right in
                UnsafeRawBufferPointer(left).isSame(as: UnsafeRawBufferPointer(right))
            }
        }
        return (isSame ?? nil) ?? left.elementsEqual(right)
    }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension UnsafeRawBufferPointer {
    func isSame(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let here = baseAddress, let there = other.baseAddress else { return true }
        return memcmp(here, there, count) == 0
    }

    func begins(with text: String) -> Bool {
        var text = text
        return text.withUTF8 { text in
            UnsafeRawBufferPointer(rebasing: prefix(text.count)).isSame(as: UnsafeRawBufferPointer(text))
        }
    }
}
