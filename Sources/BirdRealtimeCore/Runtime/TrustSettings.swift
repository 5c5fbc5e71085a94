import CBirdRealtimeABI
import CCurl
import CLinux
import Glibc

enum TLSVersion: String, Sendable {
    case v1_2 = "1.2"
    case v1_3 = "1.3"
}

/// Whom a TLS connection trusts, and as whom it speaks. Verification is always on.
struct TrustSettings: Sendable {
    var bundle = CABundle()
    var minimum = TLSVersion.v1_2
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
        minimum = options.tlsMinVersion
        certificateFile = options.clientCertFile
        keyFile = options.clientKeyFile
    }

    private static func check(_ option: String, _ path: String?, isDirectory: Bool = false) throws(Fault) {
        guard let path, let problem = System.problem(reading: path, isDirectory: isDirectory) else { return }
        throw fault(option, "names \(path), which \(problem)")
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
