// Runs inputs through a target: `fuzz TARGET FILE…` replays them. Built by scripts/fuzz it is a fuzzer, and takes libFuzzer's arguments.
import FuzzTargets
import Glibc

func complain(_ text: String) -> Never {
    let line = "fuzz: \(text)\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
    exit(2)
}

enum Chosen {
    static let target: FuzzTarget = {
        let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: ", ")
        guard let name = CommandLine.arguments.dropFirst().first, let target = FuzzTarget(rawValue: name) else {
            complain("the first argument is a target: \(names)")
        }
        return target
    }()
}

nonisolated func run(_ input: UnsafeRawBufferPointer) {
    do {
        try Chosen.target.run(input)
    } catch {
        fatalError("\(error)")
    }
}

_ = Chosen.target

#if FUZZER
    typealias Callback = @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32

    @_silgen_name("LLVMFuzzerRunDriver")
    func runFuzzer(
        _ count: UnsafeMutablePointer<Int32>,
        _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>, _ callback: Callback
    ) -> Int32

    // The name of the target is no argument of the fuzzer's.
    var count = CommandLine.argc - 1
    var arguments = CommandLine.unsafeArgv + 1
    arguments[0] = CommandLine.unsafeArgv[0]
    exit(
        runFuzzer(&count, &arguments) { bytes, count in
            run(UnsafeRawBufferPointer(start: bytes, count: count))
            return 0
        })
#else
    for path in CommandLine.arguments.dropFirst(2) {
        guard let file = fopen(path, "r") else { complain("\(path): \(String(cString: strerror(errno)))") }
        var input = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&input, 1, input.count, file)
        fclose(file)
        input[..<count].withUnsafeBytes(run)
    }
#endif
