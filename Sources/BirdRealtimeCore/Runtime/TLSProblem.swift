import CCurl

/// What went wrong with a TLS connection, read from what libcurl and OpenSSL tell. Of another TLS library only libcurl's code and words are
/// known.
enum TLSProblem: Equatable {
    // The server's certificate
    case untrusted
    case untrustedRoot
    case selfSigned
    case expired
    case notYetValid
    case wrongName
    case weakKey
    case weakSignature
    case wrongPurpose
    case notACA
    case nameConstraint
    case chainTooLong
    case badSignature
    case revoked
    case otherCertificate
    // The handshake
    case tooOld
    case noCommonCipher
    case certificateDemanded
    case certificateRefused(alert: UInt32)
    case nameUnknown
    case otherAlert(UInt32)
    case plaintext
    case cut
    case otherHandshake
    // Our own files
    case caUnusable
    case clientCertificateUnusable
    case clientCertificateTooWeak
    case clientKeyUnusable

    /// CURLE_SSL_CLIENTCERT, which is younger than the oldest libcurl that is supported.
    private static let clientCertificateDemanded: UInt32 = 98

    /// nil: TLS was not the problem. `verifyResult` is OpenSSL's; 0 where there is none.
    init?(_ code: CURLcode, words: String, verifyResult: Int) {
        switch code {
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
            self = Self.ofCertificate(verifyResult, words)
        case CURLE_SSL_CACERT_BADFILE: self = .caUnusable
        case CURLE_SSL_CERTPROBLEM:
            self = Self.ofOwnCertificate(words)
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_ENGINE_NOTFOUND, CURLE_USE_SSL_FAILED:
            self = Self.ofHandshake(words)
        case _ where code.rawValue == Self.clientCertificateDemanded: self = .certificateDemanded
        // TLS 1.3 judges the client's certificate when the client has begun to send.
        case CURLE_RECV_ERROR, CURLE_SEND_ERROR:
            guard let alert = Self.opensslReason(words).flatMap(Self.alert) else { return nil }
            self = Self.ofAlert(alert)
        default: return nil
        }
    }

    /// X509_V_ERR_*.
    private static func ofCertificate(_ verifyResult: Int, _ words: String) -> TLSProblem {
        switch verifyResult {
        // Good, or not judged yet: libcurl compares the names itself, before it asks for the result.
        case 0, 1: words.mentions("match") ? .wrongName : .otherCertificate
        case 2, 20, 21: .untrusted
        case 19: .untrustedRoot
        case 7: .badSignature
        case 9: .notYetValid
        case 10: .expired
        case 18: .selfSigned
        case 22, 25: .chainTooLong
        case 23: .revoked
        case 24, 79: .notACA
        case 26: .wrongPurpose
        case 47...53: .nameConstraint
        case 66, 67: .weakKey
        case 68: .weakSignature
        default: .otherCertificate
        }
    }

    private static func ofOwnCertificate(_ words: String) -> TLSProblem {
        let words = words.lowercased()
        if words.mentions("too small") || words.mentions("too weak") { return .clientCertificateTooWeak }
        return words.mentions("private key") ? .clientKeyUnusable : .clientCertificateUnusable
    }

    private static func ofHandshake(_ words: String) -> TLSProblem {
        guard let reason = opensslReason(words) else {
            return words.mentions("SSL_ERROR_SYSCALL") || words.mentions("reset by peer") ? .cut : .otherHandshake
        }
        if let alert = alert(reason) { return ofAlert(alert) }
        return switch reason {
        // Unsupported protocol, unknown version.
        case 258, 259: .tooOld
        // The key of the key exchange: DH, and one of another kind.
        case 394, 372: .weakKey
        // HTTP request, packet too long, wrong version number, bad record type.
        case 156, 198, 267, 443: .plaintext
        // Unexpected EOF.
        case 294: .cut
        default: .otherHandshake
        }
    }

    /// RFC 8446 section 6.2.
    private static func ofAlert(_ alert: UInt32) -> TLSProblem {
        switch alert {
        case 40, 71: .noCommonCipher
        case 42...46, 48, 49: .certificateRefused(alert: alert)
        case 70: .tooOld
        case 112: .nameUnknown
        case 116: .certificateDemanded
        default: .otherAlert(alert)
        }
    }

    /// The reason in "error:0A000410:SSL routines:...": 23 bits of it since OpenSSL 3, 12 before; there are none above 12.
    private static func opensslReason(_ words: String) -> UInt32? {
        for part in words.split(separator: ":").dropFirst() where part.utf8.count == 8 {
            if let number = UInt32(part, radix: 16) { return number & 0xFFF }
        }
        return nil
    }

    /// Alerts that the server sent have reasons from 1000 on.
    private static func alert(_ reason: UInt32) -> UInt32? {
        (1_000...1_255).contains(reason) ? reason - 1_000 : nil
    }
}

