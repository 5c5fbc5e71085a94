"""The programs behind those measures of `make bench` that need nothing but the library. No time is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from paths import ROOT

pytestmark = pytest.mark.xdist_group("bench measures")  # their results are made once

MEASURES = ["first", "dispatch", "private", "load", "client_events"]


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("bench")
    options = ["--check", "--only", ",".join(MEASURES), "--output", str(directory)]
    command = [sys.executable, str(ROOT / "Benchmarks/run.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((directory / "results.json").read_text())["sections"]


@pytest.mark.parametrize("measure", MEASURES)
def test_a_measure_has_rows(sections: Any, measure: str) -> None:
    for section in sections[measure]:
        assert len(section["rows"]) > 1 or measure == "load"
        assert all(len(row) == len(section["header"]) for row in section["rows"])


def test_first_events_arrive(sections: Any) -> None:
    times = sections["first"][0]["data"]
    assert set(times) == {"by hand", "C loop"}
    assert all(time > 0 for runs in times.values() for connections in runs for time in connections)
    assert {len(connections) for runs in times.values() for connections in runs} == {2}


def test_channels_and_handlers_take_their_events(sections: Any) -> None:
    channels, handlers = sections["dispatch"]
    assert [(case["channels"], case["active"]) for case in channels["data"]] == [(1, 1), (100, 100)]
    assert [case["handlers"] for case in handlers["data"]] == [1, 10]
    assert all(time > 0 for case in [*channels["data"], *handlers["data"]] for time in case["cpu_ns"])


def test_private_channels_and_client_events_are_counted(sections: Any) -> None:
    """By the programs, which fail if a number is wrong."""
    assert {run["events"] for run in sections["private"][0]["data"]["C loop"]} == {100}
    assert all(run["call_seconds"] > 0 for run in sections["client_events"][0]["data"]["C loop"])
