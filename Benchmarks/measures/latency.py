"""How long an event is under way from the server's write to the handler, when events come at a steady rate."""

from __future__ import annotations

import statistics
import subprocess
from dataclasses import asdict, dataclass

from clients import LATENCY_CHECK_CLIENTS, LATENCY_CLIENTS, LATENCY_LIMIT, Client
from processes import PROGRAMS, Command, run, serving
from section import Goal, Plan, Section, figure, progress

RATES = (1_000, 20_000)
DATA_BYTES = 256
# Events come slowly, and the rare ones count.
SECONDS_TIMES = 3
REPETITIONS_MAX = 5
PERCENTILES = {"p50": "p50", "p99": "p99", "p999": "p99.9"}
REFERENCE = LATENCY_LIMIT.name
# Of the reference's, at the lowest rate.
WANTED = {"p50": 1.3, "p99": 2.0}
WANTED_CLIENT = "C loop"


@dataclass(frozen=True)
class Measurement:
    latency_ns: dict[str, int]
    cpu_seconds: float
    late_share: float
    """Of the events: those that the server sent more than an interval after their time."""


def measure_once(client: Client, rate: int, seconds: float, port: int, server: subprocess.Popen[str]) -> Measurement:
    """The first tenth is received and not measured."""
    events = int(rate * seconds)
    printed = run(
        client.name,
        [*client.command, *map(str, (port, DATA_BYTES, events // 10, events))],
        {"BENCH_LATENCY": "1"},
    )
    sent, late = map(int, server.stdout.readline().split() if server.stdout else ())
    return Measurement(printed["latency_ns"], printed["cpu_seconds"] / printed["seconds"], min(1, late / sent))


def measure_rate(rate: int, plan: Plan) -> dict[str, list[Measurement]]:
    progress(f"latency at {rate:,} events a second")
    order = LATENCY_CHECK_CLIENTS if plan.is_check else LATENCY_CLIENTS
    runs: dict[str, list[Measurement]] = {client.name: [] for client in order}
    command: Command = [PROGRAMS / "flood_server", "--rate", str(rate), "--bytes", str(DATA_BYTES)]
    with serving(command) as (port, server):
        for _ in range(min(plan.repetitions, REPETITIONS_MAX)):
            for client in order:
                seconds = plan.seconds_per_run * SECONDS_TIMES
                runs[client.name].append(measure_once(client, rate, seconds, port, server))
            order = order[1:] + order[:1]
    return runs


def ratio(runs: list[Measurement], others: list[Measurement], percentile: str) -> float:
    """Of runs that were neighbours."""
    return statistics.median(
        run.latency_ns[percentile] / other.latency_ns[percentile] for run, other in zip(runs, others, strict=True)
    )


def row(client: str, runs: list[Measurement], others: list[Measurement]) -> list[str]:
    microseconds = [statistics.median(run.latency_ns[name] for run in runs) / 1000 for name in PERCENTILES]
    return [
        client,
        *map(figure, microseconds),
        *(figure(ratio(runs, others, name)) for name in WANTED),
        f"{statistics.median(run.cpu_seconds for run in runs) * 100:.1f}",
        f"{statistics.median(run.late_share for run in runs) * 100:.2f}",
    ]


def measure(plan: Plan) -> list[Section]:
    sections = []
    for rate in RATES[:1] if plan.is_quick else RATES:
        runs = measure_rate(rate, plan)
        sections.append(
            Section(
                f"Latency at {rate:,} events of {DATA_BYTES} B a second, µs",
                ["client", *PERCENTILES.values(), "p50 / limit", "p99 / limit", "CPU %", "late %"],
                [row(client, of_client, runs[REFERENCE]) for client, of_client in runs.items()],
                notes=[
                    "From the server's write to the handler: the percentiles of each run, and of these the median.",
                    "CPU: of the client, in percent of a core. Late: the part of the events that the server sent more "
                    "than an interval after their time, because other programs had its core.",
                ],
                data={client: [asdict(run) for run in of_client] for client, of_client in runs.items()},
            )
        )
        if rate == RATES[0]:
            sections[-1].goals = [
                Goal(
                    f"{WANTED_CLIENT} / {REFERENCE}, latency {PERCENTILES[name]} at {rate:,}/s",
                    ratio(runs[WANTED_CLIENT], runs[REFERENCE], name),
                    at_most=times,
                )
                for name, times in WANTED.items()
            ]
    return sections
