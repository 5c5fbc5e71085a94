"""The soak: whether its judge can tell growth from noise, and a short run; `make soak` runs it for long."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from flatness import Slope, slope
from paths import ROOT

STEPS = 30


def noisy(growth: float, noise: float, seed: int) -> Slope:
    chance = random.Random(seed)  # noqa: S311
    found = slope([(at, 1000 + growth * at + chance.uniform(-noise, noise)) for at in range(STEPS)])
    assert found is not None
    return found


def test_noise_is_no_growth() -> None:
    assert sum(noisy(0, 100, seed).low > 0 for seed in range(300)) <= 3


def test_growth_below_the_noise_is_found() -> None:
    found = noisy(10, 100, seed=1)
    assert 0 < found.low < 10 < found.high
    assert abs(found.value - 10) < 5


def test_odd_values_move_nothing() -> None:
    points = [(float(at), 1000.0 + 2 * at) for at in range(STEPS)]
    for at in (3, 11, 20):
        points[at] = (float(at), 1e9)
    found = slope(points)
    assert found is not None
    assert abs(found.value - 2) < 0.1


def test_few_points_are_not_judged() -> None:
    assert slope([(0, 0), (1, 5), (2, 10), (3, 15), (4, 20)]) is None
    assert slope([(0, 1)] * 10) is None


def test_a_short_run() -> None:
    program: list[str | Path] = [sys.executable, ROOT / "Tests/integration/soak.py"]
    done = subprocess.run(
        [*program, "--minutes", "0.01", "--clients", "8"], capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "soak: all flat" in done.stdout
