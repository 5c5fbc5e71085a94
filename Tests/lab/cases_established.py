"""What ends, or holds up, a connection that worked."""

from __future__ import annotations

from case import Case
from scripted_server import Connection
from trial import Trial

TITLE = "While connected"


def ends_with_rst(trial: Trial) -> None:
    trial.start(trial.serve())
    trial.wait_for_service()
    trial.order(Connection.reset)


CASES = [
    Case(
        "connected-rst",
        "RST between two events",
        ends_with_rst,
        ("unavailable BIRD_ERR_LOST", "connected"),
        (0.0, 0.1),
        (0.0, 1.0),
        is_quick=True,
    ),
]
