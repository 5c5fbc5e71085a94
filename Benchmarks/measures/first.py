"""How long it takes from nothing to the first event."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from contextlib import ExitStack

from certificate import certificate
from processes import PROGRAMS, Command, run, serving
from section import Goal, Plan, Section, progress

REFERENCE = "by hand"
LIBRARY = "C loop"
LIBRARY_TLS = "C loop, TLS"
# The first finds a fresh process, the second a warm one.
CONNECTIONS = ["fresh process", "second client"]
CHECK_RUNS = 2
QUICK_RUNS = 21
FULL_RUNS = 101
RATIO_MAX = 2


Times = dict[str, list[list[float]]]
"""Microseconds of each connection of each process."""


def measure_runs(count: int, port: int, over_tls: Mapping[str, tuple[int, dict[str, str]]]) -> Times:
    """In turns. `over_tls`: port and environment of the client."""
    connections = str(len(CONNECTIONS))
    commands: dict[str, tuple[Command, dict[str, str]]] = {
        REFERENCE: ([PROGRAMS / "limit_first", str(port), connections], {}),
        LIBRARY: ([PROGRAMS / "client_first", str(port), connections], {}),
    }
    for client, (tls_port, environment) in over_tls.items():
        commands[client] = ([PROGRAMS / "client_first", str(tls_port), connections], environment)
    times: Times = {client: [] for client in commands}
    for _ in range(count):
        for client, (command, environment) in commands.items():
            times[client].append(run(client, command, environment))
    return times


def measure_times(plan: Plan) -> Times:
    server = ["--bytes", "256", "--events", "1"]
    with ExitStack() as stack:
        port, _ = stack.enter_context(serving([PROGRAMS / "flood_server", *server]))
        if plan.is_check:
            return measure_runs(CHECK_RUNS, port, {})
        tls = stack.enter_context(certificate())
        tls_server = serving([PROGRAMS / "flood_server_tls", *server], tls.server_environment)
        tls_port, _ = stack.enter_context(tls_server)
        over_tls = {LIBRARY_TLS: (tls_port, tls.client_environment)}
        return measure_runs(QUICK_RUNS if plan.is_quick else FULL_RUNS, port, over_tls)


def measure_first(plan: Plan) -> list[Section]:
    progress("the first event")
    times = measure_times(plan)

    def ratio(client: str, number: int) -> float:
        """Of runs that were neighbours."""
        return statistics.median(
            each[number] / other[number] for each, other in zip(times[client], times[REFERENCE], strict=True)
        )

    def row(client: str, number: int) -> list[str]:
        lower, median, upper = statistics.quantiles([each[number] for each in times[client]], n=4)
        middle = f"{lower:,.0f} to {upper:,.0f}"
        return [f"{client}, {CONNECTIONS[number]}", f"{median:,.0f}", middle, f"{ratio(client, number):.2f}"]

    return [
        Section(
            "From creating a client to its first event",
            ["client", "µs", "middle half", "beside by hand"],
            [row(client, number) for number in range(len(CONNECTIONS)) for client in times],
            [
                Goal(f"create to first event, {connection}", ratio(LIBRARY, number), at_most=RATIO_MAX)
                for number, connection in enumerate(CONNECTIONS)
            ],
            [
                "Options, client, subscribe, bind, connect, upgrade, handshake, the subscribe's answer, the event in "
                "its handler. By hand: the same frames from a C program on one blocking socket, which makes no thread.",
                "Second client: the first one stays connected, so that libcurl and the reactor's thread are there.",
            ],
            data=times,
        )
    ]
