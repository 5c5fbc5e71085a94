"""What idle clients cost: memory, wake-ups, threads and files of many in one process."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from many_clients import KIB, Run, edges, measure, measure_tls
from processes import PROGRAMS, Command, run
from section import Goal, Plan, Section, figure, progress

Found = list[dict[str, Any]]
"""What the program printed, in each run."""

# How often each size is measured.
QUICK_PLAIN = {1: 1, 1_000: 1}
FULL_PLAIN = {1: 3, 1_000: 3, 10_000: 2}
QUICK_TLS = {1: 1, 1_000: 1}
FULL_TLS = {1: 2, 1_000: 2, 10_000: 1}
PLAIN_KIB_MAX = 8
TLS_KIB_MAX = 96
# The part that one client of 10 000 may cost more than one of 1 000, and still be flat.
FLAT_MAX = 1.1
# A timer that was set for the handshakes may still come.
WAKEUPS_MAX = 2
# For the ping that is due, and for its answer.
WAKEUPS_PER_PING_MAX = 2


def each_kib(found: Found, single: Found, clients: int, key: str) -> float:
    """What each client but the first adds to the process."""
    more: float = statistics.median(run[key] for run in found) - statistics.median(run[key] for run in single)
    return more / (clients - 1) / KIB


def measure_clients(sizes: dict[int, int], *, is_tls: bool, idle_ms: int) -> dict[int, Found]:
    found: dict[int, Found] = {}
    for clients, times in sizes.items():
        progress(f"{clients:,} idle clients{', TLS' if is_tls else ''}")
        each = Run("loop", clients, idle_ms=idle_ms, is_tls=is_tls)
        found[clients] = [measure_tls(each) if is_tls else measure(each) for _ in range(times)]
    return found


def measure_peer(sizes: dict[int, int]) -> dict[int, Found]:
    found: dict[int, Found] = {}
    for clients, times in sizes.items():
        found[clients] = []
        for _ in range(times):
            with edges(4) as ports:
                command: Command = [PROGRAMS / "peer_libwebsockets_idle", str(clients), ports]
                found[clients].append(run("libwebsockets", command))
    return found


def memory_rows(name: str, found: dict[int, Found]) -> list[list[str]]:
    return [
        [
            f"{name}, {clients:,}",
            figure(each_kib(runs, found[1], clients, "resident_bytes")),
            figure(each_kib(runs, found[1], clients, "anonymous_bytes")),
            figure(statistics.median(run["resident_bytes"] for run in runs) / clients / KIB),
            figure(statistics.median(run["resident_bytes"] for run in found[1]) / KIB / KIB),
        ]
        for clients, runs in found.items()
        if clients > 1
    ]


def memory(kinds: Sequence[tuple[str, dict[int, Found]]]) -> Section:
    goals = []
    for (name, found), limit in zip(kinds[:2], (PLAIN_KIB_MAX, TLS_KIB_MAX), strict=True):
        each = {
            clients: each_kib(runs, found[1], clients, "resident_bytes")
            for clients, runs in found.items()
            if clients > 1
        }
        goals.append(Goal(f"memory of an idle client, {name}, 1,000", each[1_000], at_most=limit, unit="KiB"))
        if 10_000 in each:
            goals.append(Goal(f"the same, 10,000 / 1,000, {name}", each[10_000] / each[1_000], at_most=FLAT_MAX))
    return Section(
        "Idle clients of one process: memory",
        ["clients", "KiB each", "anonymous", "with the process", "MiB of 1"],
        [row for name, found in kinds for row in memory_rows(name, found)],
        goals,
        [
            "KiB each: what the resident memory grows by from 1 client to so many, for each of the others; anonymous: "
            "the part of it that is no file's; with the process: all resident memory, divided by the clients.",
            "The kernel's memory for the sockets is not counted. Each client has a channel, a handler of an event and "
            "two observers; each connection of libwebsockets is upgraded and subscribed, and nothing else.",
        ],
        data=dict(kinds),
    )


def activity(kinds: Sequence[tuple[str, dict[int, Found]]], pinging: tuple[str, dict[str, Any]]) -> Section:
    def row(name: str, clients: int, found: dict[str, Any]) -> list[str]:
        return [
            f"{name}, {clients:,}",
            f"{found['threads']}",
            f"{found['files']:.2f}",
            f"{found['idle_ms'] / 1000:g}",
            f"{found['pings']:,}",
            f"{found['idle_wakeups']:,}",
            figure(found["idle_cpu_us"] / found["idle_ms"] / 10),
        ]

    def calmest(runs: Found) -> dict[str, Any]:
        return min(runs, key=lambda run: run["idle_wakeups"])

    most = max(kinds[0][1])
    silent = calmest(kinds[0][1][most])
    name, pings = pinging
    return Section(
        "Idle clients of one process: what they do",
        ["clients", "threads", "files each", "seconds", "pings", "wake-ups", "CPU %"],
        [
            *(row(name, clients, calmest(runs)) for name, found in kinds for clients, runs in found.items()),
            row(name, pings["clients"], pings),
        ],
        [
            Goal(f"wake-ups of {most:,} idle clients", silent["idle_wakeups"], at_most=WAKEUPS_MAX, unit="wake-ups"),
            Goal(
                f"wake-ups for each ping of {pings['clients']:,} clients",
                pings["idle_wakeups"] / max(1, pings["pings"]),
                at_most=WAKEUPS_PER_PING_MAX,
                unit="wake-ups",
            ),
        ],
        [
            "Wake-ups: how often threads of the library went to sleep again in so many seconds, in the calmest run. "
            "CPU: of one core.",
            "The last row has an activity timeout that makes pings due; several that are due at once share a wake-up.",
        ],
    )


def measure_idle(plan: Plan) -> list[Section]:
    plain_sizes = QUICK_PLAIN if plan.is_quick else FULL_PLAIN
    idle_ms = 1_000 if plan.is_quick else 3_000
    plain = measure_clients(plain_sizes, is_tls=False, idle_ms=idle_ms)
    tls = measure_clients(QUICK_TLS if plan.is_quick else FULL_TLS, is_tls=True, idle_ms=idle_ms)
    peer = measure_peer(plain_sizes)
    clients, activity_s = (1_000, 2) if plan.is_quick else (10_000, 5)
    progress(f"{clients:,} clients that ping")
    pings = measure(Run("loop", clients, idle_ms=2_000 * activity_s, activity_s=activity_s))
    kinds = [("plain", plain), ("TLS", tls)]
    return [
        memory([*kinds, ("libwebsockets", peer)]),
        activity(kinds, (f"plain, activity timeout {activity_s} s", pings)),
    ]
