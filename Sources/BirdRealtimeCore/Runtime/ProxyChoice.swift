import CBirdRealtimeABI
import Glibc

/// Which proxy connections take: the one of the option, else what the environment says when a client is created.
struct ProxyChoice: Equatable, Sendable {
    private let proxy: Proxy?
    private let exceptions: ProxyExceptions
    /// The variable whose value is no proxy.
    private let unusable: String?

    /// nil: none.
    init(option proxy: Proxy?) {
        self.proxy = proxy
        exceptions = ProxyExceptions("")
        unusable = nil
    }

    /// As curl has it, which takes HOST:PORT for an HTTP proxy: `https_proxy`, else `all_proxy`; lower case first; an empty variable is one that is not set.
    init(environment: (String) -> String? = Self.variable) {
        func first(_ names: String...) -> (name: String, value: String)? {
            for name in names.flatMap({ [$0, $0.uppercased()] }) {
                if let value = environment(name), !value.isEmpty { return (name, value) }
            }
            return nil
        }
        let chosen = first("https_proxy", "all_proxy")
        proxy = chosen.flatMap { Proxy(url: $0.value, standardScheme: "http") }
        exceptions = ProxyExceptions(first("no_proxy")?.value ?? "")
        unusable = proxy == nil ? chosen?.name : nil
    }

    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    /// nil: directly.
    func proxy(to host: String, port: UInt16) throws(Fault) -> Proxy? {
        guard !exceptions.contains(host, port: port) else { return nil }
        if let unusable {
            throw Fault(
                BIRD_ERR_VALUE, .argument, field: unusable,
                "The environment variable \(unusable) must be \(Proxy.isWhat). The option proxy overrides it.")
        }
        return proxy
    }
}
