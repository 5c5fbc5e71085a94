"""Faults that a person could make in the pure core, each of which the simulation must find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "Sources/BirdRealtimeCore"


@dataclass(frozen=True)
class Fault:
    id: str
    """Below the sources of the core."""
    file: str
    """What is wrong then."""
    what: str
    """Stands once in the file."""
    old: str
    new: str

    def problem(self) -> str:
        """Why it cannot be planted, or nothing."""
        path = CORE / self.file
        if not path.is_file():
            return f"{self.id}: there is no {self.file}"
        count = path.read_text().count(self.old)
        return "" if count == 1 else f"{self.id}: its old text stands {count} times in {self.file}, not once"

    def planted(self, text: str) -> str:
        return text.replace(self.old, self.new)


FAULTS = [
    # When the next attempt comes.
    Fault(
        "backoff-unbounded",
        "Session/Backoff.swift",
        "the window of the backoff grows beyond its maximum",
        "return isTooLarge ? maxMs : min(maxMs, windowMs)",
        "return isTooLarge ? maxMs : windowMs",
    ),
    Fault(
        "backoff-no-jitter",
        "Session/Backoff.swift",
        "many clients come back in step: the wait is the whole window",
        "Int64.random(in: 0...windowMs(baseMs, exponent, maxMs), using: &random)",
        "windowMs(baseMs, exponent, maxMs)",
    ),
    Fault(
        "backoff-half-jitter",
        "Session/Backoff.swift",
        "the wait is drawn from the upper half of the window",
        "Int64.random(in: 0...windowMs(baseMs, exponent, maxMs), using: &random)",
        "Int64.random(in: windowMs(baseMs, exponent, maxMs) / 2...windowMs(baseMs, exponent, maxMs), using: &random)",
    ),
    Fault(
        "handshake-keeps-backoff",
        "Session/SessionConnection.swift",
        "a handshake does not begin the schedule of reconnects anew",
        "        reportedFailure = nil\n        backoff.restart()\n        change(",
        "        reportedFailure = nil\n        change(",
    ),
    Fault(
        "gives-up-late",
        "Session/Backoff.swift",
        "one attempt more than the limit",
        "attempts >= attemptsMax }",
        "attempts > attemptsMax }",
    ),
    Fault(
        "refusal-not-counted",
        "Session/SessionReconnect.swift",
        "an attempt that the program refused does not count",
        "            attempts &+= 1\n            backoff.attemptBegan()\n",
        "            attempts &+= 1\n",
    ),
    Fault(
        "waits-anew-for-ever",
        "Session/Backoff.swift",
        "a schedule that begins again goes on counting from where a hint about the network had it begin",
        "        attempts = 0\n        attemptsBefore = 0\n",
        "        attempts = 0\n",
    ),
    Fault(
        "over-capacity-at-once",
        "Session/Backoff.swift",
        "an edge over capacity is given no second",
        "min(maxMs, Self.overCapacityFloorMs + waitMs(&random))",
        "min(maxMs, waitMs(&random))",
    ),
    Fault(
        "at-once-band-short",
        "Session/Backoff.swift",
        "close code 4299 waits as any other",
        "case 4200...4299: self = .atOnce",
        "case 4200..<4299: self = .atOnce",
    ),
    Fault(
        "over-capacity-band-shifted",
        "Session/Backoff.swift",
        "close code 4100 does not mean over capacity",
        "case 4100...4199: self = .overCapacity",
        "case 4101...4199: self = .overCapacity",
    ),
    Fault(
        "flap-guard-not-at-once",
        "Session/Backoff.swift",
        "an edge that closes young connections with 4200 is redialled without a pause",
        "        return max(delayMs, guardMs(&random))",
        "        return band == .atOnce ? 0 : max(delayMs, guardMs(&random))",
    ),
    Fault(
        "flap-guard-counts-on",
        "Session/Backoff.swift",
        "a connection that lasted does not end a row of short ones",
        "lifeMs < Self.shortLifeMs ? shortLives + 1 : 0",
        "lifeMs < Self.shortLifeMs ? shortLives + 1 : shortLives",
    ),
    Fault(
        "silence-is-consent-at-once",
        "Session/SessionReconnect.swift",
        "the program that is asked before a reconnect has no time to answer",
        "        planned?.due = question.deadline\n",
        "",
    ),
    Fault(
        "any-reconnect-answer",
        "Session/SessionReconnect.swift",
        "the answer to an old question counts for a new one",
        "guard let plan = planned, plan.permission == .asked(id) else { return }",
        "guard let plan = planned, case .asked = plan.permission else { return }",
    ),
    Fault(
        "reconnect-question-left",
        "Session/SessionReconnect.swift",
        "a question about an attempt is not withdrawn when the plan is dropped",
        "            turn.effects.append(.withdraw(id))\n",
        "            _ = id\n",
    ),
    Fault(
        "planned-attempt-late",
        "Session/Session.swift",
        "a planned attempt does not begin in the millisecond in which it is due",
        "planned.due <= turn.now, !isStalled",
        "planned.due < turn.now, !isStalled",
    ),
    # Connections.
    Fault(
        "connect-while-waiting-only",
        "Session/SessionConnection.swift",
        "retry now dials though a connection is there",
        '        guard state == .unavailable else { return }\n        begin("retry now',
        '        begin("retry now',
    ),
    Fault(
        "stale-end",
        "Session/Session.swift",
        "the end of an old transport ends the present one",
        "        case .transportEnded(let id, let end):\n            guard id == transport else { return }\n",
        "        case .transportEnded(_, let end):\n",
    ),
    Fault(
        "stale-message",
        "Session/Session.swift",
        "messages of an old transport are read",
        "        case .message(let id, let message):\n            guard id == transport else { return }\n",
        "        case .message(_, let message):\n",
    ),
    Fault(
        "no-handshake-deadline",
        "Session/Session.swift",
        "nobody asks when the time of an attempt is over",
        "        next = Self.earlier(next, handshakeDue)\n",
        "",
    ),
    Fault(
        "refusal-pusher-4300",
        "Wire/Dialect.swift",
        "the other dialect's refusals from 4300 on are tried again",
        "        4000...4099 ~= code || (refusesFrom4300 && 4300...4999 ~= code)",
        "        4000...4099 ~= code",
    ),
    Fault(
        "identifier-kept",
        "Session/SessionConnection.swift",
        "authorizations for the old connection id are used after the edge has given a new one",
        "            case .authorizing: begin(applicant, &turn)\n",
        "            case .authorizing: break\n",
    ),
    Fault(
        "plan-number",
        "Session/SessionConnection.swift",
        "the planned attempt is announced with the number of the last",
        "            change.attempt &+= 1\n",
        "",
    ),
    Fault(
        "unwritten-outlive",
        "Session/SessionConnection.swift",
        "frames that the old connection has not written are awaited on the new one",
        "        unwritten = []\n        lastWritten",
        "        lastWritten",
    ),
    Fault(
        "liveness-outlives",
        "Session/SessionConnection.swift",
        "a connection that has ended is still watched",
        "        liveness.stop()\n",
        "",
    ),
    # Handshakes, and what comes instead of them.
    Fault(
        "ids-without-bound",
        "Session/SessionConnection.swift",
        "each new connection id makes who waits for the authorizer ask again, however many come",
        "turn.now < last + Self.connectionIDsApartMs",
        "turn.now < last",
    ),
    Fault(
        "error-is-no-close",
        "Wire/Dialect.swift",
        "an error before the handshake says nothing about the attempt",
        "refusesByError: true",
        "refusesByError: false",
    ),
    Fault(
        "greeting-unknown",
        "Session/SessionInbound.swift",
        "the greeting of a server of the other dialect is passed over",
        "            if let other = Dialect.greeting(message.event) { handshakeCame(of: other, &turn) }\n",
        "            break\n",
    ),
    # Errors that name a channel.
    Fault(
        "error-ends-subscription",
        "Session/SessionInbound.swift",
        "an error that names a subscribed channel ends its subscription",
        "slot.map({ unanswered[.channel($0)] != nil }) ?? true",
        "slot.map({ channels[$0].hasAskedEdge }) ?? true",
    ),
    Fault(
        "error-is-no-answer",
        "Session/SessionInbound.swift",
        "an error that names a channel which waits for its answer refuses nothing",
        "        refused(channel, data, &turn)\n",
        "",
    ),
    # Liveness.
    Fault(
        "life-unheard",
        "Session/Liveness.swift",
        "what comes in does not answer a ping",
        "        lastInbound = now\n        hasHeard = true\n",
        "        lastInbound = now\n",
    ),
    Fault(
        "one-miss-more",
        "Session/Liveness.swift",
        "a dead edge is given one ping more than it may miss",
        "misses + 1 >= rules.missesMax",
        "misses >= rules.missesMax",
    ),
    Fault(
        "own-timeout-wins",
        "Session/Liveness.swift",
        "the program's activity timeout wins over a shorter one of the edge",
        "case (let server?, let own?): min(server, own)",
        "case (_, let own?): own",
    ),
    Fault(
        "ping-ends-patience",
        "Session/Liveness.swift",
        "the next look at an unanswered ping is a whole interval away",
        "private func nextLook(_ now: Instant) -> Instant { min(now + activityTimeoutMs, pongDue) }",
        "private func nextLook(_ now: Instant) -> Instant { now + activityTimeoutMs }",
    ),
    Fault(
        "any-pong-ends-a-doubt",
        "Session/Liveness.swift",
        "the pong of an earlier ping ends a doubt",
        "        if let doubt, isAnswered(doubt.ping) { self.doubt = nil }\n",
        "        doubt = nil\n",
    ),
    Fault(
        "handshake-ends-a-doubt",
        "Session/SessionConnection.swift",
        "a repeated handshake, whenever it was read, counts as the edge's life and ends a doubt",
        "            liveness.handshakeRepeated(serverTimeoutMs: handshake.activityTimeoutMs, turn.now)\n",
        "            liveness.begin(serverTimeoutMs: handshake.activityTimeoutMs, turn.now)\n",
    ),
    Fault(
        "pings-outlive",
        "Session/Liveness.swift",
        "pings of the old connection wait for pongs on the new one",
        "        pinged = .none\n        ponged = .none\n        due",
        "        due",
    ),
    Fault(
        "options-without-liveness",
        "Session/Session.swift",
        "changed options of the keep-alive do not reach the connection",
        "        liveness.configure(changed, dialect, turn.now)\n",
        "",
    ),
    # The network.
    Fault(
        "network-without-permission",
        "Session/SessionNetwork.swift",
        "an attempt for the sake of the network needs no permission",
        "        plan.permission = configuration.asksBeforeReconnect ? .needed : .given\n        planned = plan",
        "        plan.permission = .given\n        planned = plan",
    ),
    # Authorizers.
    Fault(
        "one-question-more",
        "Session/Authorizations.swift",
        "one question more than may be open",
        "inFlight.count < inFlightMax }",
        "inFlight.count <= inFlightMax }",
    ),
    Fault(
        "question-left",
        "Session/SessionAdmissions.swift",
        "who stops waiting for the authorizer does not withdraw the question",
        "if case .authorizing(let id) = previous, authorizations.end(id) != nil {",
        "if case .authorizing(let id) = previous, phase == .idle, authorizations.end(id) != nil {",
    ),
    Fault(
        "place-not-freed",
        "Session/SessionAdmissions.swift",
        "a question that is withdrawn keeps its place",
        "if case .authorizing(let id) = previous, authorizations.end(id) != nil {",
        "if case .authorizing(let id) = previous {",
    ),
    # Subscriptions.
    Fault(
        "public-channels-only",
        "Session/SessionAdmissions.swift",
        "a new connection does not get the channels that need an authorizer",
        "channels[slot].kind != .public {\n            begin(.channel(slot), &turn)",
        "channels[slot].kind == .member {\n            begin(.channel(slot), &turn)",
    ),
    Fault(
        "answer-time-from-the-call",
        "Session/SessionAdmissions.swift",
        "the edge's time to answer begins before it can read the question",
        "        enter(.pending, applicant, &turn)\n        unwritten",
        "        enter(.pending, applicant, due: turn.now + configuration.answerTimeoutMs, &turn)\n        unwritten",
    ),
    Fault(
        "silence-is-denial",
        "Session/SessionAdmissions.swift",
        "an edge that gives no answer is not asked again",
        "retryLater(applicant, fault, retryAfterMs: nil, reportsAfter: 0, &turn)",
        "deny(applicant, fault, &turn)",
    ),
    Fault(
        "operations-end-twice",
        "Session/SessionAdmissions.swift",
        "operations that have ended end again",
        "        let operations = self[applicant].operations\n        self[applicant].operations = []\n",
        "        let operations = self[applicant].operations\n",
    ),
    Fault(
        "repeated-subscribe-never-ends",
        "Session/SessionChannels.swift",
        "a subscribe of what is subscribed has no end",
        "            allowKeyRefresh(slot, &turn)\n            complete(operation, applicant, nil, &turn)\n",
        "            allowKeyRefresh(slot, &turn)\n",
    ),
    Fault(
        "left-before-the-answer",
        "Session/SessionAnswers.swift",
        "a channel is left behind a subscribe that has no answer",
        "        if asked.frames == 0, channels[slot].isSubscribed {",
        "        if asked.frames > 0 || channels[slot].isSubscribed {",
    ),
    Fault(
        "owed-forgotten",
        "Session/SessionAnswers.swift",
        "a channel that is left before the answer is forgotten",
        "        return asked.order == 0\n",
        "        return true\n",
    ),
    Fault(
        "owed-kept-at-the-edge",
        "Session/SessionAnswers.swift",
        "the success of a channel that was left is not answered",
        "        if asked.isHeld {\n            send(",
        "        if asked.isHeld, channels[slot].isWanted {\n            send(",
    ),
    Fault(
        "adopts-any-authorization",
        "Session/SessionAnswers.swift",
        "who subscribes again takes the frame that is under way whatever it was authorized for",
        "if !asked.isHeld, credentials.areSame(as: asked.sent) {",
        "if !asked.isHeld {",
    ),
    Fault(
        "adopts-held",
        "Session/SessionAnswers.swift",
        "who subscribes again waits for a success that has come already",
        "if !asked.isHeld, credentials.areSame(as: asked.sent) {",
        "if credentials.areSame(as: asked.sent) {",
    ),
    Fault(
        "next-not-asked",
        "Session/SessionAnswers.swift",
        "who has another authorization waits for ever once the frame before is answered",
        "        if let next = asked.next { ask(.channel(slot), next, &turn) }\n    }\n",
        "    }\n",
    ),
    Fault(
        "next-outlives-the-id",
        "Session/SessionConnection.swift",
        "an authorization for the old connection id is used once the frame before is answered",
        "            case .pending where self[applicant].asked.next != nil: begin(applicant, &turn)\n",
        "            case .pending where self[applicant].asked.next != nil: break\n",
    ),
    Fault(
        "denial-not-used-up",
        "Session/SessionAdmissions.swift",
        "another answer is expected to a frame that an error has denied",
        "                answered(applicant)\n                deny(applicant, cause, &turn)",
        "                deny(applicant, cause, &turn)",
    ),
    Fault(
        "fence-denies-all",
        "Session/AnswerFence.swift",
        "every frame that a pong finds without an answer is taken for refused by the last error",
        "return rest.popFirst()?.fault",
        "return rest.popFirst()?.fault ?? errors.last?.fault",
    ),
    Fault(
        "fence-before-the-ping",
        "Session/SessionAnswers.swift",
        "the pong of an earlier ping tells of frames behind it",
        "asked.order > 0 && asked.ping < liveness.ponged",
        "asked.order > 0",
    ),
    Fault(
        "fence-too-early",
        "Session/AnswerFence.swift",
        "an error is about frames that were not written when it came",
        "            rest = rest.drop { $0.order < asked.order }\n",
        "",
    ),
    Fault(
        "fence-without-ping",
        "Session/AnswerFence.swift",
        "the ping that an error asks for is not sent",
        "        answersInOrder && (pinged == pingBeforeLastFrame || pinged == ponged)",
        "        false",
    ),
    Fault(
        "fence-and-guess",
        "Session/AnswerFence.swift",
        "an edge that answers pings is not waited for: the only one that waits is blamed",
        "var isTrusted: Bool { answersInOrder && answersPings }",
        "var isTrusted: Bool { false }",
    ),
    Fault(
        "fence-left-open",
        "Session/AnswerFence.swift",
        "a pong that was lost leaves open what an error was about",
        "var hasErrors: Bool { !errors.isEmpty }",
        "var hasErrors: Bool { false }",
    ),
    Fault(
        "order-assumed",
        "Session/SessionAnswers.swift",
        "an edge that has answered behind the pong is trusted all the same",
        "        if self[applicant].phase != .admitted, hasPassed(asked) { fence.orderIsBroken() }\n",
        "",
    ),
    Fault(
        "pong-settles-nobody",
        "Session/SessionAnswers.swift",
        "a frame that the edge has ignored is waited for when its channel is left",
        "        answered(applicant, frames: .max)\n",
        "",
    ),
    Fault(
        "errors-outlive",
        "Session/AnswerFence.swift",
        "errors of the old connection deny on the new one",
        "        errors = []\n        pingOfErrors = .none\n",
        "        pingOfErrors = .none\n",
    ),
    Fault(
        "unwritten-confirmed",
        "Session/SessionAnswers.swift",
        "a success answers a frame that is not written",
        "guard asked.order > 0, asked.firstOrder <= lastWritten else",
        "guard asked.order > 0 else",
    ),
    Fault(
        "first-is-again",
        "Session/SessionChannels.swift",
        "the first success says that it is not the first",
        "        let channel = channels[slot]\n        channels[slot].wasSubscribed = true\n",
        "        channels[slot].wasSubscribed = true\n        let channel = channels[slot]\n",
    ),
    Fault(
        "interruption-from-the-loss",
        "Session/SessionAdmissions.swift",
        "an interruption begins when the loss is noticed, not with the last that was heard",
        "interruptedSince = liveness.lastInbound",
        "interruptedSince = turn.now",
    ),
    Fault(
        "route-stays",
        "Session/SessionAdmissions.swift",
        "events of a channel that is subscribed no more are delivered",
        "            endKeyRefresh(slot, &turn)\n            routes.remove(channels[slot].name)\n",
        "            endKeyRefresh(slot, &turn)\n",
    ),
    Fault(
        "name-stays",
        "Session/ChannelTable.swift",
        "a name that was given up still leads to its old channel",
        "        byName[ExactText(channel.name)] = nil\n",
        "",
    ),
    Fault(
        "error-unblamed",
        "Session/SessionAdmissions.swift",
        "an error is never taken for the answer that is due",
        "            unanswered[applicant] = now + 2 * configuration.answerTimeoutMs\n",
        "",
    ),
    Fault(
        "slow-route",
        "Session/NameTable.swift",
        "a name that stood behind one that was removed is not found any more",
        "            if distance >= (index - hole) & mask {",
        "            if distance > (index - hole) & mask {",
    ),
    Fault(
        "deadline-order",
        "Session/DeadlineHeap.swift",
        "deadlines come out of order once some have been taken out",
        "for child in [2 * parent + 1, 2 * parent + 2] where",
        "for child in [2 * parent + 1] where",
    ),
    Fault(
        "many-lose-one",
        "FewOrMany.swift",
        "the ninth entry of a small table is lost",
        "                for entry in few { many[entry.key] = entry.value }\n                many[key] = value\n",
        "                for entry in few { many[entry.key] = entry.value }\n",
    ),
    # The identity.
    Fault(
        "identity-outlives",
        "Session/SessionSignin.swift",
        "the identity stays though its connection has gone",
        "        if memberID != nil {\n            memberID = nil\n",
        '        if memberID == "" {\n            memberID = nil\n',
    ),
    Fault(
        "refresh-forgotten",
        "Session/SessionSignin.swift",
        "signins that wait for the next round have no end when the connection is lost",
        "        signin.admission.operations += signin.nextRound ?? []\n        signin.nextRound = nil\n",
        "        signin.nextRound = nil\n",
    ),
    Fault(
        "refresh-for-ever",
        "Session/SessionSignin.swift",
        "a round of the signin that was asked for once is repeated for ever",
        "        signin.nextRound = nil\n        signin.admission.operations += operations\n",
        "        signin.admission.operations += operations\n",
    ),
    Fault(
        "numeric-id",
        "Session/Payload.swift",
        "members whose ids the edge writes as numbers are not seen",
        "guard let id = node?.stringOrNumberText, !id.isEmpty",
        "guard let id = node?.string, !id.isEmpty",
    ),
    # Presence, and bounds.
    Fault(
        "roster-tiny",
        "Session/Roster.swift",
        "members beyond the second are not told",
        "membersMax = 100_000",
        "membersMax = 2",
    ),
    Fault(
        "roster-bytes",
        "Session/Roster.swift",
        "what members who have gone took of the roster's bytes is never free again",
        "            bytes -= entry.textBytes\n",
        "            bytes += 1_000_000\n",
    ),
    Fault(
        "watchlist-one-entry",
        "Session/Payload.swift",
        "one entry of a watchlist frame is told",
        "watchlistEntriesMax = 1_024",
        "watchlistEntriesMax = 1",
    ),
    Fault(
        "watchlist-uncounted",
        "Session/Payload.swift",
        "malformed entries of a watchlist are not counted",
        "                    malformed += 1\n                    return true\n",
        "                    return true\n",
    ),
    Fault(
        "connection-id-bound",
        "Session/Payload.swift",
        "ids of ordinary length count as too long",
        "idBytesMax = 1_024",
        "idBytesMax = 1",
    ),
    # Encrypted channels.
    Fault(
        "key-overtaken",
        "Session/SessionEncryption.swift",
        "events overtake those that wait for the key",
        "        guard encryption.held.isEmpty else {\n            hold(event, slot)\n            return\n        }\n",
        "",
    ),
    Fault(
        "key-shortcut",
        "Session/SessionEncryption.swift",
        "the short way is open while events wait for the key",
        "let encryption = encryptions[slot], encryption.held.isEmpty\n        else { return nil }",
        "let encryption = encryptions[slot]\n        else { return nil }",
    ),
    Fault(
        "key-hammered",
        "Session/SessionEncryption.swift",
        "each event that does not open asks for the key",
        "encryption.refresh.phase == .idle, turn.now >= encryption.refreshableAt else",
        "encryption.refresh.phase == .idle else",
    ),
    Fault(
        "held-forgotten",
        "Session/SessionConnection.swift",
        "events that wait for the key are lost with the connection",
        "        settleEverythingHeld(&turn)\n",
        "",
    ),
    Fault(
        "old-key-kept",
        "Session/SessionEncryption.swift",
        "the new key is not used",
        "        encryptions[slot]?.key = key\n",
        "",
    ),
    # Frames.
    Fault(
        "mask-misaligned",
        "WebSocket/FrameEncoder.swift",
        "the last bytes of a frame are masked with the wrong part of the key",
        "key[(index - start) & 3]",
        "key[index & 3]",
    ),
    Fault(
        "length-126",
        "WebSocket/FrameEncoder.swift",
        "a payload of 126 bytes is announced as a longer one",
        "if count < 126 {",
        "if count <= 126 {",
    ),
    Fault(
        "fragments-validated",
        "WebSocket/FrameDecoder.swift",
        "the bytes of a fragment that were checked count for the next",
        "        assembly.append(contentsOf: payload)\n        validated = 0\n",
        "        assembly.append(contentsOf: payload)\n",
    ),
    Fault(
        "assembly-kept",
        "WebSocket/FrameDecoder.swift",
        "a message in fragments begins with the one before it",
        "            assembly.removeAll(keepingCapacity: assembly.capacity <= Self.assemblyBytesKept)\n",
        "",
    ),
    Fault(
        "control-in-message",
        "WebSocket/FrameDecoder.swift",
        "a ping between fragments is against the rules",
        "        if !header.opcode.isControl {\n            guard (header",
        "        if true {\n            guard (header",
    ),
    Fault(
        "kind-of-the-last",
        "WebSocket/FrameDecoder.swift",
        "the last fragment leaves the message open",
        "        guard validator.isComplete else { throw .invalidUTF8 }\n        fragmented = nil\n",
        "        guard validator.isComplete else { throw .invalidUTF8 }\n",
    ),
    Fault(
        "close-code-swapped",
        "WebSocket/FrameDecoder.swift",
        "the bytes of a close code are swapped",
        "UInt16(payload[0]) << 8 | UInt16(payload[1])",
        "UInt16(payload[1]) << 8 | UInt16(payload[0])",
    ),
    Fault(
        "frames-behind-the-upgrade",
        "WebSocket/UpgradeResponse.swift",
        "frames behind the answer to the upgrade begin with its last bytes",
        "return .accepted(consumed: end)",
        "return .accepted(consumed: end - 2)",
    ),
    # JSON.
    Fault(
        "object-closed-as-array",
        "Wire/JSONReader.swift",
        "a container behind a nested one is taken for the wrong kind",
        "        isObject = (words[(top &>> 6) & 7] &>> UInt64(truncatingIfNeeded: top)) & 1 == 1\n",
        "        isObject = (words[(depth &>> 6) & 7] &>> UInt64(truncatingIfNeeded: depth)) & 1 == 1\n",
    ),
    Fault(
        "channel-null",
        "Wire/MessageScanner.swift",
        "data that is no string is not seen",
        "                    dataKind = isString ? .string : .value\n",
        "                    dataKind = isString ? .string : .none\n",
    ),
]
