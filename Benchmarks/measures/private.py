"""How soon one client has many private channels, each authorized by an endpoint."""

from __future__ import annotations

import statistics

from processes import PROGRAMS, Command, run, serving
from section import Plan, Section, figure, progress

CHECK_CHANNELS = 100
QUICK_CHANNELS = 2_000
FULL_CHANNELS = 10_000
QUICK_RUNS = 3
FULL_RUNS = 5
AT_ONCE = 8


def measure_private(plan: Plan) -> list[Section]:
    channels = CHECK_CHANNELS if plan.is_check else QUICK_CHANNELS if plan.is_quick else FULL_CHANNELS
    progress(f"{channels:,} private channels")
    runs: dict[str, list[dict[str, float]]] = {"endpoint alone": [], "C loop": []}
    with serving([PROGRAMS / "many_server"]) as (port, _), serving([PROGRAMS / "auth_server"]) as (auth_port, _):
        commands: dict[str, Command] = {
            "endpoint alone": [PROGRAMS / "limit_auth", str(auth_port), str(channels)],
            "C loop": [PROGRAMS / "client_private", str(port), str(auth_port), str(channels)],
        }
        for _ in range(QUICK_RUNS if plan.is_quick else FULL_RUNS):
            for client, command in commands.items():
                runs[client].append(run(client, command))

    def row(client: str) -> list[str]:
        seconds = statistics.median(each["seconds"] for each in runs[client])
        cpu = statistics.median(each["cpu_seconds"] for each in runs[client])
        return [client, figure(seconds), figure(channels / seconds), figure(cpu / channels * 1e6)]

    return [
        Section(
            f"{channels:,} private channels on one client",
            ["client", "seconds", "authorizations a second", "CPU µs for each"],
            [row(client) for client in runs],
            notes=[
                f"From connect until all are subscribed, each authorized by a POST, {AT_ONCE} at once by design. "
                f"Endpoint alone: a C program with {AT_ONCE} connections that sends such POSTs and parses nothing.",
            ],
            data=runs,
        )
    ]
