import BirdRealtimeCore
import CBirdRealtimeABI
import Glibc

/// A small interpreter that calls every function of the header on clients of a loop, with whatever arguments, in whatever order and out of
/// handlers. Only what the header calls undefined is left out, and what would touch the network or files.
enum ExportsTarget {
    private static let stepsMax = 200
    /// Handlers find it here; everything happens on one thread.
    nonisolated(unsafe) fileprivate static var host: Host?
    nonisolated(unsafe) private static var peer: ScriptedPeer?
    nonisolated(unsafe) private static var runs = 0

    static func run(_ input: UnsafeRawBufferPointer) throws {
        let peer = try peer ?? ScriptedPeer()
        Self.peer = peer
        let firstFree = lowestFreeFD()
        let host = Host(input, peer)
        Self.host = host
        defer { Self.host = nil }
        var steps = 0
        while !host.choices.isAtEnd, steps < stepsMax {
            host.step()
            steps += 1
        }
        host.finish()
        if let fault = host.fault { throw Difference(description: fault) }
        runs += 1
        // The first runs open what stays open for the whole process.
        try require(runs < 100 || lowestFreeFD() == firstFree, "leaves a file open")
    }

    private static func lowestFreeFD() -> Int32 {
        let fd = dup(0)
        close(fd)
        return fd
    }
}

/// The program that uses the library.
private final class Host {
    static let names = ["public-a", "private-a", "presence-a", "private-encrypted-a", "a;b", "b"]
    /// Options whose values would have files written, names looked up or standard error used.
    static let untouched: Set<String> = ["log_file", "log_console"]
    static let paths: Set<String> = ["ca_file", "ca_path", "client_cert_file", "client_key_file"]
    private static let clientsMax = 3
    private static let nestingMax = 2

    var choices: Choices
    private(set) var fault: String?
    private let peer: ScriptedPeer
    private var nesting = 0

    private var options: [OpaquePointer] = []
    private var clients: [OpaquePointer] = []
    private var channels: [OpaquePointer] = []
    private var queues: [OpaquePointer] = []
    private var loops: [OpaquePointer] = []
    private var batches: [OpaquePointer] = []
    private var requests: [OpaquePointer] = []
    private var bindings: [UInt64] = []
    /// Registrations whose destructor has not run.
    private var registrations: Set<UInt> = []
    private var lastRegistration: UInt = 0

    init(_ input: UnsafeRawBufferPointer, _ peer: ScriptedPeer) {
        choices = Choices(input)
        self.peer = peer
        // What every input needs.
        makeLoop()
        makeOptions()
    }

    // MARK: - Arguments

    /// One of the handles, present or past, NULL, or no handle at all.
    private func handle(_ handles: [OpaquePointer]) -> OpaquePointer? {
        let choice = choices.byte()
        switch choice {
        case 255: return nil
        case 254: return OpaquePointer(bitPattern: UInt(truncatingIfNeeded: choices.word()))
        case 253: return choices.pick(loops + clients + channels + queues + options + requests + batches)
        default: return handles.isEmpty ? nil : handles[handles.count - 1 - Int(choice) % handles.count]
        }
    }

    /// A text, or NULL.
    private func withText<Result>(_ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        let bytes = choices.bytes()
        guard bytes != [0] else { return body(nil) }
        return withCopy(bytes + [0]) { body($0.bindMemory(to: CChar.self).baseAddress.map { UnsafePointer($0) }) }
    }

    private func withName<Result>(_ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        let choice = Int(choices.byte())
        guard choice < 128 else { return withText(body) }
        return Self.names[choice % Self.names.count].withCString(body)
    }

    /// With a place for the result, or NULL.
    private func into<Value>(_ value: Value, _ call: (UnsafeMutablePointer<Value>?) -> bird_status) {
        var value = value
        check(choices.bool() ? call(&value) : call(nil))
    }

