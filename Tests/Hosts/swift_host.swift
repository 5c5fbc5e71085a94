// swift_host HOST:PORT: a program with a Swift runtime of its own, static or shared, beside the one inside the library. Both are at work.

import CBirdRealtimeABI
import Dispatch

func need(_ status: bird_status, _ what: String) {
    guard status == BIRD_OK else { fatalError("\(what): \(String(cString: bird_status_name(status)))") }
}

func connected(_ server: String) -> OpaquePointer? {
    var options: OpaquePointer?
    var client: OpaquePointer?
    need(bird_options_create(&options), "options")
    for (key, value) in [("app_key", "pk_host"), ("ws_host", server), ("allow_insecure", "1")] {
        need(bird_options_set(options, key, value, nil), key)
    }
    need(bird_client_create(options, &client, nil), "create")
    bird_options_destroy(options)
    need(bird_client_connect(client, nil), "connect")
    need(bird_client_wait(client, BIRD_STATE_CONNECTED, 30_000), "wait")
    return client
}

/// What a runtime does: generics, strings, hashing, reference counts.
func work(_ seed: Int) -> Int {
    var counts: [String: [Int]] = [:]
    for number in 0..<2_000 { counts["key \((number &* seed) % 97)", default: []].append(number) }
    return counts.values.reduce(0) { $0 + $1.count }
}

func workOnManyThreads() async -> Int {
    await withTaskGroup(of: Int.self) { group in
        for seed in 1...8 { group.addTask { work(seed) } }
        var sum = 0
        for await part in group { sum += part }
        return sum
    }
}

let server = CommandLine.arguments[1]
for _ in 0..<5 {
    let client = connected(server)
    let sum = await workOnManyThreads()
    DispatchQueue.concurrentPerform(iterations: 4) { [server] _ in
        need(bird_client_destroy(connected(server)), "destroy")
    }
    guard sum == 16_000 else { fatalError("\(sum)") }
    need(bird_client_destroy(client), "destroy")
}
print("done")
