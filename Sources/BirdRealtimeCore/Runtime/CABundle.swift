import Glibc

/// Where the certificates are of the CAs that are trusted.
struct CABundle: Equatable, Sendable {
    /// Who chose it.
    enum Source: Equatable {
        case options
        case environment
        case system
    }

    var file: String?
    var directory: String?
    var source = Source.system

    /// OpenSSL's variables. Where one of them is set, only what they name counts.
    static let fileVariable = "SSL_CERT_FILE"
    static let directoryVariable = "SSL_CERT_DIR"

    static let distributionFiles = [
        "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Alpine, Arch, Gentoo
        "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora, RHEL
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Fedora, RHEL
        "/etc/ssl/ca-bundle.pem",  // openSUSE
        "/var/lib/ca-certificates/ca-bundle.pem",  // openSUSE
        "/etc/ssl/cert.pem",  // Alpine
    ]
    static let distributionDirectories = ["/etc/ssl/certs", "/etc/pki/tls/certs"]

    /// The options; else the environment; else what libcurl was built for, if it is on this machine; else what the distributions have.
    /// A file stands for itself: libcurl keeps it parsed for all connections of a multi handle, which it does not do beside a directory.
    static func find(
        file: String?, directory: String?, environment: (String) -> String?,
        builtIn: (file: String?, directory: String?), exists: (String) -> Bool
    ) -> CABundle {
        if file != nil || directory != nil { return CABundle(file: file, directory: directory, source: .options) }
        let variables = [fileVariable, directoryVariable].map { environment($0).flatMap { $0.isEmpty ? nil : $0 } }
        if variables.contains(where: { $0 != nil }) {
            return CABundle(
                file: variables[0].flatMap { exists($0) ? $0 : nil },
                directory: variables[1].flatMap { $0.split(separator: ":").contains { exists(String($0)) } ? $0 : nil },
                source: .environment)
        }
        if let file = ([builtIn.file].compactMap(\.self) + distributionFiles).first(where: exists) {
            return CABundle(file: file)
        }
        return CABundle(
            directory: ([builtIn.directory].compactMap(\.self) + distributionDirectories).first(where: exists))
    }

    /// What names the file; "tls": nobody, the library found it.
    var fileOption: String {
        switch source {
        case .options: "ca_file"
        case .environment: Self.fileVariable
        case .system: "tls"
        }
    }

    private static let entriesMax = 10_000

    /// Only a directory is trusted, and none of its files is named as OpenSSL names them: 8 hexadecimal digits, a dot, a number.
    var isUnhashed: Bool {
        guard file == nil, let directory, let entries = System.holdingStandardFDs({ opendir(directory) }) else {
            return false
        }
        defer { closedir(entries) }
        for _ in 0..<Self.entriesMax {
            guard let entry = readdir(entries) else { return true }
            let name = withUnsafeBytes(of: entry.pointee.d_name) { $0.prefix { $0 != 0 }.map { $0 } }
            if name.count > 9, name.prefix(8).allSatisfy(ASCII.isHexDigit), name[8] == UInt8(ascii: "."),
                name[9...].allSatisfy(ASCII.isDigit)
            {
                return false
            }
        }
        return false
    }

    var isEmpty: Bool { file == nil && directory == nil }

    /// For messages.
    var place: String { [file, directory].compactMap(\.self).joined(separator: " and ") }

    /// What to do about a CA that is not trusted.
    func advice(_ purpose: String) -> String {
        switch source {
        case .options: "Trusted are only the CAs of \(place): set ca_file or ca_path to the right one."
        case .environment where isEmpty:
            "\(Self.fileVariable) and \(Self.directoryVariable) name nothing that can be read, so no CA is trusted: "
                + "correct them, or set ca_file or ca_path."
        case .system where isEmpty:
            "No CA certificates were found on this machine: install the package ca-certificates, "
                + "or set ca_file or ca_path."
        case .environment, .system: "Trusted are the CAs of \(place): \(purpose) set ca_file or ca_path."
        }
    }
}
