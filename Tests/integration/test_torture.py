"""Random calls of every function from several threads, with a seed (Tests/Torture); `make torture` runs longer."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from paths import HEADER, PROGRAMS, ROOT
from scripted_server import DEADLINE_S

SECONDS = 2
FIGURES = re.compile(
    r"torture: seed \d+, \d+ threads, \d+ s: (\d+) calls of (\d+) functions, (\d+) of them in callbacks;.*\n"
)


def header_functions() -> list[str]:
    command = [ROOT / "scripts/header-functions", HEADER]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("seed", [1])
def test_torture(seed: int) -> None:
    command: list[str | Path] = [PROGRAMS / "torture", str(SECONDS), str(seed), "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=6 * DEADLINE_S, check=False)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    figures = FIGURES.fullmatch(done.stdout)
    assert figures is not None, done.stdout
    calls, functions, in_callbacks = map(int, figures.groups())
    assert functions == len(header_functions())
    assert calls - in_callbacks >= functions


def test_every_function_of_the_header_is_called() -> None:
    sources = sorted((ROOT / "Tests/Torture").glob("calls_*.c"))
    text = "".join(source.read_text() for source in sources)
    called = re.findall(r"^(?:WAITING_|PLAIN_|ERROR_)?CALL\((\w+)", text, re.MULTILINE)
    assert sorted(called) == header_functions()