    /// Copies out into a block of just that size.
    private func copyOut(_ call: (UnsafeMutablePointer<CChar>?, Int, UnsafeMutablePointer<Int>?) -> bird_status) {
        let size = Int(choices.byte()) * 8
        withCopy([UInt8](repeating: 0xAA, count: size)) { buffer in
            let text = buffer.bindMemory(to: CChar.self).baseAddress
            var length = 0
            let status = call(size == 0 ? nil : text, size, &length)
            check(status)
            if status == BIRD_OK, let text { expect(strlen(text) == length, "copies out another length") }
        }
    }

    // MARK: - Results

    func expect(_ condition: Bool, _ message: @autoclosure () -> String) {
        if !condition, fault == nil { fault = message() }
    }

    private func check(_ status: bird_status) {
        expect(status <= 0 && status >= -60, "status \(status)")
        if let name = bird_status_name(status) { expect(strlen(name) > 0, "no name") }
    }

    private func call(_ body: (UnsafeMutablePointer<OpaquePointer?>?) -> bird_status) {
        guard choices.byte() % 4 != 0 else { return check(body(nil)) }
        var error: OpaquePointer?
        let status = body(&error)
        check(status)
        expect((status == BIRD_OK) == (error == nil), "status \(status) and \(error == nil ? "no " : "")error")
        guard let error else { return }
        read(error)
        expect(bird_error_status(error) == status, "another status in the error")
        bird_error_free(error)
    }

    private func read(_ error: OpaquePointer?) {
        for text in [
            bird_error_field(error), bird_error_message(error), bird_error_endpoint(error), bird_error_channel(error),
        ] { touch(text) }
        _ = bird_error_area(error) &+ bird_error_code(error) &+ bird_error_http_status(error)
        _ = bird_error_curl_code(error) &+ bird_error_retriable(error)
    }

    private func touch(_ text: UnsafePointer<CChar>?) {
        guard let text else { return expect(false, "a text is NULL") }
        expect(String(validatingCString: text) != nil, "a text is not UTF-8")
    }

    private func touch(_ text: UnsafePointer<CChar>?, _ length: Int) {
        guard let text else { return expect(false, "a text is NULL") }
        expect(text[length] == 0, "no NUL behind a text")
        let bytes = UnsafeRawBufferPointer(start: text, count: length)
        expect(UTF8Validator.isValid(bytes), "a text is not UTF-8")
    }

    // MARK: - What the library calls

    private func register() -> UnsafeMutableRawPointer? {
        lastRegistration += 1
        registrations.insert(lastRegistration)
        return UnsafeMutableRawPointer(bitPattern: lastRegistration)
    }

    private let destructor: bird_destructor = { data in
        guard let host = ExportsTarget.host else { return }
        host.expect(host.registrations.remove(UInt(bitPattern: data)) != nil, "a destructor runs twice")
    }

    private let handler: bird_handler = { record, data in
        guard let host = ExportsTarget.host, let record else { return }
        host.expect(host.registrations.contains(UInt(bitPattern: data)), "a handler runs after its destructor")
        host.take(record)
    }

    private let logHandler: bird_log_handler = { entry, data in
        guard let host = ExportsTarget.host, let entry else { return }
        host.touch(entry.pointee.message, entry.pointee.message_length)
        host.expect(entry.pointee.message_length <= 2_048, "a long entry")
        host.touch(entry.pointee.channel_name)
        guard let client = host.clients.last else { return }
        var state: Int32 = 0
        host.expect(bird_client_state(client, &state) == BIRD_ERR_CALLBACK, "a call out of the log handler")
    }

    private func take(_ record: UnsafePointer<bird_record>) {
        read(record)
        guard nesting < Self.nestingMax, !choices.isAtEnd, choices.byte() % 3 == 0 else { return }
        nesting += 1
        step()
        nesting -= 1
        // Still valid, whatever was done.
        read(record)
    }

