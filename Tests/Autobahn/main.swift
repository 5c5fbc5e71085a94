// Goes through the cases of a fuzzing server of the Autobahn test suite on loopback; see scripts/autobahn.
import BirdRealtimeCore
import Glibc

func ask(_ port: UInt16, _ path: String) throws -> String {
    var answer = ""
    var conversation = try Conversation(port: port, path: path)
    try conversation.run { message, _ in
        answer = String(decoding: message, as: UTF8.self)
        return false
    }
    return answer
}

func complain(_ text: String) {
    let line = text + "\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
}

guard CommandLine.arguments.count == 3, let port = UInt16(CommandLine.arguments[1]) else {
    complain("usage: autobahn-client PORT AGENT")
    exit(2)
}
let agent = CommandLine.arguments[2]
do {
    guard let count = Int(try ask(port, "/getCaseCount")), count > 0 else { throw Failure("the server has no cases") }
    for number in 1...count {
        var conversation = try Conversation(port: port, path: "/runCase?case=\(number)&agent=\(agent)")
        try conversation.run { _, _ in true }
    }
    _ = try ask(port, "/updateReports?agent=\(agent)")
    print(count)
} catch {
    complain("autobahn-client: \(error)")
    exit(1)
}
