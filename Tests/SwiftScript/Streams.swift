import BirdRealtime
import Synchronization

/// Sequences of events that are read on command, by the channel's name; "*" is the client's.
final class Streams: Sendable {
    private let sequences = Mutex<[String: EventSequence]>([:])
    private let readers = Mutex<[String: Task<Void, Never>]>([:])

    func open(_ name: String, _ bird: BirdRealtime) {
        let sequence = name == "*" ? bird.events() : bird.subscribe(name).events()
        sequences.withLock { $0[name] = sequence }
        say("open \(name)")
    }

    func drop(_ name: String) {
        sequences.withLock { $0[name] = nil }
        say("dropped \(name)")
    }

    /// Takes so many events in one task, which signs in between the first and the others, or is cancelled from the start.
    func take(_ name: String, _ count: Int, signingInTo bird: BirdRealtime?, isCancelled: Bool) {
        guard let sequence = sequences.withLock({ $0[name] }) else { return say("no stream \(name)") }
        let reader = Task {
            if isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
            do throws(RealtimeError) {
                var taken = 0
                for try await event in sequence {
                    say("took \(name) \(event.channelName) \(event.name) \(event.data?.text ?? "-")")
                    taken += 1
                    if taken == count { return }
                    if taken == 1, let bird { await signin(bird) }
                }
                say("end \(name)")
            } catch {
                say("threw \(name) \(error.kind.rawValue) \(error.message)")
            }
        }
        readers.withLock { $0[name] = reader }
    }

    func cancel(_ name: String) {
        readers.withLock { $0[name] }?.cancel()
    }

    private func signin(_ bird: BirdRealtime) async {
        do {
            say("signin \(try await bird.signin().memberId)")
        } catch {
            say("no signin \(error)")
        }
    }
}
