import CCurl
import Testing

@testable import BirdRealtimeCore

@Suite struct TLSProblemTests {
    @Test(
        arguments: [
            (2, .untrusted), (19, .untrustedRoot), (20, .untrusted), (21, .untrusted), (9, .notYetValid),
            (10, .expired),
            (18, .selfSigned), (7, .badSignature), (22, .chainTooLong), (25, .chainTooLong), (23, .revoked),
            (24, .notACA),
            (79, .notACA), (26, .wrongPurpose), (47, .nameConstraint), (48, .nameConstraint), (66, .weakKey),
            (67, .weakKey),
            (68, .weakSignature), (27, .otherCertificate),
        ] as [(Int, TLSProblem)])
    func verificationResults(_ result: Int, _ problem: TLSProblem) {
        #expect(
            TLSProblem(CURLE_PEER_FAILED_VERIFICATION, words: "SSL certificate problem", verifyResult: result)
                == problem)
    }

    @Test(arguments: [0, 1])
    func namesAreComparedByLibcurl(_ result: Int) {
        for words in [
            "SSL: no alternative certificate subject name matches target host name 'edge'",
            "SSL: certificate subject name (edge) does not match target host name 'other'",
        ] {
            #expect(TLSProblem(CURLE_PEER_FAILED_VERIFICATION, words: words, verifyResult: result) == .wrongName)
        }
        #expect(
            TLSProblem(CURLE_PEER_FAILED_VERIFICATION, words: "server certificate expired", verifyResult: result)
                == .otherCertificate)
    }

    /// The words of OpenSSL 1.1 and 3, and of libcurl 7.76 to 8.14 around them.
    @Test(
        arguments: [
            ("error:1409442E:SSL routines:ssl3_read_bytes:tlsv1 alert protocol version", .tooOld),
            ("error:0A00042E:SSL routines::tlsv1 alert protocol version", .tooOld),
            ("TLS connect error: error:0A000102:SSL routines::unsupported protocol", .tooOld),
            ("error:0A000410:SSL routines::sslv3 alert handshake failure", .noCommonCipher),
            ("OpenSSL/3.5.0: error:0A000418:SSL routines::tlsv1 alert unknown ca", .certificateRefused(alert: 48)),
            ("error:0A00045C:SSL routines::tlsv13 alert certificate required", .certificateDemanded),
            ("error:0A000458:SSL routines::tlsv1 unrecognized name", .nameUnknown),
            ("error:0A000438:SSL routines::tlsv1 alert internal error", .otherAlert(80)),
            ("error:1408F10B:SSL routines:ssl3_get_record:wrong version number", .plaintext),
            ("error:0A00010B:SSL routines::wrong version number", .plaintext),
            ("error:0A000126:SSL routines::unexpected eof while reading", .cut),
            ("OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to edge:443 ", .cut),
            ("OpenSSL SSL_connect: Connection reset by peer in connection to edge:443 ", .cut),
            ("error:0A00018A:SSL routines::dh key too small", .weakKey),
            ("gnutls_handshake() failed: Handshake failed", .otherHandshake),
        ] as [(String, TLSProblem)])
    func handshakes(_ words: String, _ problem: TLSProblem) {
        #expect(TLSProblem(CURLE_SSL_CONNECT_ERROR, words: words, verifyResult: 0) == problem)
    }

    @Test func refusalBehindTheHandshake() {
        let words = "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0"
        #expect(TLSProblem(CURLE_RECV_ERROR, words: words, verifyResult: 0) == .certificateDemanded)
        #expect(TLSProblem(CURLE_RECV_ERROR, words: "Recv failure: Connection reset by peer", verifyResult: 0) == nil)
        #expect(TLSProblem(CURLE_COULDNT_CONNECT, words: "Connection refused", verifyResult: 0) == nil)
    }

    /// What failed, and what to do, in two sentences; nobody but the server's own side is blamed for what may be in between.
    @Test(
        arguments: [
            .untrusted, .untrustedRoot, .selfSigned, .expired, .notYetValid, .wrongName, .weakKey, .weakSignature,
            .wrongPurpose,
            .notACA, .nameConstraint, .chainTooLong, .badSignature, .revoked, .otherCertificate, .tooOld, .plaintext,
            .cut,
        ] as [TLSProblem])
    func sentences(_ problem: TLSProblem) {
        let text = problem.text(TrustSettings(), name: "edge.test", nameOption: "tls_verify_name")
        #expect(text.hasSuffix(".") && !text.contains("edge ended") && text.utf8.count < 300, "\(text)")
        #expect(text.split(separator: ". ").count == 2, "\(text)")
    }

    @Test func ownFilesHaveTheirOption() throws {
        let trust = TrustSettings()
        let key = try #require(
            TLSProblem(CURLE_SSL_CERTPROBLEM, words: "unable to set private key file: 'k' type PEM", verifyResult: 0))
        #expect(key.field(trust) == "client_key_file")
        let certificate = try #require(
            TLSProblem(CURLE_SSL_CERTPROBLEM, words: "could not load PEM client certificate", verifyResult: 0))
        #expect(certificate.field(trust) == "client_cert_file")
        let weak = try #require(
            TLSProblem(
                CURLE_SSL_CERTPROBLEM,
                words:
                    "could not load PEM client certificate, OpenSSL error error:0A00018F:SSL routines::ee key too small",
                verifyResult: 0))
        #expect(weak == .clientCertificateTooWeak && weak.field(trust) == "client_cert_file")
        var own = trust
        own.bundle = CABundle(directory: "/a", source: .options)
        #expect(TLSProblem.caUnusable.field(own) == "ca_path")
        #expect(TLSProblem.caUnusable.field(trust) == "tls")
    }
}
