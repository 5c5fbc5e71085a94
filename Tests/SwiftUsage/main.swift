// Runs the calls of Usage.swift, each when a line names it.
//
//     swift-usage WS_HOST AUTH_ENDPOINT MEMBER_AUTH_ENDPOINT

import BirdRealtime

let arguments = CommandLine.arguments
let bird = makeClient(arguments[1], arguments[2], arguments[3])

// Lines are read on a thread of their own: the main queue stays free for handlers.
let lines = AsyncStream<String> { continuation in
    DispatchQueue.global().async {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
    }
}
for await line in lines {
    switch line {
    case "watch": watch(bird)
    case "subscribe": subscribe(bird)
    case "join": join(bird)
    case "render": render(bird)
    case "type": try type(bird.subscribe("presence-room-42"))
    case "identify": try await identify(bird)
    case "stop": stop(bird)
    case "start": start(bird)
    default: print("unknown:", line)
    }
}

func renderMembers(_ members: [String: Member]) { print("here:", members.keys.sorted()) }
func showReconnectingBanner() { print("banner on") }
func hideReconnectingBanner() { print("banner off") }
func showSignedOutScreen() { print("signed out") }
