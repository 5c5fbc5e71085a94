import BirdRealtime

/// Subscribes to a channel and tells, for each line of its input, what the client has done so far: a few counters, and for the line "dump"
/// all that a bug report should say. The end of the input ends it.
///
///     swift-example statistics APP_KEY EDGE CHANNEL
@MainActor
func statistics(_ arguments: [String]) async {
    let bird = client(options(arguments))
    bird.subscribe(arguments[2])
    for await line in lines() {
        if line == "dump" {
            say("\(bird.dump)")
            continue
        }
        let now = bird.statistics
        say(
            "\(now.channelsSubscribed) of \(now.channels) channels, \(now.eventsDelivered) events in "
                + "\(now.messagesReceived) messages, \(now.reconnects) reconnects, \(now.eventsDropped) dropped")
    }
}
