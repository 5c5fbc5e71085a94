"""How many events a second each client takes, of floods of several sizes."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from certificate import Certificate, certificate
from clients import CHECK_CLIENTS, CLIENTS, TLS_CLIENTS, Client
from plot import Bar, svg
from processes import PROGRAMS, run, serving
from section import Goal, Plan, Section, figure, progress

REFERENCE = CLIENTS[0].name
CALIBRATION_SECONDS_MAX = 0.1
EVENTS_MIN = 4
SLOW_REPETITIONS_MAX = 3


@dataclass(frozen=True)
class Flood:
    name: str
    data_bytes: int
    is_dense: bool = False

    def server_command(self, program: str) -> list[str | Path]:
        command: list[str | Path] = [PROGRAMS / program, "--bytes", str(self.data_bytes)]
        return [*command, "--dense"] if self.is_dense else command


FLOODS = [
    Flood("96 B", 96),
    Flood("256 B", 256),
    Flood("1 KiB", 1024),
    Flood("1 KiB dense", 1024, is_dense=True),
    Flood("16 KiB", 16384),
    Flood("16 KiB dense", 16384, is_dense=True),
    Flood("256 KiB", 262144),
]
QUICK_FLOOD = FLOODS[1]
LARGE_FLOOD = FLOODS[4]


@dataclass(frozen=True)
class Wanted:
    """This client must be so many times as fast as that one."""

    flood: str
    client: str
    times: float
    other: str


WANTED = [
    Wanted("256 B", "C loop", 0.5, "limit: walk"),
    Wanted("256 B", "C loop", 8, "libwebsockets"),
    Wanted("16 KiB", "C loop", 0.6, "limit: walk"),
    Wanted("256 KiB", "C loop", 0.6, "limit: walk"),
    Wanted("256 B", "C queue", 0.7, "C loop"),
    Wanted("256 B", "C thread", 0.7, "C loop"),
    Wanted("256 B", "Swift JSON", 0.11, "limit: walk"),
    Wanted("256 B", "Python raw", 2, "picows+orjson"),
    Wanted("256 B", "Python JSON", 1.2, "picows+orjson"),
    Wanted("256 B", "Python JSON", 8, "websockets"),
    Wanted("256 B", "Python JSON", 60, "pysher"),
]
WITHOUT_ALLOCATIONS = [("256 B", "C loop"), ("256 B", "C queue")]


@dataclass(frozen=True)
class Measurement:
    events: int
    seconds: float
    cpu_seconds: float
    allocations: int | None
    server_busy: float
    """The part of the time in which the server worked; near 1 it is the server that sets the pace."""

    @property
    def events_per_second(self) -> float:
        return self.events / self.seconds

    @property
    def cpu_ns_per_event(self) -> float:
        return self.cpu_seconds / self.events * 1e9


@dataclass
class Figures:
    """Of one client and one flood."""

    flood: str
    client: str
    counted: Measurement
    runs: list[Measurement]

    @property
    def events_per_second(self) -> float:
        return statistics.median(run.events_per_second for run in self.runs)

    @property
    def rate_with_spread(self) -> str:
        """In thousands; ± half the distance of the quartiles."""
        rate = figure(self.events_per_second / 1000)
        if len(self.runs) < 2:
            return rate
        lower, median, upper = statistics.quantiles([run.events_per_second for run in self.runs], n=4)
        return f"{rate} ±{(upper - lower) / median * 50:.0f} %"

    @property
    def cpu_ns_per_event(self) -> float:
        return statistics.median(run.cpu_ns_per_event for run in self.runs)

    @property
    def server_busy(self) -> float:
        return statistics.median(run.server_busy for run in self.runs)

    @property
    def allocations_per_event(self) -> float:
        return (self.counted.allocations or 0) / self.counted.events


class Course:
    """A flood that clients take, one at a time."""

    def __init__(self, flood: Flood, port: int, server: subprocess.Popen[str], environment: dict[str, str]) -> None:
        self._flood = flood
        self._port = port
        self._server = server
        self._environment = environment

    def _server_seconds(self) -> float:
        """CPU time of the server's only thread."""
        return int(Path(f"/proc/{self._server.pid}/schedstat").read_text().split()[0]) / 1e9

    def take(self, client: Client, seconds: float, events_per_second: float, *, counting: bool = False) -> Measurement:
        """The first tenth is received and not measured."""
        events = max(EVENTS_MIN, int(seconds * events_per_second))
        warmup = events // 10 + 1
        before = self._server_seconds()
        printed = run(
            client.name,
            [*client.command, *map(str, (self._port, self._flood.data_bytes, warmup, events))],
            {**self._environment, **({"LD_PRELOAD": str(PROGRAMS / "count_alloc.so")} if counting else {})},
        )
        server_seconds = (self._server_seconds() - before) * events / (events + warmup)
        return Measurement(**printed, server_busy=min(1, server_seconds / printed["seconds"]))


