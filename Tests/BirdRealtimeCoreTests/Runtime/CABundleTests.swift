import Testing

@testable import BirdRealtimeCore

@Suite struct CABundleTests {
    private static let debian = "/etc/ssl/certs/ca-certificates.crt"
    private static let fedora = "/etc/pki/tls/certs/ca-bundle.crt"

    private func find(
        file: String? = nil, directory: String? = nil, _ environment: [String: String] = [:],
        builtIn: (String?, String?) = (nil, nil), on machine: Set<String>
    ) -> CABundle {
        .find(
            file: file, directory: directory, environment: { environment[$0] },
            builtIn: (file: builtIn.0, directory: builtIn.1), exists: machine.contains)
    }

    /// Whether they can be read has been looked at before.
    @Test func optionsAreAllThereIs() {
        let environment = ["SSL_CERT_FILE": "/env.pem"]
        let machine: Set = [Self.debian, "/env.pem", "/built-in"]
        #expect(
            find(file: "/a.pem", environment, builtIn: ("/built-in", nil), on: machine)
                == CABundle(file: "/a.pem", source: .options))
        #expect(
            find(directory: "/a", environment, on: machine) == CABundle(directory: "/a", source: .options))
        #expect(
            find(file: "/a.pem", directory: "/a", on: machine)
                == CABundle(file: "/a.pem", directory: "/a", source: .options))
    }

    @Test func environmentComesNext() {
        #expect(
            find(["SSL_CERT_FILE": "/env.pem", "SSL_CERT_DIR": "/none:/env"], on: ["/env.pem", "/env", Self.debian])
                == CABundle(file: "/env.pem", directory: "/none:/env", source: .environment))
        #expect(
            find(["SSL_CERT_FILE": "", "SSL_CERT_DIR": ""], on: ["", Self.debian]) == CABundle(file: Self.debian))
    }

    /// It may mean to trust less than the machine does.
    @Test func environmentThatNamesNothingTrustsNothing() {
        let bundle = find(["SSL_CERT_FILE": "/none"], builtIn: (Self.debian, nil), on: [Self.debian])
        #expect(bundle == CABundle(source: .environment))
        #expect(bundle.isEmpty)
    }

    @Test(arguments: [
        (["/built-in.pem", debian], "/built-in.pem"), ([debian, fedora], debian), ([fedora, "/built-in"], fedora),
        (["/etc/ssl/ca-bundle.pem", "/etc/ssl/certs"], "/etc/ssl/ca-bundle.pem"),
        (["/etc/ssl/cert.pem"], "/etc/ssl/cert.pem"),
        (["/var/lib/ca-certificates/ca-bundle.pem"], "/var/lib/ca-certificates/ca-bundle.pem"),
    ])
    func filesComeInOrder(_ machine: [String], _ file: String) {
        #expect(find(builtIn: ("/built-in.pem", "/built-in"), on: Set(machine)) == CABundle(file: file))
    }

    @Test func directoriesComeLast() {
        #expect(
            find(builtIn: ("/none", "/built-in"), on: ["/built-in", "/etc/ssl/certs"])
                == CABundle(directory: "/built-in"))
        #expect(find(on: ["/etc/ssl/certs"]) == CABundle(directory: "/etc/ssl/certs"))
        #expect(find(on: []).isEmpty)
    }
}
