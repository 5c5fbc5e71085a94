"""What `make bench` measures, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable

from section import Plan, Section

from measures import floods

MEASURES: dict[str, Callable[[Plan], list[Section]]] = {
    "floods": floods.measure_plain,
}
