"""What `make bench` measures, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable

from section import Plan, Section

from measures import client_events, dispatch, first, floods, idle, latency, load, private, restarts

MEASURES: dict[str, Callable[[Plan], list[Section]]] = {
    "floods": floods.measure_plain,
    "tls": floods.measure_tls,
    "latency": latency.measure,
    "idle": idle.measure_idle,
    "first": first.measure_first,
    "restarts": restarts.measure_restarts,
    "dispatch": dispatch.measure_dispatch,
    "private": private.measure_private,
    "load": load.measure_load,
    "client_events": client_events.measure_client_events,
}
