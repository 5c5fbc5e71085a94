"""Measures the clients of this repository beside other clients and the limits of this machine.

Prints tables and what they should say. Writes results.json, results.md and, if the floods are measured, results.svg to
build/bench.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import documentation
import machine
from measures import MEASURES
from processes import RESULTS
from report import Report, as_json, goals_text, heading, markdown, section_text
from section import Plan, Section, progress

QUICK = Plan(is_quick=True, repetitions=3, seconds_per_run=0.2)
FULL = Plan(is_quick=False, repetitions=7, seconds_per_run=0.35)
CHECK = Plan(is_quick=True, repetitions=1, seconds_per_run=0.02, is_check=True)


def names(text: str) -> list[str]:
    chosen = text.split(",")
    for name in chosen:
        if name not in MEASURES:
            raise argparse.ArgumentTypeError(f"there is no measure {name!r}; choose from {', '.join(MEASURES)}")
    return chosen


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, shorter runs: less than two minutes")
    parser.add_argument(
        "--only", type=names, default=list(MEASURES), metavar="NAMES", help=f"some of {','.join(MEASURES)}"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIRECTORY", help="in place of build/bench")
    parser.add_argument(
        "--check",
        action="store_true",
        help="floods and latency: a few events to the clients that need nothing but the library, which tell only that "
        "the programs work",
    )
    parser.add_argument(
        "--update-docs",
        action="store_true",
        help="measures nothing; writes the results of a full run into docs/performance.md",
    )
    return parser.parse_args()


def measure(names: list[str], plan: Plan) -> tuple[dict[str, list[Section]], list[str]]:
    """The sections of each measure, and the measures that failed: they cost the others nothing."""
    sections: dict[str, list[Section]] = {}
    failed = []
    for name in names:
        start = time.monotonic()
        try:
            sections[name] = MEASURES[name](plan)
        except Exception as error:
            progress(f"{name} failed: {type(error).__name__}: {error}")
            failed.append(name)
            continue
        progress(f"{name} took {time.monotonic() - start:.0f} s")
        for section in sections[name]:
            print(section_text(section), flush=True)
    return sections, failed


def main() -> None:
    arguments = parse_arguments()
    if arguments.update_docs:
        documentation.update(MEASURES)
        return
    plan = CHECK if arguments.check else QUICK if arguments.quick else FULL

    before = machine.state()
    if not machine.is_quiet(before):
        print("bench: other programs are running; the figures are too low, and the ratios may be wrong")
    sections, failed = measure(arguments.only, plan)
    report = Report(plan, machine.description(), machine.packages(), before, machine.state(), sections)
    if report.goals:
        print(goals_text(report.goals))
    print(f"\nbench: {heading(report)}")

    output: Path = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    (output / "results.json").write_text(as_json(report))
    (output / "results.md").write_text(markdown(report, documentation.PICTURE.name))
    if report.picture:
        (output / "results.svg").write_text(report.picture)
    print(f"bench: results in {os.path.relpath(output)}")
    if failed:
        sys.exit(f"bench: these measures failed, as told above: {', '.join(failed)}")


if __name__ == "__main__":
    main()
