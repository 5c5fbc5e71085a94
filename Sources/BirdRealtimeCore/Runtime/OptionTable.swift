extension Option {
    /// Every option there is. `ClientOptions.set`, the comment of the header, docs/options.md and the keyword arguments of the Python
    /// package come from it: run scripts/write-options after a change. The order is that of the documents.
    package static let table: [Option] = [
        // MARK: Edge
        .text(
            "app_key", .edge, accepts: "1 to 256 bytes without control characters",
            "Says which app the connection is for; public, and required."
        ) { options, value in
            options.appKey = value
            return 1...256 ~= value.utf8.count
        },
        .text(
            "region", .edge, accepts: "\"us1\" or \"eu1\"; a cluster with the dialect \"pusher\"", \.region,
            "Where the edge is: its host name follows from it. One of region and ws_host is required."),
        .text(
            "ws_host", .edge, accepts: "host or host:port", \.wsHost,
            "An edge of another name instead of a region: one of your own, or the local one."),
        .text(
            "dialect", .edge, default: "bird", accepts: "\"bird\" or \"pusher\"",
            "For servers that speak Pusher Channels protocol 7 instead of Bird's: names, keys and authorization requests are theirs, see docs/pusher.md."
        ) { options, value in
            guard let dialect = Dialect.named(value) else { return false }
            options.dialect = dialect
            return true
        },
        .flag(
            "allow_insecure", .edge, default: "0", \.allowInsecure,
            "Lets tests do without certificates: plaintext for exactly localhost, 127.0.0.1 and [::1]; every other host gets TLS all the same."
        ),
        .text(
            "address", .edge, accepts: "an IPv4 or IPv6 address",
            "Connects to this address, also behind a proxy, where the name of the edge cannot or should not be resolved."
        ) { options, value in
            options.address = value
            return IPAddress(value) != nil
        },

        // MARK: Authorization
        .text(
            "auth_endpoint", .authorization, unit: "URL", accepts: "an https:// URL (http:// as allow_insecure says)",
            \.authEndpoint, "Is asked by POST whether this connection may join a private or presence channel."),
        .text(
            "member_auth_endpoint", .authorization, unit: "URL",
            accepts: "an https:// URL (http:// as allow_insecure says)", \.memberAuthEndpoint,
            "Is asked by POST as which member this connection may sign in."),
        .flag(
            "authorizer", .authorization, default: "0", \.asksAuthorizer,
            "For programs that authorize channels by other means than a POST: they are asked by a request record instead."
        ),
        .flag(
            "member_authorizer", .authorization, default: "0", \.asksMemberAuthorizer,
            "The same for signin."),
        .flag(
            "header_provider", .authorization, default: "0", \.asksForHeaders,
            "For tokens that expire: the program is asked by a request record for the headers of each authorization POST."
        ),

        // MARK: TLS and proxy
        .text(
            "ca_file", .tls, unit: "path", accepts: "a readable PEM file", \.caFile,
            "Trusts the CA certificates of this file instead of the system's: for a CA of your own. What cannot be read, here and below, is refused when the client is created."
        ),
        .text(
            "ca_path", .tls, unit: "path", accepts: "a readable directory", \.caPath,
            "The same for a directory of certificates under the names that OpenSSL gives them (openssl rehash)."),
        .text(
            "client_cert_file", .tls, unit: "path", accepts: "a readable PEM file", \.clientCertFile,
            "For edges and proxies that ask their clients for a certificate."),
        .text(
            "client_key_file", .tls, unit: "path", accepts: "a readable PEM file, without a passphrase",
            \.clientKeyFile, "The key of client_cert_file, unless that file has it too."),
        .text(
            "tls_min_version", .tls, accepts: "\"1.2\" or \"1.3\"",
            "Refuses servers that speak only older versions of TLS. Unset: 1.2, or 1.3 where the machine's OpenSSL configuration demands it (MinProtocol)."
        ) { options, value in
            options.tlsMinVersion = TLSVersion(rawValue: value)
            return options.tlsMinVersion != nil
        },
        .text(
            "tls_verify_name", .tls, accepts: "a host name or an address, without a port",
            "The name that the edge's certificate must be for, and that is sent as SNI, where it is not the host's; the upgrade goes to the host all the same. Names outside ASCII in their xn-- form.",
            detail: Authority.problem(ofName:)
        ) { options, value in
            options.tlsVerifyName = Authority(name: value)
            return options.tlsVerifyName != nil
        },
        .text(
            "proxy", .tls, unit: "URL",
            accepts: "an http://, socks5:// or socks5h:// URL with a host, or empty for no proxy",
            "The way out where there is no direct one; URL with [USER:PASSWORD@]HOST[:PORT], user and password percent-encoded. Unset: https_proxy, all_proxy and no_proxy as they are when the client is created.",
            detail: Proxy.problem
        ) { options, value in
            let chosen = Proxy(url: value)
            options.proxy = ProxyChoice(option: chosen)
            return chosen != nil || value.isEmpty
        },

        // MARK: Deadlines
        .time(
            "connect_timeout_ms", .deadlines, default: "15000", \.session.connectTimeoutMs,
            "A host that swallows packets: an attempt ends this long after its start unless the handshake has come."),
        .time(
            "auth_timeout_ms", .deadlines, default: "10000", \.session.authTimeoutMs,
            "An authorizer that hangs: one authorization, POST or request record, may take this long."),
        .time(
            "answer_timeout_ms", .deadlines, default: "30000", \.session.answerTimeoutMs,
            "An edge that does not answer a subscribe or signin: it counts as failed for now this long after the frame was written."
        ),
        .time(
            "message_timeout_ms", .deadlines, default: "60000", \.messageTimeoutMs,
            "An edge that stops in the middle of a message: it must be complete this long after its first byte."),

        // MARK: Liveness and reconnects
        .text(
            "preset", .reconnect, default: "default", accepts: "\"default\" or \"staged\"", isLive: true,
            "Settings that belong together, which later ones override. staged, as XMPP clients do: reconnect staged with the default reconnect_stages, activity_timeout_ms 20000, pong_timeout_ms 10000, pong_misses_max 2. default: these as they are when nothing is set."
        ) { options, value in
            Preset(rawValue: value)?.apply(to: &options.session) != nil
        },
        .number(
            "activity_timeout_ms", .reconnect, unit: "ms", day, isLive: true, \.session.activityTimeoutMs,
            "Connections that die without a word: after so much silence a ping is sent. Unset: the edge's value, 120000 until it names one; the edge's is used too if it is smaller."
        ),
        .time(
            "pong_timeout_ms", .reconnect, default: "30000", isLive: true, \.session.pongTimeoutMs,
            "Silence after a ping before it counts as missed."),
        .number(
            "pong_misses_max", .reconnect, unit: "pings", default: "1", 1...100, isLive: true,
            \.session.pongMissesMax,
            "Links that lose packets: pings missed in a row, each sent as soon as the one before is missed, before the connection counts as dead and the next attempt begins."
        ),
        .choice(
            "reconnect", .reconnect, default: "jitter", accepts: "\"jitter\", \"fixed\" or \"staged\"",
            isLive: true, \.session.reconnect,
            "How long to wait before each attempt. jitter: drawn from windows that double, so that many clients do not come back in step; fixed: reconnect_delay_ms; staged: reconnect_stages."
        ),
        .time(
            "backoff_base_ms", .reconnect, default: "1000", isLive: true, \.session.backoffBaseMs,
            "Keeps many clients from coming back at once: the first wait of jitter is drawn between 0 and this, and each failed attempt doubles it. Authorizers that fail are asked again in the same way."
        ),
        .time(
            "backoff_max_ms", .reconnect, default: "30000", isLive: true, \.session.backoffMaxMs,
            "The longest wait that is drawn: how soon clients are back after a long outage."),
        .time(
            "reconnect_delay_ms", .reconnect, default: "3000", isLive: true, \.session.reconnectDelayMs,
            "The wait of reconnect fixed."),
        .text(
            "reconnect_stages", .reconnect, unit: "attempts x ms", default: "5x3000,5x9000,5x15000",
            accepts: "stages of attempts x milliseconds, such as 5x3000,5x9000 (at most 16, with 1000 attempts in all)",
            isLive: true,
            "The waits of reconnect staged, for people who wait in front of a screen: soon at first, then patient. After the last stage the schedule begins again.",
            detail: ReconnectStages.problem
        ) { options, value in
            guard let stages = try? ReconnectStages(value) else { return false }
            options.session.reconnectStages = stages
            return true
        },
        .number(
            "reconnect_attempts_max", .reconnect, unit: "attempts", default: "0", 0...1_000_000, isLive: true,
            \.session.reconnectAttemptsMax,
            "For programs that would rather ask their user: attempts in a row, made or refused, that are in vain before the client gives up until it is told to connect. 0: never."
        ),
        .flag(
            "flap_guard", .reconnect, default: "1", isLive: true, \.session.hasFlapGuard,
            "Slows reconnects of connections that keep dying young, whatever their close code and the policy say."),
        .flag(
            "network_watch", .reconnect, default: "1", \.watchesNetwork,
            "Connections that a change of the network has cut off, and waits that it has made needless: listens to the kernel (rtnetlink), pings at once when the default route or the connection's own address has gone, and tries at once to connect when there is one again."
        ),
        .flag(
            "may_reconnect", .reconnect, default: "0", \.session.asksBeforeReconnect,
            "For programs that know when it makes no sense: they are asked by a request record before each planned attempt; no answer for 1 s is a yes."
        ),

        // MARK: Limits
        .number(
            "message_bytes_max", .limits, unit: "bytes", default: "16777216", 1_024...1_073_741_824,
            \.messageBytesMax,
            "Bounds what the edge can make this process allocate: a larger message closes the connection with 1009."),
        .number(
            "client_event_bytes_max", .limits, unit: "bytes", default: "10240", 1...16_777_216, \.clientEventBytesMax,
            "The edge closes connections for client events that are too large: larger ones are refused here."),
        .number(
            "outbound_bytes_max", .limits, unit: "bytes", default: "1048576", 16_384...1_073_741_824,
            \.outboundBytesMax,
            "A network that is slower than the program: more bytes waiting to be written are refused (full)."),

        // MARK: Delivery
        .choice(
            "delivery", .delivery, default: "thread", accepts: "\"thread\", \"queue\" or \"loop\"", \.delivery,
            "Where handlers run: on the library's pool, on the threads that empty a bird_queue (implied by bird_options_set_queue), or on the reactor."
        ),
        .number(
            "queue_bytes_max", .delivery, unit: "bytes", default: "8388608", 1_024...17_179_869_184, \.queueBytesMax,
            "Bounds the memory of a program that does not keep up (QUEUE and THREAD): bytes of records not yet consumed, beyond which overflow decides."
        ),
        .number(
            "queue_records_max", .delivery, unit: "records", default: "65536", 1...16_777_216, \.queueRecordsMax,
            "The same in records."),
        .choice(
            "overflow", .delivery, default: "pause", accepts: "\"pause\", \"drop-oldest\" or \"drop-newest\"",
            \.overflow,
            "For a program that does not keep up: stop reading the socket, which loses nothing while the edge keeps the connection, or drop application events, the oldest or the newest. Without effect in LOOP, which has no queue."
        ),
        .number(
            "records", .delivery, unit: "mask", default: "262142", 0...Int64.max, \.records,
            "Mask of (1 << kind): the kinds of records that reach the program; the default is every kind of this version."
        ),

        // MARK: Logs
        .text(
            "log_level", .observability, accepts: levels, isLive: true,
            "What the program itself is told of what the library does, by its log handler or, without one, by log records. Unset: info for a handler, else off."
        ) { options, value in
            options.log.level = LogLevel(name: value)
            return options.log.level != nil
        },
        .text(
            "log_areas", .observability, default: "all",
            accepts:
                "\"all\", or some of connection, channel, authorization, signin, delivery, network, wire and process, with commas between them",
            isLive: true,
            "Keeps every log to what is looked into: the areas that entries come from. Verbose wire is an entry for each message."
        ) { options, value in
            guard let areas = LogAreas(names: value) else { return false }
            options.log.areas = areas
            return true
        },
        .text(
            "log_console", .observability, default: "off", accepts: levels, isLive: true,
            "What goes to standard error, a line an entry."
        ) { options, value in
            guard let level = LogLevel(name: value) else { return false }
            options.log.console = level
            return true
        },
        .text(
            "log_file", .observability, unit: "path", accepts: "a path at which a regular file can be written",
            \.log.filePath,
            "A log that is there when something has gone wrong: a file for entries, made with mode 0600, that begins anew when it is old or large; the older ones are log_file.1, log_file.2 and so on. Several processes may share it."
        ),
        .text(
            "log_file_level", .observability, default: "info", accepts: levels, isLive: true,
            "What goes to log_file."
        ) { options, value in
            guard let level = LogLevel(name: value) else { return false }
            options.log.fileLevel = level
            return true
        },
        .number(
            "log_file_bytes_max", .observability, unit: "bytes", default: "10485760", 0...1_099_511_627_776,
            \.log.fileBytesMax,
            "Keeps a log from filling the disk: a file that would become larger begins anew. 0: no limit."),
        .number(
            "log_file_age_max_ms", .observability, unit: "ms", default: "86400000", 0...31_536_000_000,
            \.log.fileAgeMaxMs,
            "A file for each day, or whatever time: an entry that comes this long after a file's first begins a new one. 0: no limit."
        ),
        .number(
            "log_files_kept", .observability, unit: "files", default: "7", 1...Int64(RollingFile.keptMax),
            \.log.filesKept, "How far the log goes back: files that are kept, the newest included."),
    ]

    private static let levels: StaticString = "\"off\", \"error\", \"warn\", \"info\" or \"verbose\""
}
