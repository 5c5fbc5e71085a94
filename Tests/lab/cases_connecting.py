"""What ends an attempt to connect, at each of its stages."""

from __future__ import annotations

from collections.abc import Callable

from case import Case
from lab_edge import Fault
from scripted_server import Connection
from trial import Trial

TITLE = "While connecting"

# The first wait is drawn from 0 to 1 s; connecting on this machine takes no time.
FIRST_WAIT_S = (0.0, 1.0)
AT_ONCE_S = (0.0, 0.1)


def resets_before_the_response(connection: Connection) -> None:
    connection.read_request()
    connection.reset()


def meets(fault: Fault) -> Callable[[Trial], None]:
    """The first attempt meets it."""

    def run(trial: Trial) -> None:
        trial.start(trial.serve(fault))

    return run


CASES = [
    Case(
        "upgrade-rst",
        "RST behind the upgrade request",
        meets(resets_before_the_response),
        ("error BIRD_ERR_LOST connection", "unavailable BIRD_ERR_LOST", "connected"),
        AT_ONCE_S,
        FIRST_WAIT_S,
        is_quick=True,
    ),
]
