// Runs inputs through the target that it is called like: `build/fuzz/frames FILE…` replays them. Built by scripts/fuzz it is a fuzzer, and
// takes libFuzzer's arguments.
import FuzzTargets
import Glibc

func complain(_ text: String) -> Never {
    let line = "fuzz: \(text)\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
    exit(2)
}

enum Chosen {
    /// libFuzzer starts the program again to merge corpora, with arguments of its own.
    static let target: FuzzTarget = {
        let name = CommandLine.arguments[0].split(separator: "/").last ?? ""
        guard let target = FuzzTarget(rawValue: String(name)) else {
            let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: ", ")
            complain("it is called \(name), which is no target; they are \(names)")
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

    var count = CommandLine.argc
    var arguments = CommandLine.unsafeArgv
    exit(
        runFuzzer(&count, &arguments) { bytes, count in
            run(UnsafeRawBufferPointer(start: bytes, count: count))
            return 0
        })
#else
    for path in CommandLine.arguments.dropFirst() {
        guard let file = fopen(path, "r") else { complain("\(path): \(String(cString: strerror(errno)))") }
        var input = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&input, 1, input.count, file)
        fclose(file)
        input[..<count].withUnsafeBytes(run)
    }
#endif