def measure_flood(
    flood: Flood, clients: Sequence[Client], plan: Plan, certificate: Certificate | None = None
) -> list[Figures]:
    """The run that counts the allocations tells also how many events the others need."""
    progress(f"flood of {flood.name}{' over TLS' if certificate else ''}")
    program = "flood_server_tls" if certificate else "flood_server"
    with serving(flood.server_command(program), certificate.server_environment if certificate else {}) as (
        port,
        server,
    ):
        calibration_seconds = min(CALIBRATION_SECONDS_MAX, plan.seconds_per_run)
        course = Course(flood, port, server, certificate.client_environment if certificate else {})
        counted = {
            client.name: course.take(client, calibration_seconds, client.guess(flood.data_bytes), counting=True)
            for client in clients
        }
        runs: dict[str, list[Measurement]] = {client.name: [] for client in clients}
        order = list(clients)
        for repetition in range(plan.repetitions):
            for client in order:
                if client.is_slow and repetition >= (1 if plan.is_quick else SLOW_REPETITIONS_MAX):
                    continue
                rate = counted[client.name].events_per_second
                runs[client.name].append(course.take(client, plan.seconds_per_run, rate))
            order = order[1:] + order[:1]
    return [Figures(flood.name, client.name, counted[client.name], runs[client.name]) for client in clients]


def ratio(figures: Figures, others: Figures) -> float:
    """Of runs that were neighbours, so that a slow minute of the machine counts on both sides."""
    return statistics.median(
        run.events_per_second / other.events_per_second for run, other in zip(figures.runs, others.runs, strict=False)
    )


def goals_of(measured: list[Figures]) -> list[Goal]:
    """Those whose flood and clients were measured."""
    figures = {(each.flood, each.client): each for each in measured}
    goals = [
        Goal(
            f"{wanted.client} / {wanted.other}, {wanted.flood}",
            ratio(figures[wanted.flood, wanted.client], figures[wanted.flood, wanted.other]),
            at_least=wanted.times,
        )
        for wanted in WANTED
        if {(wanted.flood, wanted.client), (wanted.flood, wanted.other)} <= figures.keys()
    ]
    goals += [
        Goal(
            f"{client}, allocations, {flood}", figures[flood, client].allocations_per_event, at_most=0, unit="an event"
        )
        for flood, client in WITHOUT_ALLOCATIONS
        if (flood, client) in figures
    ]
    return goals


def tables(kind: str, figures: list[Figures], goals: list[Goal]) -> list[Section]:
    by_name = {(each.flood, each.client): each for each in figures}
    floods = list(dict.fromkeys(each.flood for each in figures))
    clients = list(dict.fromkeys(each.client for each in figures))

    def table(title: str, cell: Callable[[Figures], str], notes: list[str]) -> Section:
        rows = [
            [client, *(cell(by_name[flood, client]) if (flood, client) in by_name else "" for flood in floods)]
            for client in clients
        ]
        return Section(f"{kind}: {title}", ["client", *floods], rows, notes=notes)

    rates = table(
        "thousands of events a second",
        lambda each: each.rate_with_spread,
        ["Medians; ± is half the distance of the middle half of the runs."],
    )
    rates.data = [asdict(each) for each in figures]
    rates.goals = goals
    return [
        rates,
        table(
            f"events a second beside those of {REFERENCE!r}, in percent",
            lambda each: figure(ratio(each, by_name[each.flood, REFERENCE]) * 100),
            ["Medians of the ratios of neighbouring runs."],
        ),
        table(
            "CPU time of the client for each event, ns",
            lambda each: f"{each.cpu_ns_per_event:,.0f}",
            ["All threads of the client, user and system time, without the server's."],
        ),
        table(
            "part of the time in which the server worked, in percent",
            lambda each: f"{each.server_busy * 100:.0f}",
            ["Near 100 it is the server and the kernel's loopback that set the pace; a faster client would not show."],
        ),
        table(
            "allocations for each event",
            lambda each: figure(each.allocations_per_event),
            ["Calls of malloc and its like by all threads, counted in a run of its own."],
        ),
    ]


def picture(figures: list[Figures]) -> str:
    """As SVG; without the dense floods."""
    groups = {client.name: client.group for client in CLIENTS}
    return svg(
        "events a second, by the size of an event's data",
        [
            Bar(flood.name, each.client, groups[each.client], each.events_per_second)
            for flood in FLOODS
            for each in figures
            if each.flood == flood.name and not flood.is_dense
        ],
    )


def measure_plain(plan: Plan) -> list[Section]:
    if plan.is_check:
        figures = [each for flood in (QUICK_FLOOD, LARGE_FLOOD) for each in measure_flood(flood, CHECK_CLIENTS, plan)]
    elif plan.is_quick:
        own = [client for client in CLIENTS if client.group != "peer"]
        figures = measure_flood(QUICK_FLOOD, CLIENTS, plan) + measure_flood(LARGE_FLOOD, own, plan)
    else:
        figures = [each for flood in FLOODS for each in measure_flood(flood, CLIENTS, plan)]
    sections = tables("Floods", figures, goals_of(figures))
    sections[0].picture = picture(figures)
    return sections


def measure_tls(plan: Plan) -> list[Section]:
    with certificate() as made:
        figures = measure_flood(QUICK_FLOOD, TLS_CLIENTS, plan, made)
        if not plan.is_quick:
            figures += measure_flood(LARGE_FLOOD, TLS_CLIENTS, plan, made)
    return tables("Floods over TLS", figures, [])
