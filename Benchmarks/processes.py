"""Servers and clients are programs of their own; a client prints one line of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parent
ROOT = BENCHMARKS.parent
PROGRAMS = ROOT / "build/c"
SWIFT_CLIENT = ROOT / "build/swift/release/swift-bench"
RESULTS = ROOT / "build/bench"

RUN_TIMEOUT_SECONDS = 120

Command = Sequence[str | Path]


class ProgramError(Exception):
    """A program of a measure did not do its work."""


def python(program: str, *arguments: str) -> list[str | Path]:
    return [sys.executable, BENCHMARKS / program, *arguments]


@contextlib.contextmanager
def serving(
    command: Command, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Runs a server; gives the port that it prints first."""
    with subprocess.Popen(
        command, env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            line = server.stdout.readline() if server.stdout else ""
            if not line.strip().isdigit():
                raise ProgramError(f"the server {Path(command[0]).name!r} did not start; its message is above")
            yield int(line), server
        finally:
            server.terminate()


def run(name: str, command: Command, environment: Mapping[str, str] | None = None) -> Any:
    """What a client printed."""
    try:
        finished = subprocess.run(
            command,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            text=True,
            timeout=RUN_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ProgramError(f"the client {name!r} did not end within {RUN_TIMEOUT_SECONDS} s") from None
    if finished.returncode != 0:
        raise ProgramError(f"the client {name!r} failed with status {finished.returncode}; its message is above")
    return json.loads(finished.stdout)
