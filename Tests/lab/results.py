"""From what runs measured to the tables, which are also those of docs/reliability.md."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from case import Case, Group
from paths import ROOT
from trial import Measured

PAGE = ROOT / "docs/reliability.md"
BEGIN = "<!-- results: written by make lab -->"
END = "<!-- end of the results -->"

# A time may be so much shorter than promised, by the clocks of two programs.
EARLY_S = 0.5

HEADER = (
    "| case | what is broken | the program is told | after s | service is back after s | promised | lost | while away |"
)
RULE = "| --- | --- | --- | --- | --- | --- | --- | --- |"

Results = Mapping[str, Sequence[Measured]]


def check(case: Case, measured: Measured, slack_s: float) -> None:
    """Whether a run was as the case has it; on a machine with much to do, times may be longer than promised."""
    assert measured.lost == 0, measured
    assert measured.told == case.told, measured.told
    for what, seconds, promised in (
        ("told", measured.told_s, case.told_s),
        ("back", measured.back_s, case.back_s),
    ):
        if promised is not None:
            assert seconds is not None
            assert promised[0] - EARLY_S <= seconds <= promised[1] + slack_s, f"{what} after {seconds:.2f} s"


def _seconds(values: Sequence[float | None], promised: tuple[float, float] | None) -> str:
    """The median, and the worst of several runs."""
    if promised is None:
        return "-"
    known = [value for value in values if value is not None]
    return ", ".join("< 0.01" if value < 0.01 else f"{value:.2f}" for value in (median(known), max(known)))


def _promise(case: Case) -> str:
    if case.back_s is None:
        return "never gone"
    return f"{case.back_s[1]:g}"


def told_cell(case: Case) -> str:
    return ", ".join(f"`{words}`" for words in case.told) or "nothing"


def row(case: Case, runs: Sequence[Measured]) -> str:
    options = "".join(f" `{key}={value}`" for key, value in case.options.items())
    notes = "".join(f" {note}" for note in dict.fromkeys(run.note for run in runs) if note)
    cells = [
        f"`{case.name}`",
        case.what + options + notes,
        told_cell(case),
        _seconds([run.told_s for run in runs], case.told_s),
        _seconds([run.back_s for run in runs], case.back_s),
        _promise(case),
        str(sum(run.lost for run in runs)),
        str(round(median(run.away for run in runs))),
    ]
    return f"| {' | '.join(cells)} |"


def section(group: Group, results: Results, load: float) -> str:
    """The table of a group, of the cases that were run, and where that was."""
    measured = [(case, results[case.name]) for case in group.cases if case.name in results]
    runs = [run for _, of_case in measured for run in of_case]
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return "\n".join(
        [
            f"### {group.title}",
            "",
            HEADER,
            RULE,
            *(row(case, of_case) for case, of_case in measured),
            "",
            f"{len(measured)} cases, {len(runs)} runs, {sum(run.received for run in runs)} events received, "
            f"{sum(run.lost for run in runs)} lost. {os.cpu_count()} cores of "
            f"{models[0] if models else platform.machine()}, Linux {platform.release()}; load average before the run "
            f"{load:.1f}.",
            "",
        ]
    )


def update_page(groups: Sequence[Group], measured: Mapping[str, str]) -> None:
    """Puts the sections that were measured, by title, in the place of those that the page has; others stay."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    found, end, after = rest.partition(END)
    assert end, f"{PAGE} has no place for results between {BEGIN!r} and {END!r}"
    sections = {text.splitlines()[0][4:]: text for text in re.split(r"^(?=### )", found, flags=re.MULTILINE)[1:]}
    sections |= {title: f"{text}\n" for title, text in measured.items()}
    kept = "".join(sections[group.title] for group in groups if group.title in sections)
    PAGE.write_text(f"{before}{begin}\n\n{kept}{end}{after}")


def documented() -> list[tuple[str, str, str]]:
    """The first three cells of each row of the page."""
    section = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    return re.findall(r"^\| `(\S+?)` \| (.*?) \| (.*?) \|", section, re.MULTILINE)
