"""Measures the clients of this repository beside the limits of this machine.

Each client receives the same flood of events, in runs that take turns, so that a disturbance meets all.
A client prints one line of JSON: {"events": N, "seconds": S, "cpu_seconds": C, "allocations": A or null}.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "build/c"
RESULTS = ROOT / "build/bench/results.json"

BENCHMARKS = ROOT / "Benchmarks"


def python(program: str, *arguments: str) -> list[str | Path]:
    return [sys.executable, BENCHMARKS / program, *arguments]


# The first is what all others are compared with.
CLIENTS: dict[str, list[str | Path]] = {
    "limit: walk": [PROGRAMS / "limit_walk"],
    "limit: recv": [PROGRAMS / "limit_recv"],
    "C loop": [PROGRAMS / "client_handler", "loop"],
    "C queue": [PROGRAMS / "client_queue"],
    "C thread": [PROGRAMS / "client_handler", "thread"],
    "Python raw": python("client_python.py"),
    "Python JSON": python("client_python.py", "--json"),
    "libwebsockets": [PROGRAMS / "peer_libwebsockets"],
    "picows+orjson": python("peer_picows.py"),
    "aiohttp": python("peer_aiohttp.py"),
    "websockets": python("peer_websockets.py"),
    "ws-client": python("peer_websocket_client.py"),
    "pysher": python("peer_pysher.py"),
}
REFERENCE = next(iter(CLIENTS))

CALIBRATION_EVENTS = 100
# Counted runs and second calibrations are this part of a measured one.
SHORT_PART = 0.1
RUN_TIMEOUT_SECONDS = 120
LOAD_QUIET = 0.5


@dataclass(frozen=True)
class Goal:
    """This client must be so many times as fast as that one."""

    flood: str
    client: str
    times: float
    other: str


GOALS = [
    Goal("256 B", "C loop", 0.5, "limit: walk"),
    Goal("256 B", "C loop", 8, "libwebsockets"),
    Goal("16 KiB", "C loop", 0.6, "limit: walk"),
    Goal("256 KiB", "C loop", 0.6, "limit: walk"),
    Goal("256 B", "C queue", 0.7, "C loop"),
    Goal("256 B", "C thread", 0.7, "C loop"),
    Goal("256 B", "Python raw", 2, "picows+orjson"),
    Goal("256 B", "Python JSON", 1.2, "picows+orjson"),
    Goal("256 B", "Python JSON", 8, "websockets"),
    Goal("256 B", "Python JSON", 60, "pysher"),
]


@dataclass(frozen=True)
class Flood:
    name: str
    data_bytes: int
    is_dense: bool = False

    @property
    def server_command(self) -> list[str]:
        command = [str(PROGRAMS / "flood_server"), "--bytes", str(self.data_bytes)]
        return [*command, "--dense"] if self.is_dense else command


@dataclass(frozen=True)
class Plan:
    floods: list[Flood]
    repetitions: int
    seconds_per_run: float


QUICK = Plan([Flood("256 B", 256), Flood("16 KiB", 16384)], repetitions=3, seconds_per_run=0.3)
FULL = Plan(
    [
        Flood("96 B", 96),
        Flood("256 B", 256),
        Flood("256 B dense", 256, is_dense=True),
        Flood("1 KiB", 1024),
        Flood("16 KiB", 16384),
        Flood("16 KiB dense", 16384, is_dense=True),
        Flood("256 KiB", 262144),
    ],
    repetitions=9,
    seconds_per_run=0.7,
)


@dataclass(frozen=True)
class Measurement:
    events: int
    seconds: float
    cpu_seconds: float
    allocations: int | None

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds

    @property
    def cpu_ns_per_event(self) -> float:
        return self.cpu_seconds / self.events * 1e9


@dataclass
class Row:
    flood: str
    client: str
    events_per_second: float
    spread_percent: float
    ratio: float
    cpu_ns_per_event: float
    allocations_per_100k_events: float
    runs: list[Measurement]


@contextlib.contextmanager
def serving(flood: Flood) -> Iterator[int]:
    """Runs a flood server; gives its port."""
    with subprocess.Popen(flood.server_command, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield int(server.stdout.readline() if server.stdout else "")
        finally:
            server.terminate()


def measure(client: str, port: int, flood: Flood, events: int, *, counting: bool = False) -> Measurement:
    """The first tenth is received and not measured."""
    environment = dict(os.environ)
    if counting:
        environment["LD_PRELOAD"] = str(PROGRAMS / "count_alloc.so")
    arguments = [str(number) for number in (port, flood.data_bytes, events // 10 + 1, events)]
    finished = subprocess.run(
        [*CLIENTS[client], *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=RUN_TIMEOUT_SECONDS,
        check=False,
    )
    if finished.returncode != 0:
        sys.exit(f"bench: the client {client!r} failed with status {finished.returncode}; its message is above")
    return Measurement(**json.loads(finished.stdout))


def calibrate(client: str, port: int, flood: Flood, seconds: float) -> int:
    """How many events take about so long. The first guess is of a cold process."""
    rate = measure(client, port, flood, CALIBRATION_EVENTS).events_per_second
    rate = measure(client, port, flood, max(CALIBRATION_EVENTS, int(rate * seconds * SHORT_PART))).events_per_second
    return max(CALIBRATION_EVENTS, int(rate * seconds))


def measure_flood(flood: Flood, plan: Plan) -> list[Row]:
    with serving(flood) as port:
        events = {client: calibrate(client, port, flood, plan.seconds_per_run) for client in CLIENTS}
        counted = {
            client: measure(client, port, flood, max(1, int(events[client] * SHORT_PART)), counting=True)
            for client in CLIENTS
        }
        runs: dict[str, list[Measurement]] = {client: [] for client in CLIENTS}
        order = list(CLIENTS)
        for _ in range(plan.repetitions):
            for client in order:
                runs[client].append(measure(client, port, flood, events[client]))
            order = order[1:] + order[:1]
    return [make_row(flood, client, runs, counted[client]) for client in CLIENTS]


def ratio(runs: list[Measurement], others: list[Measurement]) -> float:
    """Of runs that were neighbours, so that a slow minute of the machine counts on both sides."""
    return statistics.median(
        run.events_per_second / other.events_per_second for run, other in zip(runs, others, strict=True)
    )


def make_row(flood: Flood, client: str, runs: dict[str, list[Measurement]], counted: Measurement) -> Row:
    rates = [run.events_per_second for run in runs[client]]
    lower, median, upper = statistics.quantiles(rates, n=4)
    if counted.allocations is None:
        sys.exit(f"bench: {client!r} did not count its allocations")
    return Row(
        flood=flood.name,
        client=client,
        events_per_second=median,
        spread_percent=(upper - lower) / median * 100,
        ratio=ratio(runs[client], runs[REFERENCE]),
        cpu_ns_per_event=statistics.median(run.cpu_ns_per_event for run in runs[client]),
        allocations_per_100k_events=counted.allocations / counted.events * 100_000,
        runs=runs[client],
    )


def machine() -> dict[str, str | int]:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0].partition(":")[2].strip() if models else platform.machine(),
        "cores": os.cpu_count() or 0,
        "kernel": platform.release(),
        "libc": platform.libc_ver()[1],
    }


def load() -> float:
    return os.getloadavg()[0]


def print_line(*cells: str) -> None:
    widths = (-13, -14, 12, 8, 9, 10, 13)
    aligned = (
        cell.ljust(-width) if width < 0 else cell.rjust(width) for cell, width in zip(cells, widths, strict=True)
    )
    print(" ".join(aligned), flush=True)


def print_row(row: Row) -> None:
    print_line(
        row.flood,
        row.client,
        f"{row.events_per_second:,.0f}",
        f"{row.spread_percent:.0f} %",
        f"{row.ratio * 100:.1f} %",
        f"{row.cpu_ns_per_event:,.0f}",
        f"{row.allocations_per_100k_events:,.1f}",
    )


def print_goals(rows: list[Row]) -> None:
    runs = {(row.flood, row.client): row.runs for row in rows}
    print("\nwhat it should be, and what it is:")
    for goal in GOALS:
        if (goal.flood, goal.client) in runs:
            reached = ratio(runs[goal.flood, goal.client], runs[goal.flood, goal.other])
            verdict = "ok" if reached >= goal.times else "SHORT"
            print(f"  {goal.flood:>8}  {goal.client} / {goal.other}: {goal.times:g} times, {reached:.2f}  {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sizes, shorter runs: less than two minutes")
    plan = QUICK if parser.parse_args().quick else FULL

    here = machine()
    load_before = load()
    if load_before > LOAD_QUIET:
        print("bench: other programs are running; the figures are too low, and the ratios may be wrong")
    print(f"bench: {here['cpu']}, {here['cores']} cores, Linux {here['kernel']}, load {load_before:.2f}")
    print(f"bench: medians of {plan.repetitions} runs of about {plan.seconds_per_run} s, in turns\n")
    print_line("data", "client", "events/s", "spread", "of walk", "CPU ns", "allocations")
    rows = []
    for flood in plan.floods:
        measured = measure_flood(flood, plan)
        for row in measured:
            print_row(row)
        rows += measured
    load_after = load()
    print_goals(rows)
    print("\nspread: the middle half of the runs, as a part of the median")
    print("of walk: events/s beside those of the frame walker; CPU: for each event; allocations: in 100,000 events")
    print(f"bench: load {load_after:.2f} at the end; results in {RESULTS.relative_to(ROOT)}")

    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(
        json.dumps(
            {
                "machine": here,
                "load": {"before": load_before, "after": load_after},
                "rows": [asdict(row) for row in rows],
            },
            indent=2,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
