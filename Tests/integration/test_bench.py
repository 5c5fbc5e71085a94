"""The programs of `make bench` work. No time is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from paths import ROOT

pytestmark = pytest.mark.xdist_group("bench")  # their results are made once

CLIENTS = ["limit: walk", "limit: recv", "C loop", "C queue", "C thread", "Python raw", "Python JSON"]
LATENCY_CLIENTS = ["limit: epoll", "C loop", "C queue", "C thread", "Python raw", "Python JSON"]


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "Benchmarks/run.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("bench")
    done = bench("--check", "--only", "floods,latency", "--output", directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


@pytest.fixture(scope="module")
def content(results: Path) -> Any:
    return json.loads((results / "results.json").read_text())


def test_every_client_of_the_library_takes_the_floods(content: Any) -> None:
    figures = content["sections"]["floods"][0]["data"]
    assert [(each["flood"], each["client"]) for each in figures] == [
        (flood, client) for flood in ("256 B", "16 KiB") for client in CLIENTS
    ]
    for each in figures:
        assert each["counted"]["allocations"] is not None, each
        assert all(run["events"] > 0 and run["seconds"] > 0 for run in each["runs"]), each


def test_every_client_of_the_library_tells_latencies(content: Any) -> None:
    (section,) = content["sections"]["latency"]
    assert list(section["data"]) == LATENCY_CLIENTS
    for runs in section["data"].values():
        for run in runs:
            times = [run["latency_ns"][name] for name in ("p50", "p99", "p999", "max")]
            assert times == sorted(times)
            assert times[0] > 0


def test_the_report_has_goals_tables_and_a_picture(content: Any, results: Path) -> None:
    wanted = [goal["what"] for goal in content["goals"]]
    assert "C loop / limit: walk, 256 B" in wanted
    assert "C loop / limit: epoll, latency p99 at 1,000/s" in wanted
    report = (results / "results.md").read_text()
    for sections in content["sections"].values():
        for section in sections:
            assert f"### {section['title']}\n" in report
            assert all(len(row) == len(section["header"]) for row in section["rows"])
    labels = {element.text for element in ET.parse(results / "results.svg").getroot().iter() if element.text}  # noqa: S314
    assert {*CLIENTS, "256 B", "16 KiB"} <= labels


def test_a_wrong_measure_is_named() -> None:
    done = bench("--only", "floods,latencies")
    assert done.returncode == 2
    assert "there is no measure 'latencies'; choose from floods, " in done.stderr
