"""Runs the soak: a program in C that keeps clients for long, one in which they come and go, and one in Python, against
an edge and a cable that let them down. Everything that shall stay flat is measured and judged.

    soak.py [--minutes 10] [--clients 60] [--seed N]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from flatness import Slope, second_half, slope
from paths import PROGRAMS, PYTHON_SOURCES, ROOT

HERE = ROOT / "Tests/Soak"

TLS_NAME = "edge.soak.test"
SAMPLE_S = 10.0
PROGRESS_S = 60.0
ROUND_S_MIN = 1.5
ROUND_S_MAX = 45.0
ROUNDS_MIN = 20
ENDING_S = 30.0
# What may be left behind by each connect: a quarter of one block of the heap, or of one object of Python.
BLOCKS_EACH_CONNECT_MAX = 0.25
# How much more the pools of the library and of the allocator may hold at the end than in the middle of the run.
POOLS_BYTES_MAX = 4 * 2**20
# Of main.c and servers.c.
PROGRAM_THREADS = 1 + 2 + 3
# Beside the program's own: the reactor, the pool, the resolvers and the writer of the log.
LIBRARY_THREADS_MAX = 1 + 4 + 2 + 1
# Sockets of a client, and what libcurl keeps for its connects and requests.
FILES_EACH_CLIENT_MAX = 4
FILES_MAX = 40 + 64  # so many authorizations may be under way at once
# An hour has this many faults of each kind, and lost connections in each delivery mode.
HOUR_FAULTS_MIN = 2000
FAULTS = ("RST", "RST upstream", "FIN", "freeze", "pieces", "garbage", "refuse", "close code", "drop by the edge")
MODES = ("thread", "queue", "loop", "host")

Figures = dict[str, Any]


class SoakError(Exception):
    """The soak has found something."""


class Process:
    """A program that obeys lines and answers with lines of JSON."""

    def __init__(self, name: str, command: Sequence[str | Path], preload: str = "") -> None:
        self.name = name
        environment = {**os.environ, "LD_PRELOAD": preload} if preload else None
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._output = self._pipe(self._process.stdout)

    @staticmethod
    def _pipe(stream: IO[str] | None) -> IO[str]:
        if stream is None:
            raise ValueError("there is no pipe")
        return stream

    def tell(self, line: str) -> None:
        stdin = self._pipe(self._process.stdin)
        try:
            stdin.write(line + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise SoakError(f"{self.name} has ended: status {self._process.wait()}") from None

    def answer(self) -> Figures:
        line = self._output.readline()
        if not line:
            raise SoakError(f"{self.name} has ended: status {self._process.wait()}")
        values: Figures = json.loads(line)
        return values

    def ask(self, line: str) -> Figures:
        self.tell(line)
        return self.answer()

    def end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._pipe(self._process.stdin).close()
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            print(f"soak: {self.name} does not end with its input")
        finally:
            self._process.kill()


@dataclass
class Series:
    """What one process said, with the seconds since the start."""

    name: str
    process: Process
    clients: int
    living: list[tuple[float, Figures]] = field(default_factory=list)
    resting: list[tuple[float, Figures]] = field(default_factory=list)
    """At the end of each round, when nothing is going on."""
    ended: Figures = field(default_factory=dict)
    """At the end of all, when there is no client."""

    def by_connects(self, key: str) -> list[tuple[float, float]]:
        return [(figures.get("connects", 0), figures[key]) for _, figures in self.resting]

    def by_hours(self, key: str) -> list[tuple[float, float]]:
        return [(at_s / 3600, figures[key]) for at_s, figures in self.resting]


@dataclass(frozen=True)
class Plan:
    minutes: float
    clients: int
    seed: int

    @property
    def round_s(self) -> float:
        return min(ROUND_S_MAX, self.minutes * 60 / ROUNDS_MIN)

    @property
    def python_clients(self) -> int:
        return max(2, self.clients // 5)


@contextmanager
def dead_port() -> Iterator[int]:
    """A port where nobody listens, and nobody else can."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def make_certificate(directory: Path) -> tuple[Path, Path]:
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30")
    names = ("-subj", "/CN=soak", "-addext", f"subjectAltName=DNS:{TLS_NAME}")
    command: list[str | Path] = ["openssl", "req", *kind, *names, "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


class Soak:
    def __init__(self, plan: Plan, stack: ExitStack) -> None:
        self.plan = plan
        self._stack = stack
        self._begin = time.monotonic()
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        certificate, key = make_certificate(directory)
        seed = ("--seed", str(plan.seed))
        rates = ("--events-per-s", "120", "--faults-per-s", str(plan.clients / 10))
        self.edge = self._start("the edge", [sys.executable, HERE / "edge.py", *seed, *rates])
        there = self.edge.answer()
        cable = ("--life-s", "12", "--edge-port", str(there["port"]), "--certificate", certificate, "--key", key)
        self.relay = self._start("the relay", [sys.executable, HERE / "relay.py", *seed, *cable])
        ports = self.relay.answer()
        dead = stack.enter_context(dead_port())
        plain = f"127.0.0.1:{ports['plain']}"
        where: list[str | Path] = [
            *("--plain", plain, "--named", f"localhost:{ports['plain']}", "--tls", f"{TLS_NAME}:{ports['tls']}"),
            *("--ca-file", certificate),
            *("--auth", f"http://{plain}/bird/auth", "--member-auth", f"http://{plain}/bird/auth/member"),
        ]
        keys = [word for name in ("app-key", "app-secret", "master-key") for word in (f"--{name}", there[name])]
        self.lives: list[Series] = []
        for number, (name, options) in enumerate((("churn", []), ("keep", ["--keep"]))):
            log = ["--log-file", str(directory / f"{name}.log")]
            other = ["--dead", f"127.0.0.1:{dead}", "--clients", str(plan.clients), "--seed", str(plan.seed + number)]
            process = self._start(name, [PROGRAMS / "soak", *where, *keys, *other, *log, *options])
            self.lives.append(Series(name, process, plan.clients))
        command = [sys.executable, HERE / "python_life.py", *where, *seed, "--clients", str(plan.python_clients)]
        preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(PROGRAMS / "heap.so")]))
        self.lives.append(Series("python", self._start("python", command, preload), plan.python_clients))

    def _start(self, name: str, command: Sequence[str | Path], preload: str = "") -> Process:
        process = Process(name, command, preload)
        self._stack.callback(process.end)
        return process

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._begin

    def run(self) -> None:
        self._begin = time.monotonic()
        next_progress_s = PROGRESS_S
        while self.elapsed_s < self.plan.minutes * 60:
            self._live(max(ROUND_S_MIN, min(self.plan.round_s, self.plan.minutes * 60 - self.elapsed_s)))
            self._heal()
            for life, figures in zip(self.lives, self._ask(["destroy", "strip", "destroy"]), strict=True):
                life.resting.append((self.elapsed_s, figures))
            if self.elapsed_s >= next_progress_s:
                next_progress_s += PROGRESS_S
                print(self.progress(), flush=True)
        for life, figures in zip(self.lives, self._ask_all("destroy"), strict=True):
            life.ended = figures

    def _live(self, seconds: float) -> None:
        for process in (self.edge, self.relay):
            process.tell("faults")
        self.edge.tell("load")
        for life in self.lives:
            life.process.tell("live")
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, SAMPLE_S))
            for life, answer in zip(self.lives, self._ask_all("figures"), strict=True):
                life.living.append((self.elapsed_s, answer))

    def _heal(self) -> None:
        """Everybody is connected, subscribed and has seen the last events."""
        for process in (self.relay, self.edge):
            process.tell("heal")
        self._ask_all("settle")
        numbers = self.edge.ask("rest")
        self._ask_all("marks " + " ".join(f"{name} {number}" for name, number in numbers.items()))

    def _ask_all(self, command: str) -> list[Figures]:
        return self._ask([command] * len(self.lives))

    def _ask(self, commands: Sequence[str]) -> list[Figures]:
        for life, command in zip(self.lives, commands, strict=True):
            life.process.tell(command)
        return [life.process.answer() for life in self.lives]

    def progress(self) -> str:
        parts = [f"{self.elapsed_s / 60:5.1f} min"]
        for life in self.lives:
            at_rest = life.resting[-1][1]
            heap = f"{at_rest['heap_bytes'] / 1024:.0f} KiB in {at_rest['heap_blocks']} blocks"
            parts.append(
                f"{life.name}: {at_rest['connects']} connects, {at_rest['events']} events, at rest "
                f"{at_rest['resident_bytes'] / 2**20:.1f} MiB resident, {heap}, {at_rest['files']} files, "
                f"{at_rest['threads']} threads"
            )
        return "; ".join(parts)

    def record(self) -> Iterator[str]:
        for life in self.lives:
            for at_s, figures in sorted([*life.living, *life.resting], key=lambda sample: sample[0]):
                yield json.dumps({"name": life.name, "at_s": round(at_s, 1), **figures}) + "\n"

    def faults(self) -> dict[str, int]:
        return {**self.relay.ask("counts"), **self.edge.ask("counts")}


