"""Measures the clients of this repository beside other clients and the limits of this machine.

Prints tables and what they should say. Writes results.json, results.md and, if the floods are measured, results.svg to
build/bench.
"""

from __future__ import annotations

import argparse
import os

import documentation
import machine
from measures import MEASURES
from processes import RESULTS, ROOT
from report import Report, as_json, goals_text, heading, markdown, section_text
from section import Plan, Section

QUICK = Plan(is_quick=True, repetitions=3, seconds_per_run=0.25)
FULL = Plan(is_quick=False, repetitions=7, seconds_per_run=0.4)


def names(text: str) -> list[str]:
    chosen = text.split(",")
    for name in chosen:
        if name not in MEASURES:
            raise argparse.ArgumentTypeError(f"there is no measure {name!r}; choose from {', '.join(MEASURES)}")
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, shorter runs: less than two minutes")
    parser.add_argument(
        "--only", type=names, default=list(MEASURES), metavar="NAMES", help=f"some of {','.join(MEASURES)}"
    )
    parser.add_argument(
        "--update-docs",
        action="store_true",
        help="measures nothing; writes the results of a full run into docs/performance.md",
    )
    arguments = parser.parse_args()
    if arguments.update_docs:
        documentation.update(MEASURES)
        return
    plan = QUICK if arguments.quick else FULL

    before = machine.state()
    if not machine.is_quiet(before):
        print("bench: other programs are running; the figures are too low, and the ratios may be wrong")
    sections: dict[str, list[Section]] = {}
    for name in arguments.only:
        sections[name] = MEASURES[name](plan)
        for section in sections[name]:
            print(section_text(section), flush=True)
    report = Report(plan, machine.description(), before, machine.state(), sections)
    if report.goals:
        print(goals_text(report.goals))
    print(f"\nbench: {heading(report)}")

    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "results.json").write_text(as_json(report))
    (RESULTS / "results.md").write_text(markdown(report, documentation.PICTURE.name))
    if report.picture:
        (RESULTS / "results.svg").write_text(report.picture)
    print(f"bench: results in {os.path.relpath(RESULTS, ROOT)}")


if __name__ == "__main__":
    main()
