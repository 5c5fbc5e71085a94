import BirdRealtimeCore
import Testing

/// The two kinds of block against plain loops over bytes.
@Suite struct ByteBlockTests {
    private func mask(_ bytes: [UInt8], _ isSet: (UInt8) -> Bool) -> UInt32 {
        bytes.enumerated().reduce(0) { isSet($1.element) ? $0 | 1 << UInt32($1.offset) : $0 }
    }

    private let samples: [[UInt8]] = {
        var generator = SeededGenerator(seed: 16)
        let interesting: [UInt8] = [
            0, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x2F, 0x5B, 0x5C, 0x5D, 0x7F, 0x80, 0x9F, 0xA2, 0xDC, 0xFF,
        ]
        let every = stride(from: 0, to: 256, by: 16).map { start in (0..<16).map { UInt8(start + $0) } }
        return every
            + (0..<5_000).map { round in
                (0..<16).map { _ in
                    round % 2 == 0
                        ? interesting.randomElement(using: &generator) ?? 0
                        : UInt8.random(in: 0...255, using: &generator)
                }
            }
    }()

    @Test func wordsAgreeWithBytes() {
        for bytes in samples {
            bytes.withUnsafeBufferPointer { buffer in
                guard let base = buffer.baseAddress else { return }
                let block = WordBlock(base)
                #expect(block.mask(of: 0x22) == mask(bytes) { $0 == 0x22 })
                #expect(block.mask(of: 0x5C) == mask(bytes) { $0 == 0x5C })
                #expect(block.controls == mask(bytes) { $0 < 0x20 })
                #expect(block.highBits == mask(bytes) { $0 >= 0x80 })
                #expect(block.selfEscapes == mask(bytes) { $0 == 0x22 || $0 == 0x5C || $0 == 0x2F })
                #expect(block.specialLanes.highBits == mask(bytes) { $0 == 0x22 || $0 == 0x5C || $0 < 0x20 })
            }
        }
    }

    @Test func blockOfThisProcessorAgreesWithWords() {
        for (bytes, others) in zip(samples, samples.dropFirst()) {
            bytes.withUnsafeBufferPointer { first in
                others.withUnsafeBufferPointer { second in
                    guard let first = first.baseAddress, let second = second.baseAddress else { return }
                    let (block, words) = (ByteBlock(first), WordBlock(first))
                    #expect(block.mask(of: 0x22) == words.mask(of: 0x22))
                    #expect(block.mask(of: 0xFF) == words.mask(of: 0xFF))
                    #expect(block.controls == words.controls)
                    #expect(block.highBits == words.highBits)
                    #expect(block.selfEscapes == words.selfEscapes)
                    #expect((block | ByteBlock(second)).highBits == (words | WordBlock(second)).highBits)
                    #expect(block.specialLanes.highBits == words.specialLanes.highBits)
                    let pattern: [UInt8] = (0..<16).map { others[$0] & 1 == 0 ? 0xFF : 0x00 }
                    var (selected, expected) = (pattern, pattern)
                    pattern.withUnsafeBufferPointer { pattern in
                        guard let pattern = pattern.baseAddress else { return }
                        selected.withUnsafeMutableBufferPointer { output in
                            guard let output = output.baseAddress else { return }
                            ByteBlock.select(ByteBlock(pattern), block, ByteBlock(second)).store(to: output)
                        }
                        expected.withUnsafeMutableBufferPointer { output in
                            guard let output = output.baseAddress else { return }
                            WordBlock.select(WordBlock(pattern), words, WordBlock(second)).store(to: output)
                        }
                    }
                    #expect(selected == (0..<16).map { pattern[$0] == 0xFF ? bytes[$0] : others[$0] })
                    #expect(selected == expected)
                }
            }
        }
    }
}
