"""Runs the C harness, one case in one process, and checks that it leaves no function of the header out."""

from __future__ import annotations

import re
import subprocess

import pytest
from command_edge import CommandEdge
from paths import HARNESS, HEADER, ROOT
from scripted_server import DEADLINE_S

SOURCES = sorted((ROOT / "Tests/CHarness").glob("cases_*.c"))
CASE = re.compile(r"^(CASE|EDGE_CASE|MODE_CASE|LOAD_CASE)\((\w+)\)", re.MULTILINE)
NEEDS = {"CASE": "nothing", "EDGE_CASE": "edge", "MODE_CASE": "mode", "LOAD_CASE": "load"}
MODES = ("thread", "queue", "loop", "host")
CASES = {name: NEEDS[kind] for source in SOURCES for kind, name in CASE.findall(source.read_text())}


def names(needs: str) -> list[str]:
    return [name for name, wanted in CASES.items() if wanted == needs]


def run(*arguments: str) -> None:
    done = subprocess.run([HARNESS, *arguments], capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"


def output(*command: object) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", names("nothing"))
def test_case(name: str) -> None:
    run(name)


@pytest.mark.parametrize("name", names("edge"))
def test_edge_case(name: str, command_edge: CommandEdge) -> None:
    run(name, command_edge.host)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", names("mode"))
def test_mode_case(name: str, mode: str, command_edge: CommandEdge) -> None:
    run(name, command_edge.host, mode)


def test_every_case_of_the_sources_is_run() -> None:
    listed = dict(line.split() for line in output(HARNESS, "--list").splitlines())
    assert listed == CASES


def test_every_function_of_the_header_is_used() -> None:
    declared = set(output(ROOT / "scripts/header-functions", HEADER).split())
    used = set(re.findall(r"\bU (bird_\w+)", output("nm", "-D", "--undefined-only", HARNESS)))
    assert used == declared


@pytest.mark.parametrize("source", ["cases_threads.c", "cases_walk.c"])
def test_every_function_of_the_header_is_called_in(source: str) -> None:
    called = re.findall(r"^(?:[A-Z]+_)?CALL\((\w+)", (ROOT / "Tests/CHarness" / source).read_text(), re.MULTILINE)
    assert sorted(called) == output(ROOT / "scripts/header-functions", HEADER).split()


def test_what_tells_of_the_options_is_up_to_date() -> None:
    done = subprocess.run([ROOT / "scripts/write-options", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
