"""What every measure takes and gives.

A measure is a module of `measures` with a function `measure(plan: Plan) -> list[Section]`, which is entered in
`measures/__init__.py`. It measures in turns what it compares, and prints nothing but by `progress`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plan:
    is_quick: bool
    """All measures together take less than two minutes; what takes long is left out."""
    repetitions: int
    seconds_per_run: float
    is_check: bool = False
    """Floods and latency: only whether the clients work that need nothing but the library."""


@dataclass(frozen=True)
class Goal:
    """A figure that must be at least so large, or at most."""

    what: str
    measured: float
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "times"

    @property
    def is_reached(self) -> bool:
        return (self.at_least is None or self.measured >= self.at_least) and (
            self.at_most is None or self.measured <= self.at_most
        )


@dataclass
class Section:
    """A table of the report."""

    title: str
    header: list[str]
    rows: list[list[str]]
    """As printed. The first column names the row."""
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Sentences below the table: what the figures are, and what bounds them."""
    data: Any = None
    """For results.json: every single run."""
    picture: str = ""
    """The same as SVG."""


def progress(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def figure(value: float) -> str:
    """Three digits that count."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1g}"
