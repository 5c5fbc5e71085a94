/// Runs worlds one after the other.
enum Simulation {
    /// Ends with the first world in which something is wrong. That one is run again for its trace: what follows from a seed is always the
    /// same, and writing everything down takes longer than everything else.
    static func run(
        seeds: some Sequence<UInt64>, stepsMax: Int = .max, traces: Bool = false,
        _ progress: (Figures) -> Void = { _ in }
    ) -> (figures: Figures, failure: SimulationFailure?) {
        var figures = Figures()
        for seed in seeds {
            let world = World(seed: seed, traces: traces)
            if let failure = world.run(stepsMax: stepsMax) {
                guard !traces else { return (figures, failure) }
                let again = World(seed: seed, traces: true)
                return (figures, again.run(stepsMax: stepsMax) ?? failure)
            }
            figures.add(world.figures)
            progress(figures)
        }
        return (figures, nil)
    }
}
