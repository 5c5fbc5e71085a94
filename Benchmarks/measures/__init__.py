"""What `make bench` measures, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable

from section import Plan, Section

from measures import floods, latency

MEASURES: dict[str, Callable[[Plan], list[Section]]] = {
    "floods": floods.measure_plain,
    "tls": floods.measure_tls,
    "latency": latency.measure,
}
