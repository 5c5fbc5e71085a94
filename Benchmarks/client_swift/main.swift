import BirdRealtime
import Glibc

// A Swift program with one handler on the main queue, which takes each event's text ("raw") or reads its value ("json"), or with
// a loop over a sequence of events ("sequence").
//
//     swift-bench raw|json|sequence PORT BYTES WARMUP EVENTS

let run = Run(CommandLine.arguments)
var options = BirdRealtimeOptions(appKey: "bench", wsHost: "127.0.0.1:\(run.port)", autoConnect: false)
// Over TLS if the environment has this.
options.caFile = getenv("BENCH_CA_FILE").map { String(cString: $0) }
options.allowInsecure = options.caFile == nil
let bird = BirdRealtime(options: options)
let channel = bird.subscribe("bench")

switch CommandLine.arguments[1] {
case "raw":
    channel.bind("tick") { data in run.count(data?.text.utf8.count) }
case "json":
    channel.bind("tick") { data in run.count(data.flatMap(textLength)) }
case "sequence":
    let events = channel.events()
    Task {
        for try await event in events { run.count(event.data?.text.utf8.count) }
    }
default:
    fail(Run.usage)
}
DispatchQueue.main.asyncAfter(deadline: .now() + 60) { fail("the events did not arrive in time") }
bird.connect()
dispatchMain()

/// How long the JSON text is from which this was read: every string of the value is taken out of it.
func textLength(_ value: JSONValue) -> Int? {
    if let string = value.string { return string.utf8.count + 2 }
    // Two brackets; two quotes and a comma with each string, the last comma left out.
    return value.array?.reduce(1) { $0 + ($1.string ?? "").utf8.count + 3 }
}
