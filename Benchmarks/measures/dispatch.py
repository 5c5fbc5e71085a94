"""What it costs to find an event's channel among many, and to call many handlers."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from processes import PROGRAMS, Command, run, serving
from section import Goal, Plan, Section, figure, progress

DATA_BYTES = 64
EVENTS = 400_000
# Calls of handlers in one run.
CALLS_MAX = 4_000_000
# Each channel has had an event before.
WARMUP_EVENTS = 150_000
RATIO_MAX = 1.5
# Subscribing 100,000 channels takes longer than their events.
QUICK_RUNS = 2


@dataclass(frozen=True)
class Case:
    channels: int
    active: int
    """How many of them have events."""
    handlers: int = 1

    @property
    def events(self) -> int:
        return min(EVENTS, CALLS_MAX // self.handlers)

    @property
    def warmup(self) -> int:
        return WARMUP_EVENTS if self.active > 1 else self.events // 10


CHECK_CHANNELS = [Case(1, 1), Case(100, 100)]
QUICK_CHANNELS = [Case(1, 1), Case(100_000, 1), Case(100_000, 100_000)]
FULL_CHANNELS = [
    Case(1, 1),
    Case(100, 100),
    Case(10_000, 1),
    Case(10_000, 10_000),
    Case(100_000, 1),
    Case(100_000, 100),
    Case(100_000, 100_000),
]
CHECK_HANDLERS = [Case(1, 1), Case(1, 1, 10)]
QUICK_HANDLERS = [Case(1, 1), Case(1, 1, 100)]
FULL_HANDLERS = [Case(1, 1), Case(1, 1, 10), Case(1, 1, 100), Case(1, 1, 1_000)]

Runs = dict[Case, list[float]]
"""CPU time for each event in ns, of each run."""


def measure_cases(cases: list[Case], plan: Plan) -> Runs:
    runs: Runs = {case: [] for case in cases}
    with ExitStack() as stack:
        ports = {}
        for case in cases:
            server: Command = [PROGRAMS / "many_server", *map(str, (case.channels, DATA_BYTES, case.active))]
            ports[case], _ = stack.enter_context(serving(server))
        for _ in range(QUICK_RUNS if plan.is_quick else plan.repetitions):
            for case in cases:
                numbers = (case.channels, case.handlers, ports[case], DATA_BYTES, case.warmup, case.events)
                found: dict[str, Any] = run("many channels", [PROGRAMS / "client_many", *map(str, numbers)])
                runs[case].append(found["cpu_seconds"] / found["events"] * 1e9)
    return runs


def ratio(runs: Runs, case: Case, reference: Case) -> float:
    """Of runs that were neighbours."""
    return statistics.median(mine / other for mine, other in zip(runs[case], runs[reference], strict=True))


def channels(plan: Plan) -> Section:
    progress("events of many channels")
    cases = CHECK_CHANNELS if plan.is_check else QUICK_CHANNELS if plan.is_quick else FULL_CHANNELS
    runs = measure_cases(cases, plan)
    one = next(iter(runs))
    return Section(
        "CPU time for each event beside the number of channels, C loop, 64 B",
        ["channels", "with events", "ns", "beside 1 channel"],
        [
            [
                f"{case.channels:,}",
                f"{case.active:,}",
                figure(statistics.median(times)),
                f"{ratio(runs, case, one):.2f}",
            ]
            for case, times in runs.items()
        ],
        [
            Goal(
                f"dispatch, 100,000 channels / 1, events on {case.active:,}", ratio(runs, case, one), at_most=RATIO_MAX
            )
            for case in runs
            if case.channels == 100_000
        ],
        [
            "Events come to the channels in a random order, in frames of one size and from a block of one size. With "
            "events on all of many channels, what the client keeps for each comes from memory, not from the cache.",
        ],
        data=[{"channels": case.channels, "active": case.active, "cpu_ns": times} for case, times in runs.items()],
    )


def handlers(plan: Plan) -> Section:
    progress("events with many handlers")
    cases = CHECK_HANDLERS if plan.is_check else QUICK_HANDLERS if plan.is_quick else FULL_HANDLERS
    runs = measure_cases(cases, plan)
    base = statistics.median(runs[Case(1, 1)])
    return Section(
        "CPU time for each event beside the number of its handlers, C loop, 64 B",
        ["handlers", "ns an event", "ns for each more"],
        [
            [
                f"{case.handlers:,}",
                figure(statistics.median(times)),
                figure((statistics.median(times) - base) / (case.handlers - 1)) if case.handlers > 1 else "",
            ]
            for case, times in runs.items()
        ],
        data=[{"handlers": case.handlers, "cpu_ns": times} for case, times in runs.items()],
    )


def measure_dispatch(plan: Plan) -> list[Section]:
    return [channels(plan), handlers(plan)]
