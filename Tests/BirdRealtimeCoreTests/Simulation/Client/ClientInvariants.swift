@testable import BirdRealtimeCore

/// What holds after every step.
extension SimulatedClient {
    func checkAlways() throws {
        try require(state == told.state, "has told \(told.state), and is \(state)")
        try require(session.memberID == told.identity, "has told another identity")
        try checkConnection()
        try checkChannels()
        try checkOperations()
        try sealed.check(now, waitMsMax: session.isStalled ? .max / 2 : configuration.authTimeoutMs)
    }

    private func checkConnection() throws {
        let hasTransport = state == .connecting || state == .connected
        try require(hasTransport == (transport != nil), "is \(state) with transport \(String(describing: transport))")
        try require(session.transport == transport, "has another transport than it has opened")
        try require((state == .connected) == !session.connectionID.isEmpty, "has a wrong connection id")
        try require(attempts.openQuestion == nil || state == .unavailable, "waits for leave that nobody needs")
        try require(state != .unavailable || session.isStalled || session.nextDeadline != nil, "plans nothing")
        try require(
            state != .connecting || now <= attempts.began + configuration.connectTimeoutMs,
            "an attempt lasts longer than its deadline")
        try require(
            state != .unavailable || configuration.reconnectAttemptsMax == 0
                || attempts.plannedInVain < configuration.reconnectAttemptsMax, "goes on though it should give up")
        let intervalMs = min(Int64(ModelEdge.activityTimeoutSeconds) * 1_000, configuration.activityTimeoutMs ?? .max)
        let hasUnread = socket?.isPaused == true && socket?.link.unread.isEmpty == false
        if state == .connected, !hasUnread {
            try silence.checkKept(now, intervalMs: intervalMs, configuration)
        }
        try setbacks.check()
    }

    private func checkChannels() throws {
        var subscribed = 0
        var held = 0
        for slot in session.channels.allSlots where session.channels.isUsed(slot) {
            let channel = session.channels[slot]
            try checkAsked(channel)
            guard channel.isWanted else { continue }
            subscribed += channel.isSubscribed ? 1 : 0
            held += session.encryptions[slot]?.held.count ?? 0
            let told = told.channels[channel.reference]
            try require(told == channel.state, "\(channel.name) is \(channel.state), and told is another state")
            let isQueued = channel.admission.phase == .queued || session[.key(slot)].phase == .queued
            try require(
                !isQueued || session.isStalled || openQuestions.count == configuration.authorizationsInFlightMax,
                "\(channel.name) waits though an authorizer could be asked")
            try require(
                (route(channel.name) == channel.reference) == channel.isSubscribed, "\(channel.name) is routed wrongly")
            try require(
                told != .subscribed || state == .connected, "\(channel.name) is subscribed without a connection")
            try require(
                channel.admission.phase != .idle || state != .connected, "does nothing about \(channel.name)")
        }
        try require(
            session.signin.admission.phase != .idle || !session.signin.isArmed || state != .connected,
            "does nothing about the signin")
        try require(session.routes.count == subscribed, "routes what is not subscribed")
        try require(held == session.heldTotal.events, "holds \(held) events, and counts \(session.heldTotal.events)")
        try require(
            held <= Session.heldEventsMax && session.heldTotal.bytes <= 2 * Session.heldBytesMax, "holds too much")
        try require(session.channels.owed.count <= ChannelTable.owedMax, "remembers too many channels")
        let known = session.channels.count
        try require(
            session.encryptions.keys.allSatisfy { session.channels.isUsed($0) }, "keeps keys of channels that are gone")
        try require(session.deadlines.count <= 4 * known + 64, "keeps \(session.deadlines.count) deadlines")
        try require(
            session.authorizations.waiters.count <= 2 * known + 65,
            "keeps \(session.authorizations.waiters.count) waiters")
    }

    /// What waits for the edge's answer has been asked on this connection.
    private func checkAsked(_ channel: Subscription) throws {
        let (name, asked) = (channel.name, channel.admission.asked)
        try require(
            asked.frames == 0 || asked.order > 0 && confirmations.frames[name] ?? 0 >= asked.frames,
            "waits for \(asked.frames) answers about \(name)")
        try require(
            channel.isWanted || asked.isInherited && asked.order > 0 && channel.admission.phase == .idle,
            "keeps \(name), which nobody wants")
        try require(
            !channel.isSubscribed || !asked.isInherited, "has subscribed \(name) by the frame of another holder")
    }

    /// Each accepted operation is at exactly one place until it ends.
    private func checkOperations() throws {
        var waiting = session.signin.admission.operations + (session.signin.nextRound ?? [])
        for slot in session.channels.allSlots where session.channels.isUsed(slot) {
            waiting += session.channels[slot].admission.operations
        }
        let isComplete = waiting.count == program.openOperations.count
        try require(
            isComplete && waiting.allSatisfy(program.openOperations.contains),
            "operations \(waiting) wait, and \(program.openOperations.sorted()) have not ended")
    }
}
