"""The program of `make scale`, many clients in one process, and what else connects to its edges."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from processes import PROGRAMS, ROOT, Command, ProgramError

sys.path.append(str(ROOT / "Tests/integration"))

from scale import Run, listed, make_certificate, measure, reserved_ports

__all__ = ["KIB", "Run", "edges", "measure", "measure_tls"]

KIB = 1024


@contextlib.contextmanager
def edges(count: int) -> Iterator[str]:
    """Runs edges of the scale program; gives their ports as its options take them."""
    with reserved_ports(count) as ports, contextlib.ExitStack() as stack:
        for port in ports:
            command: Command = [PROGRAMS / "scale_edge", str(port), "120"]
            edge = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            # "ready". It ends with its input.
            if edge.stdout is None or not edge.stdout.readline():
                raise ProgramError("an edge did not start; its message is above")
        yield listed(ports)


def measure_tls(run: Run) -> Any:
    """With edges that speak TLS themselves, and clients that trust one file as long as a system's."""
    with tempfile.TemporaryDirectory() as directory, reserved_ports(run.edges) as ports:
        key, certificate, bundle = make_certificate(Path(directory), "IP:127.0.0.1")
        with_key = Path(directory, "with-key.pem")
        with_key.write_bytes(certificate.read_bytes() + key.read_bytes())
        environment = {"BENCH_SERVER_FILE": str(with_key)}
        return measure(run, bundle, ports, ports, "scale_edge_tls", environment)