def judge(life: Series) -> list[str]:
    """What is not flat."""
    wrong = []

    def expect(is_right: bool, what: str) -> None:
        if not is_right:
            wrong.append(f"{life.name}: {what}")

    for what in measures(life):
        points = second_half(life.by_connects(what))
        found = slope(points)
        if found is not None:
            bound = BLOCKS_EACH_CONNECT_MAX
            if what.endswith("bytes"):
                bound = POOLS_BYTES_MAX / (points[-1][0] - points[0][0])
            expect(found.low <= bound, f"{what} at rest grow by {told(found)} with each connect, over {bound:.3g}")
    for key in ("files", "threads"):
        if life.name == "keep":  # its clients hold their sockets, and how many libcurl holds beside them comes and goes
            found = slope(second_half(life.by_connects(key)))
            expect(found is None or found.low <= 0, f"{key} at rest grow by {found and told(found)} with each connect")
        else:
            at_rest = sorted({figures[key] for _, figures in life.resting})
            expect(len(at_rest) == 1, f"{key} at rest are {at_rest}")
    for _, figures in life.living:
        expect(
            figures["files"] <= FILES_MAX + FILES_EACH_CLIENT_MAX * life.clients,
            f"{figures['files']} open files for {life.clients} clients",
        )
        if life.name != "python":
            threads = figures["threads"]
            expect(threads <= PROGRAM_THREADS + LIBRARY_THREADS_MAX, f"{threads} threads while they live")
    return wrong


