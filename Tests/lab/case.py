"""What a case of the fault lab is, and where the cases are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trial import Measured, Trial


@dataclass(frozen=True)
class Case:
    """One thing that breaks, what the program shall be told of it, and when service shall be back.

    `run` breaks and heals things by a Trial, and need not wait for what follows; one that is about more than one client
    of a Trial gives its own Measured. `told` is what is then told, in order, as `telling.py` words it. Times are the
    shortest and the longest that are right, in seconds: None for `told_s` where nothing is told, and for `back_s` where
    service is never gone.
    """

    name: str
    what: str
    run: Callable[[Trial], Measured | None]
    told: tuple[str, ...]
    told_s: tuple[float, float] | None
    back_s: tuple[float, float] | None
    options: Mapping[str, str | int] = field(default_factory=dict)  # where they are not the default
    runs: int = 3
    is_quick: bool = False  # run once by `make test`, too

    @property
    def lasts_s(self) -> float:
        """At most, so that those that wait long are begun first."""
        return max(self.told_s or (0, 0)) + max(self.back_s or (0, 0))


@dataclass(frozen=True)
class Group:
    """The cases of one file cases_*.py: its TITLE and its CASES."""

    file: str
    title: str
    cases: tuple[Case, ...]


def groups() -> list[Group]:
    names = [path.stem for path in sorted(Path(__file__).parent.glob("cases_*.py"))]
    modules = {name.removeprefix("cases_"): import_module(name) for name in names}
    return [Group(name, module.TITLE, tuple(module.CASES)) for name, module in modules.items()]


def all_cases() -> dict[str, Case]:
    """By name."""
    cases = [case for group in groups() for case in group.cases]
    by_name = {case.name: case for case in cases}
    assert len(by_name) == len(cases), "two cases have the same name"
    return by_name
