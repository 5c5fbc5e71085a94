"""The measured sections as text, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from section import Goal, Plan, Section, figure


@dataclass(frozen=True)
class Report:
    plan: Plan
    machine: dict[str, str | int]
    packages: dict[str, str]
    before: dict[str, float]
    after: dict[str, float]
    sections: dict[str, list[Section]]
    """By measure."""

    @property
    def goals(self) -> list[Goal]:
        return [goal for section in self._all_sections() for goal in section.goals]

    @property
    def picture(self) -> str:
        """As SVG; "" if nothing was measured that has one."""
        return "".join(section.picture for section in self._all_sections())

    def _all_sections(self) -> list[Section]:
        return [section for sections in self.sections.values() for section in sections]


GOALS_HEADER = ["figure", "wanted", "is", "verdict"]


def goal_rows(goals: Sequence[Goal]) -> list[list[str]]:
    def bound(goal: Goal) -> str:
        return f"≥ {goal.at_least:g}" if goal.at_least is not None else f"≤ {goal.at_most:g}"

    return [
        [goal.what, f"{bound(goal)} {goal.unit}", figure(goal.measured), "ok" if goal.is_reached else "SHORT"]
        for goal in goals
    ]


def _padded(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    return [
        [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in [header, *rows]
    ]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("  ".join(row).rstrip() for row in _padded(header, rows))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in _padded(header, rows)]
    rule = "| --- |" + " ---: |" * (len(header) - 1)
    return "\n".join([lines[0], rule, *lines[1:]])


def section_text(section: Section) -> str:
    return "\n".join(["", section.title, text_table(section.header, section.rows), *section.notes])


def goals_text(goals: Sequence[Goal]) -> str:
    return "\nwhat it should be, and what it is\n" + text_table(GOALS_HEADER, goal_rows(goals))


def heading(report: Report) -> str:
    machine, plan = report.machine, report.plan
    return (
        f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}, glibc {machine['libc']}; idle before "
        f"{report.before['idle_share']:.0%}, after {report.after['idle_share']:.0%}; load before "
        f"{report.before['load']:.2f}, after {report.after['load']:.2f}; {plan.repetitions} repetitions of about "
        f"{plan.seconds_per_run:g} s, in turns"
    )


def markdown(report: Report, picture: str) -> str:
    """`picture` is the file with the SVG."""
    versions = ", ".join(f"{name} {version}" for name, version in report.packages.items())
    parts = ["## One run", f"{heading(report)}. {versions}."]
    if report.picture:
        parts.append(f"![Events a second of every client, by size]({picture})")
    if report.goals:
        parts += ["### What it should be, and what it is", markdown_table(GOALS_HEADER, goal_rows(report.goals))]
    for sections in report.sections.values():
        for section in sections:
            parts += [f"### {section.title}", markdown_table(section.header, section.rows), *section.notes]
    return "\n\n".join(parts) + "\n"


def as_json(report: Report) -> str:
    content: dict[str, Any] = {
        "plan": asdict(report.plan),
        "machine": report.machine,
        "packages": report.packages,
        "before": report.before,
        "after": report.after,
        "goals": [{**asdict(goal), "is_reached": goal.is_reached} for goal in report.goals],
        "sections": {
            name: [{**asdict(section), "picture": None} for section in sections]
            for name, sections in report.sections.items()
        },
    }
    return json.dumps(content, indent=1) + "\n"