def shortage(soak: Soak, faults: Mapping[str, int]) -> list[str]:
    """What was too rare for the length of the run; a short one may have any number."""
    least = HOUR_FAULTS_MIN * (soak.plan.minutes // 60)
    losses = {
        f"lost connections in mode {mode}": sum(life.ended.get(f"losses_{mode}", 0) for life in soak.lives)
        for mode in MODES
    }
    counts = {**{kind: faults.get(kind, 0) for kind in FAULTS}, **losses}
    return [f"only {count} times: {what}" for what, count in counts.items() if count < least]


def measures(life: Series) -> tuple[str, ...]:
    """What shall not grow with the connects."""
    return ("heap_blocks", "heap_bytes", "resident_bytes", *(("objects", "blocks") if life.name == "python" else ()))


def told(found: Slope) -> str:
    return f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})"


def closing(soak: Soak, faults: Mapping[str, int]) -> list[str]:
    lines = []
    for life in soak.lives:
        slopes = [
            f"{what} {told(found)}" if found else f"{what} not judged (too few rounds)"
            for what in measures(life)
            for found in [slope(second_half(life.by_connects(what)))]
        ]
        counts = {key: value for key, value in life.ended.items() if key not in ("when", "cpu_ms")}
        lines.append(f"{life.name}: {json.dumps(counts)}")
        lines.append(f"{life.name}: growth with each connect: {'; '.join(slopes)}")
        hourly = slope(second_half(life.by_hours("resident_bytes")))
        if hourly:
            kib = Slope(*(each / 1024 for each in (hourly.value, hourly.low, hourly.high)))
            lines.append(f"{life.name}: resident KiB per hour at rest: {told(kib)}")
    lines.append(f"faults: {json.dumps(faults)}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="See docs/testing.md, Soak.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=60, help="in each of the two programs in C; a fifth in Python")
    parser.add_argument("--record", type=Path, help="a file for all figures, a line of JSON each")
    parser.add_argument("--seed", type=int, default=None, help="drawn if it is left out")
    options = parser.parse_args()
    seed = secrets.randbelow(1_000_000_000) if options.seed is None else options.seed
    plan = Plan(options.minutes, options.clients, seed)
    os.environ["PYTHONPATH"] = str(PYTHON_SOURCES)
    for variable in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):  # they are for this machine's programs
        os.environ.pop(variable, None)
        os.environ.pop(variable.upper(), None)
    os.environ.setdefault("BIRDREALTIME_LIBRARY", str(ROOT / "build/lib/libbirdrealtime.so"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"soak: seed {seed}, {plan.minutes:g} min, {plan.clients} clients", flush=True)
    with ExitStack() as stack:
        soak = Soak(plan, stack)
        try:
            soak.run()
            faults = soak.faults()
        except SoakError as error:
            print(f"soak: WRONG, seed {seed}, after {soak.elapsed_s / 60:.1f} min: {error}")
            return 1
        finally:
            if options.record is not None:
                options.record.write_text("".join(soak.record()))
    wrong = [what for life in soak.lives for what in judge(life)] + shortage(soak, faults)
    print("\n".join(closing(soak, faults)))
    for what in wrong:
        print(f"WRONG, seed {seed}: {what}")
    if not wrong:
        print(f"soak: all flat, seed {seed}, {soak.elapsed_s / 60:.1f} min")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
