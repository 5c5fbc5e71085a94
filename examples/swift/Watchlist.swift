import BirdRealtime
import Foundation

/// Signs in as a member and prints who comes online and who goes offline of the members that this one watches: the list is part of what
/// the backend signs for the signin. Each line of input signs in again, which is how a changed list gets to the edge; the end of the
/// input ends it.
///
///     swift-example watchlist APP_KEY EDGE MEMBER_AUTH_ENDPOINT MEMBER_ID
///
/// MEMBER_AUTH_ENDPOINT gets MEMBER_ID as a bearer token, as the local edge takes it; a real backend gets a session token.
@MainActor
func watchlist(_ arguments: [String]) async throws {
    var options = options(arguments)
    options.memberAuthEndpoint = URL(string: arguments[2])
    options.authHeaders = ["authorization": "Bearer \(arguments[3])"]
    let bird = client(options)
    let watchlist = bird.member.watchlist
    watchlist.bind("online") { ids in say("online: \(ids.joined(separator: " "))") }
    watchlist.bind("offline") { ids in say("offline: \(ids.joined(separator: " "))") }
    say("signed in as \(try await bird.signin().memberId)")
    for await _ in lines() {
        try await bird.signin(refresh: true)
        say("signed in again")
    }
    say("still online: \(watchlist.online.joined(separator: " "))")
}
