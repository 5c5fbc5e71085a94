"""How long it takes from nothing to the first event."""

from __future__ import annotations

import statistics

from processes import PROGRAMS, run, serving
from section import Goal, Plan, Section, progress

CLIENTS = {"by hand": PROGRAMS / "limit_first", "C loop": PROGRAMS / "client_first"}
REFERENCE = "by hand"
# The first finds a fresh process, the second a warm one.
CONNECTIONS = ["fresh process", "second client"]
QUICK_RUNS = 21
FULL_RUNS = 101
RATIO_MAX = 2


def measure_first(plan: Plan) -> list[Section]:
    progress("the first event")
    times: dict[str, list[list[float]]] = {client: [] for client in CLIENTS}
    with serving([PROGRAMS / "flood_server", "--bytes", "256", "--events", "1"]) as (port, _):
        for _ in range(QUICK_RUNS if plan.is_quick else FULL_RUNS):
            for client, program in CLIENTS.items():
                times[client].append(run(client, [program, str(port), str(len(CONNECTIONS))]))
    rows, goals = [], []
    for number, connection in enumerate(CONNECTIONS):
        for client, runs in times.items():
            lower, median, upper = statistics.quantiles([each[number] for each in runs], n=4)
            ratio = statistics.median(
                each[number] / other[number] for each, other in zip(runs, times[REFERENCE], strict=True)
            )
            rows.append([f"{client}, {connection}", f"{median:,.0f}", f"{lower:,.0f} to {upper:,.0f}", f"{ratio:.2f}"])
            if client != REFERENCE:
                goals.append(Goal(f"create to first event, {connection}", ratio, at_most=RATIO_MAX))
    return [
        Section(
            "From creating a client to its first event, plain",
            ["client", "µs", "middle half", "beside by hand"],
            rows,
            goals,
            [
                "Options, client, subscribe, bind, connect, upgrade, handshake, the subscribe's answer, the event in "
                "its handler. By hand: the same frames from a C program on one blocking socket, which makes no thread.",
                "Second client: the first one stays connected, so that libcurl and the reactor's thread are there.",
            ],
            data=times,
        )
    ]