    private func read(_ record: UnsafePointer<bird_record>) {
        let fields = record.pointee
        expect(Int(fields.struct_size) >= MemoryLayout<bird_record>.size, "a short record")
        touch(fields.channel_name, Int(fields.channel_name_length))
        touch(fields.event, Int(fields.event_length))
        touch(fields.data, fields.data_length)
        _ = bird_data_is_json(fields.data, fields.data_length)
        guard let detail = fields.detail else { return }
        switch Int32(fields.kind) {
        case BIRD_RECORD_SUBSCRIBED, BIRD_RECORD_SUBSCRIPTION_ERROR:
            let subscription = detail.load(as: bird_subscription.self)
            touch(subscription.my_id)
            if subscription.error != nil { read(subscription.error) }
        case BIRD_RECORD_MEMBER_ADDED, BIRD_RECORD_MEMBER_REMOVED, BIRD_RECORD_SIGNED_IN:
            let member = detail.load(as: bird_member.self)
            touch(member.id, Int(member.id_length))
        case BIRD_RECORD_STATE, BIRD_RECORD_CONNECTING_IN:
            let change = detail.load(as: bird_state_change.self)
            for text in [change.reason_text, change.connection_id, change.policy] { touch(text) }
        case BIRD_RECORD_ERROR, BIRD_RECORD_SIGNIN_ERROR, BIRD_RECORD_DECRYPTION_ERROR:
            read(detail.load(as: bird_failure.self).error)
        case BIRD_RECORD_COMPLETION:
            let completion = detail.load(as: bird_completion.self)
            expect((completion.status == BIRD_OK) == (completion.error == nil), "a completion contradicts itself")
            read(completion.error)
        case BIRD_RECORD_REQUEST:
            let question = detail.load(as: bird_question.self)
            for text in [question.connection_id, question.channel_name, question.endpoint] { touch(text) }
            if let request = question.request, requests.last != request { requests.append(request) }
        case BIRD_RECORD_WATCHLIST:
            let watchlist = detail.load(as: bird_watchlist.self)
            for index in 0..<Int(watchlist.id_count) { touch(watchlist.ids[index]) }
        case BIRD_RECORD_LOG:
            let entry = detail.load(as: bird_log_entry.self)
            touch(entry.message, entry.message_length)
        default: break
        }
    }

    // MARK: - Calls

    func step() {
        switch choices.byte() % 60 {
        case 0: makeLoop()
        case 1: makeOptions()
        case 2, 3: setOption()
        case 4: makeClient()
        case 5: makeQueue()
        case 6: if let options = handle(options) { bird_options_destroy(options) }
        case 7: check(bird_client_destroy(handle(clients)))
        case 8: check(bird_queue_destroy(handle(queues)))
        case 9: check(bird_loop_destroy(handle(loops)))
        case 10, 11: call { bird_client_connect(handle(clients), $0) }
        case 12: check(bird_client_disconnect(handle(clients)))
        case 13: check(bird_client_retry_now(handle(clients)))
        case 14: changeOption()
        case 15: check(bird_client_network_hint(handle(clients), Int32(truncatingIfNeeded: choices.number())))
        case 16: wait()
        case 17: askClient()
        case 18, 19, 20: subscribe()
        case 21: call { bird_client_signin(handle(clients), UInt32(choices.byte()), UInt64(choices.byte()), $0) }
        case 22: memberChannel()
        case 23: bird_channel_release(handle(channels))
        case 24: check(bird_channel_unsubscribe(handle(channels)))
        case 25, 26: trigger()
        case 27: askChannel()
        case 28: members()
        case 29, 30, 31: bind()
        case 32: unbind()
        case 33: intern()
        case 34: check(bird_queue_wait(handle(queues), Int64(choices.byte() % 2)))
        case 35: check(bird_queue_wake(handle(queues)))
        case 36, 37: drain()
        case 38: check(bird_batch_release(handle(batches)))
        case 39: dispatch()
        case 40: askLoop()
        case 41, 42, 43: answer()
        case 44: askOption()
        case 45: statistics()
        case 46: askStatic()
        case 47: setMore()
        case 48: peer.end(choices.byte())
        case 49: peer.upgrade(choices.byte())
        case 50: peer.send(choices.bytes(isLong: true), to: choices.byte())
        case 51: peer.send(EdgeFrames.text(choices.bytes()), to: choices.byte())
        case 52: connect()
        case 53, 54, 55:
            peer.send(EdgeFrames.text(EdgeFrames.message(&choices, .bird, Self.names)), to: choices.byte())
        default: turn()
        }
    }

