import FuzzTargets
import Glibc
import Testing

@testable import BirdRealtimeCore

/// What fuzzers have found worth keeping goes through their targets again.
@Suite struct FuzzCorpusTests {
    @Test(arguments: FuzzTarget.allCases)
    func theCorpusFindsNothing(_ target: FuzzTarget) throws {
        let inputs = try Self.inputs(of: target)
        #expect(inputs.count >= 10)
        for (line, input) in inputs.enumerated() {
            do {
                try input.withUnsafeBytes { try target.run($0) }
            } catch {
                Issue.record("line \(line + 1) of \(target.rawValue).txt: \(error)")
            }
        }
    }

    /// One in base64 on each line.
    private static func inputs(of target: FuzzTarget) throws -> [[UInt8]] {
        let directory = #filePath.utf8.split(separator: UInt8(ascii: "/")).dropLast(2)
            .map { String(decoding: Array($0), as: UTF8.self) }
        let path = "/" + directory.joined(separator: "/") + "/Fuzz/Corpus/\(target.rawValue).txt"
        let file = try #require(fopen(path, "r"), "\(path): \(String(cString: strerror(errno)))")
        defer { fclose(file) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            guard count > 0 else { break }
            text += buffer[..<count]
        }
        return try text.split(separator: UInt8(ascii: "\n")).map { line in
            let line = Array(line)
            var bytes = [UInt8](repeating: 0, count: line.count)
            let count = line.withUnsafeBufferPointer { line in
                bytes.withUnsafeMutableBufferPointer { bytes in
                    bytes.baseAddress.flatMap { Base64.decode(line, into: $0) }
                }
            }
            return Array(bytes.prefix(try #require(count, "a line is no base64")))
        }
    }
}