extension TLSProblem {
    /// The option to look at, or the step.
    func field(_ trust: TrustSettings) -> String {
        switch self {
        case .caUnusable where trust.bundle.source == .options: trust.bundle.file == nil ? "ca_path" : "ca_file"
        case .clientCertificateUnusable, .clientCertificateTooWeak: "client_cert_file"
        case .clientKeyUnusable: "client_key_file"
        default: "tls"
        }
    }

    /// For a person: what it is, and what to do about it. `name`: whom the certificate had to be for; `nameOption`: the option to set
    /// for another name.
    func text(_ trust: TrustSettings, name: String, nameOption: String) -> String {
        let hasCertificate = trust.certificateFile != nil
        return switch self {
        case .untrusted where trust.bundle.isUnhashed:
            "the server's certificate is not signed by a trusted CA: \(trust.bundle.directory ?? "") has no certificate under "
                + "the name that OpenSSL looks for. Run `openssl rehash` on it."
        case .untrusted:
            "the server's certificate is not signed by a trusted CA, or the server does not send the intermediate certificates. "
                + trust.bundle.advice("for a private CA")
        case .untrustedRoot:
            "the server's certificate is signed by a CA that is not trusted. " + trust.bundle.advice("for a private CA")
        case .selfSigned:
            "the server's certificate is self-signed. " + trust.bundle.advice("to trust exactly this certificate")
        case .expired:
            "the server's certificate has expired, or one that it is signed with, which may be the CA in "
                + "\(trust.bundle.isEmpty ? "use" : trust.bundle.place). Renew it, or check the clock of this machine."
        case .notYetValid:
            "the server's certificate, or one it is signed with, is not valid yet. Check the clock of this machine."
        case .wrongName:
            "the server's certificate is not for \(name). Set \(nameOption) to a name that it is for."
        case .weakKey:
            "the server uses a key that is too small for the security level of this machine's OpenSSL. It needs a larger one."
        case .weakSignature:
            "the server's certificate, or one it is signed with, has a signature of a weak kind, such as SHA-1. "
                + "It must be issued anew with SHA-256 or better."
        case .wrongPurpose:
            "the server's certificate is not for servers (extended key usage). It must be issued anew for serverAuth."
        case .notACA:
            "the server's certificate is signed with a certificate that is not a CA's. Check the CA: true of its issuer."
        case .nameConstraint:
            "a CA that the server's certificate is signed with may not sign for this name (name constraints). "
                + "The server needs a certificate of another CA."
        case .chainTooLong:
            "the server's certificate is signed through more CAs than are allowed. Check its chain of certificates."
        case .badSignature:
            "the server's certificate is not signed by the CA that it names. Check that the server and "
                + "\(trust.bundle.isEmpty ? "this machine" : trust.bundle.place) have the same generation of that CA."
        case .revoked: "the server's certificate has been revoked. The server needs a new one."
        case .otherCertificate:
            "the server's certificate was not accepted, for the reason that OpenSSL gives. Correct the certificate."
        case .tooOld:
            "the server does not speak TLS \(trust.minimum.rawValue) or later, which \(trust.minimumDemander) demands. "
                + "Update the server."
        case .noCommonCipher where hasCertificate:
            "the server refused the handshake: no common cipher, or it does not accept the client certificate. "
                + "Check its ciphers and client_cert_file."
        case .noCommonCipher:
            "the server refused the handshake: no common cipher, or it demands a client certificate. "
                + "Check its ciphers, or set client_cert_file and client_key_file."
        case .certificateDemanded:
            "the server demands a client certificate. Set client_cert_file and client_key_file."
        case .certificateRefused(let alert) where hasCertificate:
            "the server does not accept the client certificate (alert \(alert)). "
                + "Check who has signed client_cert_file and until when it is valid."
        case .certificateRefused(let alert), .otherAlert(let alert):
            "the server refused the handshake (alert \(alert))."
        case .nameUnknown: "the server has no host of the name \(name). Check \(nameOption)."
        case .plaintext: "the server does not speak TLS on this port: it may be for plaintext. Check the port."
        case .cut:
            "the connection ended during the TLS handshake: the server, or a proxy or firewall in between, ended it. "
                + "Check the port and what is in between."
        case .otherHandshake: "the TLS handshake failed."
        case .caUnusable: "the CA certificates of \(trust.bundle.place) cannot be used. They must be PEM."
        case .clientCertificateUnusable: "the client certificate cannot be used. client_cert_file must be PEM."
        case .clientCertificateTooWeak:
            "the client certificate has a key or a signature that is too weak for the security level of this machine's OpenSSL. "
                + "client_cert_file needs a stronger one."
        case .clientKeyUnusable:
            "the key of the client certificate cannot be used. client_key_file must be PEM, have no passphrase, "
                + "and belong to client_cert_file."
        }
    }
}
