"""How large the library is, and how long it takes to load."""

from __future__ import annotations

import os
import re
import statistics
import subprocess

from processes import PROGRAMS, ROOT, run
from section import Plan, Section, figure, progress

LIBRARY = ROOT / "build/lib/libbirdrealtime.so"
LIBCURL = "libcurl.so.4"
CHECK_RUNS = 2
QUICK_RUNS = 11
FULL_RUNS = 51


def readelf(option: str) -> str:
    return subprocess.run(["readelf", option, "-W", LIBRARY], check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S607


def measure_load(plan: Plan) -> list[Section]:
    progress("loading the library")
    libraries = {"libbirdrealtime.so": str(LIBRARY), "libcurl.so.4 alone": LIBCURL}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in libraries}
    for _ in range(CHECK_RUNS if plan.is_check else QUICK_RUNS if plan.is_quick else FULL_RUNS):
        for name, path in libraries.items():
            runs[name].append(run("load_time", [PROGRAMS / "load_time", path]))

    def times(name: str, key: str) -> str:
        lower, median, upper = statistics.quantiles([each[key] for each in runs[name]], n=4)
        return f"{median / 1000:.2f} ({lower / 1000:.2f} to {upper / 1000:.2f})"

    relocations = sum(map(int, re.findall(r"contains (\d+) entr", readelf("-r"))))
    return [
        Section(
            "Loading the library in a fresh process",
            ["library", "ms in dlopen (middle half)", "ms for the first client", "MB stripped", "relocations"],
            [
                [
                    "libbirdrealtime.so",
                    times("libbirdrealtime.so", "load_us"),
                    times("libbirdrealtime.so", "create_us"),
                    figure(os.stat(LIBRARY).st_size / 1e6),
                    f"{relocations:,}",
                ],
                ["libcurl.so.4 alone", times("libcurl.so.4 alone", "load_us"), "", "", ""],
            ],
            notes=[
                "dlopen with RTLD_NOW of files that are in the page cache. libbirdrealtime.so loads libcurl and all "
                "that libcurl needs, TLS included, which is most of the time.",
            ],
            data=runs,
        )
    ]