    /// Everything is given back.
    func finish() {
        nesting = Self.nestingMax
        for batch in batches { check(bird_batch_release(batch)) }
        for client in clients { check(bird_client_destroy(client)) }
        for channel in channels { bird_channel_release(channel) }
        for options in options { bird_options_destroy(options) }
        // Gone already, or now.
        for queue in queues {
            let status = bird_queue_destroy(queue)
            expect(status == BIRD_OK || status == BIRD_ERR_HANDLE, "a queue is \(status) at the end")
        }
        for loop in loops {
            let status = bird_loop_destroy(loop)
            expect(status == BIRD_OK || status == BIRD_ERR_HANDLE, "a loop is \(status) at the end")
        }
        peer.endAll()
        expect(registrations.isEmpty, "\(registrations.count) destructors have not run")
    }

    private func makeLoop() {
        guard loops.count < Self.clientsMax else { return check(bird_loop_create(nil)) }
        var loop: OpaquePointer?
        check(bird_loop_create(&loop))
        if let loop { loops.append(loop) }
    }

    private func makeQueue() {
        guard queues.count < Self.clientsMax else { return check(bird_queue_create(nil)) }
        var queue: OpaquePointer?
        check(bird_queue_create(&queue))
        if let queue { queues.append(queue) }
    }

    private func makeOptions() {
        guard options.count < Self.clientsMax else { return check(bird_options_create(nil)) }
        var made: OpaquePointer?
        check(bird_options_create(&made))
        guard let made else { return }
        options.append(made)
        check(bird_options_set(made, "app_key", "key", nil))
        check(bird_options_set(made, "ws_host", "127.0.0.1:\(peer.port)", nil))
    }

    private func makeClient() {
        guard let options = handle(options), clients.count < Self.clientsMax else {
            return check(bird_client_create(nil, nil, nil))
        }
        // Whatever was set, it stays on this machine and on this thread.
        let endpoint = "http://127.0.0.1:\(peer.port)/auth"
        let needed = [
            ("ws_host", "127.0.0.1:\(peer.port)"), ("allow_insecure", "1"), ("address", "127.0.0.1"),
            ("auth_endpoint", endpoint), ("member_auth_endpoint", endpoint), ("delivery", "loop"),
        ]
        guard needed.allSatisfy({ bird_options_set(options, $0.0, $0.1, nil) == BIRD_OK }),
            bird_options_set_loop(options, handle(loops)) == BIRD_OK
        else { return }
        if choices.bool() { check(bird_options_set_queue(options, handle(queues))) }
        call { error in
            var client: OpaquePointer?
            let status = bird_client_create(options, &client, error)
            if let client { clients.append(client) }
            return status
        }
    }

    /// A key of the table or none, and any value.
    private func withOption(_ body: (UnsafePointer<CChar>?) -> Void) {
        var option = bird_option()
        option.struct_size = UInt32(MemoryLayout<bird_option>.size)
        guard bird_options_describe(Int(choices.byte()), &option) == BIRD_OK, let key = option.key else {
            return withText(body)
        }
        guard !Self.untouched.contains(String(cString: key)) else { return }
        body(key)
    }

    private func setOption() {
        withOption { key in
            let handle = handle(options)
            if choices.bool() { return call { bird_options_set_int(handle, key, choices.number(), $0) } }
            if let key, Self.paths.contains(String(cString: key)) {
                return call { bird_options_set(handle, key, "/dev/null", $0) }
            }
            withText { value in call { bird_options_set(handle, key, value, $0) } }
        }
    }

    private func changeOption() {
        withOption { key in
            let handle = handle(clients)
            if choices.bool() { return call { bird_client_set_int(handle, key, choices.number(), $0) } }
            withText { value in call { bird_client_set(handle, key, value, $0) } }
        }
    }

    private func setMore() {
        let handle = handle(options)
        switch choices.byte() % 4 {
        case 0:
            withText { name in withText { value in call { bird_options_set_auth_header(handle, name, value, $0) } } }
        case 1: check(bird_options_set_tag(handle, choices.word()))
        case 2: check(bird_options_set_log(handle, choices.bool() ? logHandler : nil, register(), destructor))
        default: check(bird_set_delivery_threads(Int32(truncatingIfNeeded: choices.number())))
        }
    }

