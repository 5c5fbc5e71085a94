import CBirdRealtimeABI
import CCurl
import CLinux
import Glibc

enum TLSVersion: String, Sendable {
    case v1_2 = "1.2"
    case v1_3 = "1.3"
}

/// Trust settings as they are at one moment: equal ones trust the same certificates and speak as the same client.
struct TrustState: Hashable, Sendable {
    fileprivate struct File: Hashable {
        var path: String?
        var stamp: FileStamp?
    }

    fileprivate var authorities = File()
    fileprivate var directory: String?
    fileprivate var certificate = File()
    fileprivate var key = File()
    fileprivate var minimum: TLSVersion?

    /// A change of what is trusted makes another state.
    var isTraced: Bool { directory == nil }
}

/// Whom a TLS connection trusts, and as whom it speaks. Verification is always on.
struct TrustSettings: Sendable {
    var bundle = CABundle()
    /// nil: not set by the program.
    var minimumGiven: TLSVersion?
    var certificateFile: String?
    var keyFile: String?

    init() {}

    /// Looks at the machine: a file that an option names and that cannot be read is a fault of the option.
    /// `isUsed` false: no TLS connection will come.
    init(_ options: ClientOptions, isUsed: Bool) throws(Fault) {
        try Self.check("ca_file", options.caFile)
        try Self.check("ca_path", options.caPath, isDirectory: true)
        try Self.check("client_cert_file", options.clientCertFile)
        try Self.check("client_key_file", options.clientKeyFile)
        guard options.clientKeyFile == nil || options.clientCertFile != nil else {
            throw Self.fault("client_key_file", "is the key of a client certificate: set client_cert_file too")
        }
        guard isUsed else { return }
        bundle = .find(
            file: options.caFile, directory: options.caPath,
            environment: { Self.text(birdlinux_secure_getenv($0)) },
            builtIn: (Self.text(birdcurl_built_in_ca_file()), Self.text(birdcurl_built_in_ca_path())),
            exists: { access($0, R_OK) == 0 })
        try checkEnvironment()
        minimumGiven = options.tlsMinVersion
        certificateFile = options.clientCertFile
        keyFile = options.clientKeyFile
    }

    private static func check(_ option: String, _ path: String?, isDirectory: Bool = false) throws(Fault) {
        guard let path, let problem = System.problem(reading: path, isDirectory: isDirectory) else { return }
        throw fault(option, "names \(path), which \(problem)")
    }

    /// What a variable names and cannot be read is left out, but a pipe or a device is a mistake.
    private func checkEnvironment() throws(Fault) {
        guard bundle.source == .environment, let file = bundle.file,
            let problem = System.problem(reading: file, isDirectory: false)
        else { return }
        throw Fault(
            BIRD_ERR_VALUE, .argument, field: CABundle.fileVariable,
            "The environment variable \(CABundle.fileVariable) names \(file), which \(problem). "
                + "Name a PEM file, or set ca_file or ca_path.")
    }

    /// Never older than TLS 1.2.
    var minimum: TLSVersion { minimumGiven ?? CurlGlobal.policyMinimum }

    /// For messages.
    var minimumDemander: String {
        if minimumGiven != nil { return "tls_min_version" }
        return minimum == .v1_2 ? "this library" : "the OpenSSL configuration of this machine (MinProtocol)"
    }

    /// Looks at the files before a connection reads them: what they are may have changed since the client was created.
    func state() throws(TrustProblem) -> TrustState {
        try Self.look(at: bundle.file, bundle.fileOption)
        // A variable may name several directories, of which some may be missing.
        if bundle.source != .environment { try Self.look(at: bundle.directory, "ca_path", isDirectory: true) }
        try Self.look(at: certificateFile, "client_cert_file")
        try Self.look(at: keyFile, "client_key_file")
        func file(_ path: String?) -> TrustState.File {
            TrustState.File(path: path, stamp: path.flatMap(FileStamp.init))
        }
        return TrustState(
            authorities: file(bundle.file), directory: bundle.directory, certificate: file(certificateFile),
            key: file(keyFile), minimum: minimumGiven)
    }

    private static func look(at path: String?, _ option: String, isDirectory: Bool = false) throws(TrustProblem) {
        guard let path, let problem = System.problem(reading: path, isDirectory: isDirectory) else { return }
        let what = option == "tls" ? "the file of CA certificates" : option
        throw TrustProblem(field: option, text: "\(what) \(path) \(problem)")
    }

    func apply(to transfer: CurlTransfer) {
        transfer.set(CURLOPT_SSL_VERIFYPEER, 1)
        transfer.set(CURLOPT_SSL_VERIFYHOST, 2)
        // Both, since libcurl's own choice for one of them would be trusted beside the other.
        transfer.set(CURLOPT_CAINFO, bundle.file)
        transfer.set(CURLOPT_CAPATH, bundle.directory)
        transfer.set(CURLOPT_SSLVERSION, minimum == .v1_3 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2)
        guard let certificateFile else { return }
        transfer.set(CURLOPT_SSLCERT, certificateFile)
        transfer.set(CURLOPT_SSLKEY, keyFile)
        // Without one OpenSSL asks the terminal for the passphrase of a key that has one; with one GnuTLS takes any key for encrypted.
        if CurlGlobal.hasOpenSSL { transfer.set(CURLOPT_KEYPASSWD, "") }
    }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String? { pointer.map { String(cString: $0) } }

    private static func fault(_ option: String, _ what: String) -> Fault {
        Fault(BIRD_ERR_VALUE, .argument, field: option, "Option \(option) \(what).")
    }
}

/// A file that cannot be used.
struct TrustProblem: Error {
    /// The option or variable that names it.
    let field: String
    let text: String
}
