"""Thousands of clients in one process: runs the scale program and judges what it measured.

As a program: full-size runs, and their figures as a table.
"""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paths import PROGRAMS

KIB = 1024
# What the clients may take, each, and the process once: used code, stacks, and what a burst leaves with the allocator.
PLAIN_BYTES_MAX = 9 * KIB
TLS_BYTES_MAX = 96 * KIB
PROCESS_BYTES_MAX = 16 * KIB * KIB
# How often a run may be called wrong whose delays follow the formula.
FALSE_ALARM = 1e-9


@dataclass(frozen=True)
class Run:
    mode: str
    clients: int
    restarts: int = 0
    idle_ms: int = 1000
    activity_s: int = 120
    is_tls: bool = False
    edges: int = 4


@contextmanager
def reserved_ports(count: int) -> Iterator[list[int]]:
    """Ports of 127.0.0.1 that nobody else gets, as a server or for a connection, while edges come and go on them."""
    with ExitStack() as stack:
        ports = []
        for _ in range(count):
            holder = stack.enter_context(socket.socket())
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind(("127.0.0.1", 0))
            ports.append(holder.getsockname()[1])
        yield ports


def listed(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def measure(
    run: Run,
    ca_file: Path | None = None,
    tls_ports: Sequence[int] = (),
    ports: Sequence[int] = (),
    edge: str = "scale_edge",
    environment: Mapping[str, str] | None = None,
) -> Any:
    """The figures of the scale program."""
    command: list[str | Path] = [
        *(PROGRAMS / "scale", "--clients", str(run.clients), "--mode", run.mode, "--edge", PROGRAMS / edge),
        *("--restarts", str(run.restarts), "--idle-ms", str(run.idle_ms), "--activity-s", str(run.activity_s)),
    ]
    if ca_file is not None:
        command += ["--ca-file", ca_file, "--tls-ports", listed(tls_ports)]
    with ExitStack() as stack:
        ports = ports or stack.enter_context(reserved_ports(run.edges))
        done = subprocess.run(
            [*command, "--ports", listed(ports)],
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=300,
        )
    if done.returncode != 0:
        raise AssertionError(f"{run}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def distance_max(delays: int) -> float:
    """What the Kolmogorov-Smirnov distance of so many delays must not exceed if they follow the formula."""
    # Massart's form of the Dvoretzky-Kiefer-Wolfowitz inequality; delays are whole milliseconds.
    return math.sqrt(math.log(2 / FALSE_ALARM) / 2 / delays) + 0.001


def faults(run: Run, found: Any) -> list[str]:
    """What is not as it should be. Times are generous: other work may keep this machine busy."""
    wrong = []

    def expect(is_right: bool, what: str) -> None:
        if not is_right:
            wrong.append(f"{run.mode}, {run.clients} clients: {what}")

    threads = {"loop": 2, "queue": 2, "thread": 6}[run.mode]
    expect(found["threads"] == threads, f"{found['threads']} threads, not {threads}")
    # One socket each, and what libcurl keeps for each 64 connects at a time.
    expect(found["files"] < 1.1, f"{found['files']} open files for each client")
    bytes_max = (TLS_BYTES_MAX if run.is_tls else PLAIN_BYTES_MAX) + PROCESS_BYTES_MAX / run.clients
    expect(found["idle_bytes"] < bytes_max, f"{found['idle_bytes']} bytes for each client, over {bytes_max:.0f}")
    # A timer that was set for the handshakes may still come, once.
    wakeups = found["idle_wakeups"] - found["pings"] * 4
    expect(wakeups <= 2, f"{found['idle_wakeups']} wake-ups and {found['pings']} pings in {run.idle_ms} ms of silence")
    for number, restart in enumerate(found["restarts"]):
        expect(restart["accepted"] >= run.clients, f"restart {number}: {restart['accepted']} connections")
        expect(restart["back_ms"] < 20_000, f"restart {number}: all were back only after {restart['back_ms']} ms")
    if run.restarts > 0:
        expect(found["delays"] >= run.clients, f"only {found['delays']} delays could be judged")
        limit = distance_max(found["delays"])
        expect(found["distance"] < limit, f"the delays are {found['distance']} from the formula, over {limit:.4f}")
    if run.restarts > 2:
        expect(found["delays_guarded"] > 0, "the flap guard never woke")
    expect(found["delivered"] == run.clients, f"{found['delivered']} events delivered, one each was sent")
    expect(found["flooded_events"] > 0, "there was no flood")
    expect(found["flood_ms"] < 10_000, f"beside a flood of one client the others waited {found['flood_ms']} ms")
    expect(found["loud_ms"] < 20_000, f"behind a flood an event waited {found['loud_ms']} ms")
    expect(found["threads_after"] == 1, f"{found['threads_after']} threads after the last destroy")
    expect(found["files_after"] == 0, f"{found['files_after']} open files more than before")
    return wrong


COLUMNS = (
    ("mode", lambda run, found: run.mode + (" TLS" if run.is_tls else "")),
    ("clients", lambda run, found: f"{run.clients}"),
    ("KiB each created", lambda run, found: f"{found['created_bytes'] / KIB:.1f}"),
    ("connected", lambda run, found: f"{found['connected_bytes'] / KIB:.1f}"),
    ("idle", lambda run, found: f"{found['idle_bytes'] / KIB:.1f}"),
    ("threads", lambda run, found: f"{found['threads']}"),
    ("files each", lambda run, found: f"{found['files']:.2f}"),
    ("connect s", lambda run, found: f"{found['connect_ms'] / 1000:.1f}"),
    ("idle wake-ups/s", lambda run, found: f"{found['idle_wakeups'] / run.idle_ms * 1000:.1f}"),
    ("pings/s", lambda run, found: f"{found['pings'] / run.idle_ms * 1000:.0f}"),
    ("idle CPU %", lambda run, found: f"{found['idle_cpu_us'] / run.idle_ms / 10:.2f}"),
    ("back s", lambda run, found: " ".join(f"{r['back_ms'] / 1000:.1f}" for r in found["restarts"]) or "-"),
    ("busiest 100 ms", lambda run, found: " ".join(f"{r['busiest_100ms']}" for r in found["restarts"]) or "-"),
    ("K-S distance", lambda run, found: f"{found['distance']:.4f}" if run.restarts else "-"),
    ("event to all ms", lambda run, found: f"{found['calm_ms']}"),
    ("beside a flood ms", lambda run, found: f"{found['flood_ms']}"),
    ("destroy s", lambda run, found: f"{found['destroy_ms'] / 1000:.1f}"),
)

# The fourth restart is the third that meets connections of under five seconds.
FULL = (
    Run("loop", 10_000, restarts=4, idle_ms=5000),
    Run("thread", 10_000, restarts=4, idle_ms=5000),
    Run("queue", 10_000, restarts=4, idle_ms=5000),
    Run("loop", 10_000, idle_ms=30_000, activity_s=10),
    Run("loop", 1_000, restarts=4, idle_ms=5000),
    Run("loop", 1_000, idle_ms=5000, is_tls=True, edges=1),
    Run("thread", 1_000, idle_ms=5000, is_tls=True, edges=1),
)


def make_certificate(directory: Path, name: str) -> tuple[Path, Path, Path]:
    """Key, certificate for a name, and a list of authorities as long as a system's that ends with it."""
    key, certificate, bundle = directory / "key.pem", directory / "certificate.pem", directory / "bundle.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ),
            *("-subj", "/CN=scale", "-addext", f"subjectAltName={name}", "-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    system = Path("/etc/ssl/certs/ca-certificates.crt")
    bundle.write_bytes((system.read_bytes() if system.exists() else b"") + certificate.read_bytes())
    return key, certificate, bundle


def measure_tls(run: Run) -> Any:
    import ssl

    from tls_front import TlsFront

    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        key, certificate, bundle = make_certificate(Path(directory), "IP:127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        ports = stack.enter_context(reserved_ports(run.edges))
        fronts = [stack.enter_context(TlsFront(context, port)) for port in ports]
        return measure(run, bundle, [front.port for front in fronts], ports)


def main() -> int:
    rows = [[name for name, _ in COLUMNS]]
    wrong: list[str] = []
    for run in FULL:
        print(f"scale: {run.clients} clients, {run.mode}{', TLS' if run.is_tls else ''}", file=sys.stderr)
        found = measure_tls(run) if run.is_tls else measure(run)
        wrong += faults(run, found)
        rows.append([cell(run, found) for _, cell in COLUMNS])
    # Rows become columns: there are more figures than runs.
    table = [list(line) for line in zip(*rows, strict=True)]
    widths = [max(len(line[position]) for line in table) for position in range(len(rows))]
    for number, line in enumerate(table):
        cells = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print("| " + " | ".join(cells) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for what in wrong:
        print(f"WRONG: {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
