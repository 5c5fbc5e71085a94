"""The fault lab: `make lab`, `make lab ONLY=name,name`. What it measures is written to docs/reliability.md.

A case is a Case (case.py) in the list CASES of a file cases_*.py, which also has the TITLE of its table. Its function
works with a Trial (trial.py): it starts an edge and a client, breaks something and heals it. What was told, when
service was back and what was lost is measured by the frame. `make lab ONLY=name` runs it alone, `make lab
ONLY=network` the file cases_network.py; a run without a failure writes the tables of all files that it ran as a whole.
To see that a case can fail, promise something else.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

for directory in ("Tests/integration", "bindings/python/src"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / directory))

from case import Case, all_cases, groups  # noqa: E402
from paths import ROOT  # noqa: E402
from results import section, update_page  # noqa: E402
from trial import Measured, Trial  # noqa: E402

# Runs that wait for minutes cost nothing and run all at once; the others would falsify each other's times.
WAITING_S = 5.0
WAITING_RUNS = 48
BRISK_RUNS = 2

# What may come on top of the promised times, on a machine that runs dozens of clients, or all tests at once: those
# ask what is told and lost, not when.
LAB_SLACK_S, QUICK_SLACK_S = 1.0, 30.0

# Runs start processes on several threads, and pytest changes the environment meanwhile (PYTEST_CURRENT_TEST). The child
# of a vfork reads it in the memory of this process while it changes: its exec may fail with EFAULT. One of a fork has
# a copy.
subprocess._USE_VFORK = False  # type: ignore[misc, attr-defined, unused-ignore]

for variable in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):  # they are for this machine's programs
    os.environ.pop(variable, None)
    os.environ.pop(variable.upper(), None)
os.environ.setdefault("BIRDREALTIME_LIBRARY", str(ROOT / "build/lib/libbirdrealtime.so"))

RESULTS = pytest.StashKey[dict[str, list[Measured]]]()
LOAD = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", default="quick", help="all, or names with commas between them; else a few, once")


def chosen(config: pytest.Config) -> list[Case]:
    text = config.getoption("--cases")
    cases = all_cases()
    if is_quick(config):
        return [case for case in cases.values() if case.is_quick]
    if text == "all":
        return list(cases.values())
    found = {case.name: case for name in text.split(",") for case in named(name, cases)}
    return list(found.values())


def named(name: str, cases: dict[str, Case]) -> list[Case]:
    """The case, or those of a file."""
    by_file = {group.file: list(group.cases) for group in groups()}
    if name in by_file:
        return by_file[name]
    if name in cases:
        return [cases[name]]
    raise pytest.UsageError(f"there is no case {name!r}; there are {', '.join([*by_file, *cases])}")


def is_quick(config: pytest.Config) -> bool:
    return bool(config.getoption("--cases") == "quick")


def slack_s(config: pytest.Config) -> float:
    return QUICK_SLACK_S if is_quick(config) else LAB_SLACK_S


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RESULTS] = {}
    config.stash[LOAD] = os.getloadavg()[0]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", chosen(metafunc.config), ids=lambda case: case.name)


def run(case: Case, directory: Path, slack_s: float) -> Measured:
    directory.mkdir()
    trial = Trial(case, directory, slack_s)
    with trial.stack:
        return case.run(trial) or trial.measure()


Runs = dict[str, list[Future[Measured]]]


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """All runs of all chosen cases, which have begun."""
    cases = sorted(chosen(request.config), key=lambda case: -case.lasts_s)
    slack = slack_s(request.config)
    directory = tmp_path_factory.mktemp("runs")
    with ThreadPoolExecutor(WAITING_RUNS) as waiting, ThreadPoolExecutor(BRISK_RUNS) as brisk:
        yield {
            case.name: [
                (waiting if case.lasts_s > WAITING_S else brisk).submit(
                    run, case, directory / f"{case.name}-{number}", slack
                )
                for number in range(1 if is_quick(request.config) else case.runs)
            ]
            for case in cases
        }
        for pool in (waiting, brisk):
            pool.shutdown(cancel_futures=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    results = config.stash[RESULTS]
    if not results or is_quick(config):
        return
    sections = {}
    for group in groups():
        if any(case.name in results for case in group.cases):
            text = section(group, results, config.stash[LOAD])
            terminalreporter.write_line(text)
            if all(case.name in results for case in group.cases):
                sections[group.title] = text
    if sections and not terminalreporter.stats.get("failed"):
        update_page(groups(), sections)
        terminalreporter.write_line(f"lab: docs/reliability.md has these figures: {', '.join(sections)}")
