"""Where and beside what a run was made."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from importlib import metadata
from pathlib import Path

PACKAGES = ("picows", "uvloop", "orjson", "aiohttp", "websockets", "websocket-client", "pysher")

IDLE_MIN = 0.9
OBSERVED_SECONDS = 1


def description() -> dict[str, str | int]:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0].partition(":")[2].strip() if models else platform.machine(),
        "cores": os.cpu_count() or 0,
        "kernel": platform.release(),
        "libc": platform.libc_ver()[1],
    }


def packages() -> dict[str, str]:
    """The versions of Python and of the other clients in it that are installed."""
    versions = {"Python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def _ticks() -> tuple[int, int]:
    """All of all cores, and the idle ones."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def idle_share() -> float:
    """Of the cores' time, over a second. The load average tells of minutes that have passed."""
    total, idle = _ticks()
    time.sleep(OBSERVED_SECONDS)
    total_after, idle_after = _ticks()
    return (idle_after - idle) / (total_after - total)


def state() -> dict[str, float]:
    return {"idle_share": round(idle_share(), 3), "load": os.getloadavg()[0]}


def is_quiet(state: dict[str, float]) -> bool:
    return state["idle_share"] >= IDLE_MIN
