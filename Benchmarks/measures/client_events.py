"""What it costs to send client events."""

from __future__ import annotations

import statistics

from processes import PROGRAMS, run, serving
from section import Plan, Section, figure, progress

DATA_BYTES = 100
CLIENTS = {"by hand": PROGRAMS / "limit_trigger", "C loop": PROGRAMS / "client_trigger"}
CHECK_EVENTS = 100
QUICK_EVENTS = 20_000
FULL_EVENTS = 100_000


def measure_client_events(plan: Plan) -> list[Section]:
    progress("client events")
    events = CHECK_EVENTS if plan.is_check else QUICK_EVENTS if plan.is_quick else FULL_EVENTS
    runs: dict[str, list[dict[str, float]]] = {client: [] for client in CLIENTS}
    with serving([PROGRAMS / "many_server"]) as (port, _), serving([PROGRAMS / "auth_server"]) as (auth_port, _):
        for _ in range(plan.repetitions):
            for client, program in CLIENTS.items():
                runs[client].append(run(client, [program, *map(str, (port, auth_port, DATA_BYTES, events))]))

    def row(client: str) -> list[str]:
        return [
            client,
            figure(statistics.median(events / each["seconds"] for each in runs[client]) / 1000),
            figure(statistics.median(each["call_seconds"] / events for each in runs[client]) * 1e9),
            figure(statistics.median(each["cpu_seconds"] / events for each in runs[client]) * 1e9),
        ]

    return [
        Section(
            f"Client events of {DATA_BYTES} B",
            ["client", "thousands a second", "CPU ns in the call", "CPU ns in all"],
            [row(client) for client in CLIENTS],
            notes=[
                "As fast as they are accepted, until the server has counted them. While the library holds as much as "
                "outbound_bytes_max allows, the program waits with bird_client_flush. The edge bounds the rate.",
                "In the call: of the thread that sends. By hand: a C program that puts each frame together, masks it "
                "and writes 64 KiB at a time.",
            ],
            data=runs,
        )
    ]
