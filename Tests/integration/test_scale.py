"""Many clients in one process, at a size that fits between the other tests; `make scale` runs the full size."""

from __future__ import annotations

import subprocess

import pytest
from paths import PROGRAMS
from scale import Run, faults, measure

RUNS = [
    Run("loop", 2_000, restarts=3),
    Run("thread", 2_000, restarts=1),
    Run("queue", 2_000, restarts=1),
]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.mode)
def test_many_clients(run: Run) -> None:
    assert faults(run, measure(run)) == []


def test_too_few_files_are_a_clear_error() -> None:
    command = f"ulimit -n 200 && exec {PROGRAMS / 'scale'} --clients 500 --mode loop --edge none --ports 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)  # noqa: S607
    assert done.returncode == 1
    assert "about 787 open files are needed, and the hard limit of this process is 200" in done.stderr
