@testable import BirdRealtimeCore

extension World {
    /// What can be going to happen.
    enum Action {
        case applicationCall(SimulatedClient)
        case mishap(SimulatedClient)
        case publish
        case dialed(SimulatedClient, Link)
        case dialFailed(SimulatedClient, TransportID)
        case writable(SimulatedClient, Link)
        case bytesToEdge(Link, [UInt8])
        case bytesToClient(Link, [UInt8])
        case read(SimulatedClient, Link)
        /// The stream ends for the client, or for the edge.
        case endToClient(SimulatedClient, Link)
        case endToEdge(Link)
        case heard(Link)
        case upgrade(Link, key: String)
        case handshake(Link)
        case edgeWork(Link, key: String)
        indirect case authorized(SimulatedClient, AuthorizationQuestion, Result<HTTPAnswer, Fault>)
        case decision(SimulatedClient, QuestionID, ReconnectAnswer)
        case keepsUp(SimulatedClient)
        case heal(SimulatedClient)

        /// Whom it happens to.
        var client: SimulatedClient? {
            switch self {
            case .publish: nil
            case .bytesToEdge(let link, _), .bytesToClient(let link, _), .endToEdge(let link), .heard(let link),
                .upgrade(let link, _), .handshake(let link), .edgeWork(let link, _):
                link.client
            default: actor
            }
        }

        /// Who does it, and does not while its process is stopped.
        var actor: SimulatedClient? {
            switch self {
            case .applicationCall(let client), .dialed(let client, _), .dialFailed(let client, _),
                .writable(let client, _), .read(let client, _), .endToClient(let client, _),
                .authorized(let client, _, _), .decision(let client, _, _), .keepsUp(let client), .mishap(let client),
                .heal(let client):
                client
            case .publish, .bytesToEdge, .bytesToClient, .endToEdge, .heard, .upgrade, .handshake, .edgeWork: nil
            }
        }
    }

    func perform(_ action: Action) throws {
        if let actor = action.actor, actor.frozenUntil > now {
            schedule(action, at: actor.frozenUntil)
            return
        }
        try action.actor?.wake()
        switch action {
        case .applicationCall(let client):
            guard isChaotic else { return }
            try client.callSomething()
            schedule(action, in: 0...3_000)
        case .mishap(let client):
            guard isChaotic else { return }
            if let kind = pick(FaultKind.mishaps), strikes(kind, client) { try client.befalls(kind) }
            schedule(action, in: 0...4_000)
        case .publish:
            edge.publish()
            schedule(action, in: 0...(isChaotic ? 150 : 12_000))
        case .dialed(let client, let link): try client.dialed(link)
        case .dialFailed(let client, let transport): try client.dialFailed(transport)
        case .writable(let client, let link): try client.writable(link)
        case .bytesToEdge(let link, let bytes): try edge.receive(bytes, from: link)
        case .bytesToClient(let link, let bytes): try link.arrived(bytes)
        case .read(let client, let link): try client.readable(link)
        case .endToClient(let client, let link): try client.streamEnded(link)
        case .endToEdge(let link): edge.lose(link)
        case .heard(let link): link.speak()
        case .upgrade(let link, let key): edge.answerUpgrade(link, key)
        case .handshake(let link): edge.greet(link)
        case .edgeWork(let link, let key): try edge.work(link, key)
        case .authorized(let client, let question, let result): try client.authorized(question, result)
        case .decision(let client, let id, let answer): try client.decided(id, answer)
        case .keepsUp(let client): try client.keepsUpAgain()
        case .heal(let client): try client.heal()
        }
    }
}
