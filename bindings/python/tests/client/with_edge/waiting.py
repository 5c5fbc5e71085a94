"""Waiting for what another thread does."""

from __future__ import annotations

import time
from collections.abc import Callable

GENEROUS_S = 60.0


def eventually(condition: Callable[[], object], what: str = "the condition") -> None:
    deadline = time.monotonic() + GENEROUS_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {GENEROUS_S} s for {what}"
        time.sleep(0.002)