    private func wait() {
        let client = handle(clients)
        let timeoutMs = Int64(choices.byte() % 3)
        switch choices.byte() % 8 {
        case 0: check(bird_client_close(client, timeoutMs))
        case 1, 2: check(bird_client_flush(client, timeoutMs))
        default: check(bird_client_wait(client, Int32(truncatingIfNeeded: choices.number()), timeoutMs))
        }
    }

    private func askClient() {
        let client = handle(clients)
        switch choices.byte() % 4 {
        case 0:
            into(Int32(0)) { bird_client_state(client, $0) }
        case 1: copyOut { bird_client_connection_id(client, $0, $1, $2) }
        case 2: copyOut { bird_client_member_id(client, $0, $1, $2) }
        default: copyOut { bird_client_dump(client, $0, $1 * 64 > 4_096 ? $1 : min($1, 16), $2) }
        }
    }

    private func subscribe() {
        let client = handle(clients)
        withName { name in
            call { error in
                var channel: OpaquePointer?
                let status = bird_client_subscribe(client, name, UInt64(choices.byte()), &channel, error)
                if let channel { channels.append(channel) }
                return status
            }
        }
    }

    private func memberChannel() {
        var channel: OpaquePointer?
        check(bird_client_member_channel(handle(clients), &channel))
        if let channel { channels.append(channel) }
    }

    private func trigger() {
        let channel = handle(channels)
        let data = choices.bytes()
        let event = choices.byte()
        func send(_ name: UnsafePointer<CChar>?) {
            withCopy(data) { data in
                call { bird_channel_trigger(channel, name, data.isEmpty ? nil : data.baseAddress, data.count, $0) }
            }
        }
        if event < 200 { "client-x".withCString(send) } else { withText(send) }
    }

    private func askChannel() {
        let channel = handle(channels)
        switch choices.byte() % 5 {
        case 0: into(Int32(0)) { bird_channel_state(channel, $0) }
        case 1: into(Int32(0)) { bird_channel_kind(channel, $0) }
        case 2: copyOut { bird_channel_name(channel, $0, $1, $2) }
        case 3: copyOut { bird_channel_my_id(channel, $0, $1, $2) }
        default: check(bird_channel_set_tag(channel, choices.word()))
        }
    }

    private func members() {
        let channel = handle(channels)
        var count = 0
        check(bird_channel_member_count(channel, &count))
        var members: OpaquePointer?
        check(bird_channel_members(channel, &members))
        for index in 0...bird_members_count(members) {
            touch(bird_members_id(members, index))
            touch(bird_members_info(members, index))
            _ = bird_members_id_length(members, index)
        }
        bird_members_free(members)
    }

    private func bind() {
        let channel = handle(channels)
        let client = handle(clients)
        let kind = choices.byte() % 4
        let handler = choices.byte() == 0 ? nil : handler
        let destructor = destructor
        let data = register()
        var binding: UInt64 = 0
        func add(_ event: UnsafePointer<CChar>?) {
            call { error in
                switch kind {
                case 0, 1: bird_channel_bind(channel, event, handler, data, destructor, &binding, error)
                case 2: bird_client_bind(client, event, handler, data, destructor, &binding, error)
                default: bird_client_observe(client, choices.word(), handler, data, destructor, &binding, error)
                }
            }
        }
        if choices.bool() { add(nil) } else { withText(add) }
        bindings.append(binding)
    }

    private func unbind() {
        let channel = handle(channels)
        let client = handle(clients)
        switch choices.byte() % 5 {
        case 0, 1: check(bird_client_unbind(client, bindings.isEmpty ? choices.word() : choices.pick(bindings)))
        case 2: withText { check(bird_channel_unbind_event(channel, $0)) }
        case 3: withText { check(bird_client_unbind_event(client, $0)) }
        default: check(choices.bool() ? bird_channel_unbind_all(channel) : bird_client_unbind_all(client))
        }
    }

