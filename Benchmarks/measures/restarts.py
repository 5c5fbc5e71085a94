"""How soon clients are back after their server was restarted."""

from __future__ import annotations

import random
import statistics

from many_clients import Run, measure
from section import Plan, Section, progress

QUICK = {1_000: 1}
FULL = {1_000: 5, 10_000: 3}
BACKOFF_BASE_S = 1.0
BACKOFF_MAX_S = 30.0
TRIALS = 25


def expected_s(clients: int, down_s: float) -> float:
    """When the last attempt begins that finds the server up, if delays follow the formula: the median of trials."""

    def last(randomness: random.Random) -> float:
        latest = 0.0
        for _ in range(clients):
            at, attempts = 0.0, 0
            while attempts == 0 or at < down_s:
                at += randomness.uniform(0, min(BACKOFF_MAX_S, BACKOFF_BASE_S * 2**attempts))
                attempts += 1
            latest = max(latest, at)
        return latest

    return statistics.median(
        last(random.Random(trial))  # noqa: S311 - draws of a formula
        for trial in range(TRIALS)
    )


def measure_restarts(plan: Plan) -> list[Section]:
    rows, data = [], {}
    for clients, times in (QUICK if plan.is_quick else FULL).items():
        progress(f"{clients:,} clients whose server is restarted")
        runs = [measure(Run("loop", clients, restarts=1, idle_ms=1)) for _ in range(times)]
        restarts = [run["restarts"][0] for run in runs]
        back = sorted(restart["back_ms"] / 1000 for restart in restarts)
        down = statistics.median(restart["down_ms"] for restart in restarts) / 1000
        rows.append(
            [
                f"{clients:,}",
                f"{down:.2f}",
                f"{statistics.median(back):.2f}",
                f"{back[0]:.2f} to {back[-1]:.2f}",
                f"{expected_s(clients, 0):.2f} to {expected_s(clients, down):.2f}",
                f"{max(restart['busiest_100ms'] for restart in restarts):,}",
                f"{statistics.median(run['connect_ms'] for run in runs) / 1000:.2f}",
            ]
        )
        data[clients] = runs
    return [
        Section(
            "Clients of one process whose server is restarted",
            [
                "clients",
                "s down",
                "s until all are back",
                "lowest and highest",
                "s expected",
                "busiest 100 ms",
                "s to connect",
            ],
            rows,
            notes=[
                "All edges are killed and started again; back is who has its channel again. The wait is by design: an "
                "attempt waits for a draw from 0 to 1 s, the next one from 0 to 2 s and so on, for the server's sake.",
                "Expected: such draws, from edges that nobody tried in vain to edges that all found down so long. "
                "Busiest: connections in 100 ms. To connect: how long the same clients take when all begin at once.",
            ],
            data=data,
        )
    ]
