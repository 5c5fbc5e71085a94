import Glibc

extension String {
    /// `contains` of a whole text would bring Swift's regular expressions, 1.5 MB, into the library.
    func mentions(_ text: String) -> Bool { strstr(self, text) != nil }
}