    private func intern() {
        let client = handle(clients)
        var id: UInt32 = 0
        withText { event in call { bird_client_intern(client, event, &id, $0) } }
    }

    private func drain() {
        var batch: OpaquePointer?
        var records: UnsafePointer<bird_record>?
        var count = 0
        var stride = 0
        let status = bird_queue_drain(handle(queues), &batch, &records, &count, &stride)
        check(status)
        guard status == BIRD_OK, let batch, let records else { return }
        batches.append(batch)
        for index in 0..<count {
            read((UnsafeRawPointer(records) + index * stride).assumingMemoryBound(to: bird_record.self))
        }
        if choices.bool() { check(bird_batch_release(batch)) }
    }

    private func dispatch() {
        var count = 0
        check(bird_queue_dispatch(handle(queues), Int(choices.byte()), &count))
    }

    private func askLoop() {
        let loop = handle(loops)
        let queue = handle(queues)
        into(Int64(0)) { bird_loop_deadline(loop, $0) }
        into(Int32(0)) { bird_loop_fd(loop, $0) }
        into(Int32(0)) { bird_queue_fd(queue, $0) }
        check(bird_loop_wake(loop))
    }

    private func answer() {
        let request = handle(requests)
        switch choices.byte() % 6 {
        case 0, 1, 2:
            call { bird_request_authorize(request, "key:signature", #"{"member_id":"1"}"#, nil, $0) }
        case 3:
            withText { auth in
                withText { data in
                    withText { secret in call { bird_request_authorize(request, auth, data, secret, $0) } }
                }
            }
        case 4:
            withText { name in
                withText { value in
                    let header = [bird_header(name: name, value: value)]
                    call { bird_request_headers(request, header, Int(choices.byte() % 2), $0) }
                }
            }
        default:
            if choices.bool() { return call { bird_request_proceed(request, choices.number(), $0) } }
            withText { text in call { bird_request_fail(request, Int32(choices.byte()), text, $0) } }
        }
    }

    private func askOption() {
        var option = bird_option()
        option.struct_size = UInt32(choices.byte()) * 2
        let index = Int(truncatingIfNeeded: choices.number())
        into(option) { bird_options_describe(index, $0) }
        expect(bird_options_count() > 0, "no options")
    }

    /// The caller's struct may be of any version.
    private func statistics() {
        let size = UInt32(choices.byte()) * 2
        let client = handle(clients)
        withCopy([UInt8](repeating: 0, count: max(Int(size), 4))) { memory in
            memory.storeBytes(of: size, as: UInt32.self)
            check(bird_client_statistics(client, memory.baseAddress?.assumingMemoryBound(to: bird_statistics.self)))
        }
    }

    private func askStatic() {
        let number = Int32(truncatingIfNeeded: choices.number())
        touch(bird_status_name(number))
        touch(bird_status_message(number))
        touch(bird_state_name(number))
        touch(bird_log_level_name(number))
        touch(bird_log_area_name(number))
        check(bird_version_check(number))
        touch(bird_version_string())
        let bytes = choices.bytes()
        let isJSON = withCopy(bytes) { bird_data_is_json($0.isEmpty ? nil : $0.baseAddress, $0.count) }
        expect(isJSON == (ReferenceJSON(bytes) == nil ? 0 : 1), "is JSON: \(isJSON)")
    }

    // MARK: - The peer

    private func turn() {
        check(bird_loop_run_once(handle(loops), 0))
        peer.accept()
    }

    /// The way to a connection, which the input need not find byte by byte.
    private func connect() {
        call { bird_client_connect(handle(clients), $0) }
        let loop = loops.last
        for _ in 0..<3 {
            check(bird_loop_run_once(loop, 0))
            peer.accept()
        }
        peer.upgrade(0)
        peer.send(
            EdgeFrames.text(
                Array(
                    #"{"event":"bird:connection_established","data":"{\"connection_id\":\"1.1\",\"activity_timeout\":120}"}"#
                        .utf8)), to: 0)
        for _ in 0..<2 { check(bird_loop_run_once(loop, 0)) }
    }
}
