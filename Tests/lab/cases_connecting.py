"""What ends an attempt to connect, or holds it up, at each of its stages."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from case import Case
from lab_edge import Fault
from scripted_server import Connection, handshake, succeeded, text
from trial import Trial

TITLE = "While connecting"

# The first wait is drawn from 0 to 1 s; connecting on this machine takes no time.
FIRST_WAIT_S = (0.0, 1.0)
AT_ONCE_S = (0.0, 0.1)
# The option connect_timeout_ms.
DEADLINE_S = (15.0, 15.1)

LOST = ("error BIRD_ERR_LOST connection", "unavailable BIRD_ERR_LOST", "connected")
REFUSED = ("error BIRD_ERR_CONNECT connect", "unavailable BIRD_ERR_CONNECT", "connected")

End = Callable[[Connection], None]
RST: End = Connection.reset
FIN: End = Connection.close


def meets(fault: Fault) -> Callable[[Trial], None]:
    """The first attempt meets it."""

    def run(trial: Trial) -> None:
        trial.start(trial.serve(fault))

    return run


def accepted(connection: Connection, end: End) -> None:
    assert connection.has_input(DEADLINE_S[1])
    end(connection)


def request(connection: Connection, end: End) -> None:
    connection.read_request()
    end(connection)


def response(connection: Connection, end: End, count: int) -> None:
    """So many bytes of it; below zero, all but so many."""
    connection.read_request()
    connection.send(connection.switching_protocols()[:count])
    end(connection)


def upgraded(connection: Connection, end: End, handshake_bytes: int) -> None:
    connection.upgrade(text(handshake())[:handshake_bytes])
    end(connection)


def established(connection: Connection, end: End) -> None:
    connection.establish()
    connection.expect_subscribe("orders")
    end(connection)


def confirmed(connection: Connection, end: End) -> None:
    connection.establish()
    connection.expect_subscribe("orders")
    connection.send_text(succeeded("orders"))
    end(connection)


def ends(
    name: str, what: str, fault: Callable[..., None], told: tuple[str, ...] = LOST, is_quick: bool = False
) -> list[Case]:
    """With RST and with FIN."""
    return [
        Case(
            f"{name}-{kind}",
            f"{kind.upper()} {what}",
            meets(partial(fault, end=end)),
            told,
            AT_ONCE_S,
            FIRST_WAIT_S,
            is_quick=is_quick,
        )
        for kind, end in (("rst", RST), ("fin", FIN))
    ]


def refused(trial: Trial) -> None:
    edge = trial.serve()
    edge.go_down()
    trial.start(edge, is_broken=True)
    trial.wait_until_told()
    trial.heal()
    edge.come_up()


def nothing(connection: Connection) -> None:
    """The connection stays as it is."""


def upgraded_only(connection: Connection) -> None:
    connection.upgrade()


def drip(connection: Connection, data: bytes, pause_s: float) -> None:
    for index in range(len(data)):
        connection.send(data[index : index + 1])
        time.sleep(pause_s)


def slow_response(connection: Connection) -> None:
    connection.read_request()
    drip(connection, connection.switching_protocols(), 1)


CASES = [
    Case("refused", "nobody listens", refused, REFUSED, AT_ONCE_S, FIRST_WAIT_S, is_quick=True),
    *ends("accepted", "before the request is read", accepted),
    *ends("request", "behind the upgrade request", request, is_quick=True),
    *ends("response-1", "behind one byte of the response", partial(response, count=1)),
    *ends("response-20", "behind 20 bytes of the response", partial(response, count=20)),
    *ends("response-last", "before the last byte of the response", partial(response, count=-1)),
    *ends("upgraded", "behind the response, before the handshake frame", partial(upgraded, handshake_bytes=0)),
    *ends("handshake-1", "behind one byte of the handshake frame", partial(upgraded, handshake_bytes=1)),
    *ends("handshake-30", "in the middle of the handshake frame", partial(upgraded, handshake_bytes=30)),
    *ends("subscribe", "behind the subscribe frame", established, ("connected", *LOST[1:])),
    *ends("confirmed", "behind the confirmation of the subscribe", confirmed, ("connected", *LOST[1:])),
    Case(
        "silent",
        "accepts and never answers",
        meets(nothing),
        ("error BIRD_ERR_TIMEOUT upgrade", "unavailable BIRD_ERR_TIMEOUT", "connected"),
        DEADLINE_S,
        (15.0, 16.1),
    ),
    Case(
        "silent-upgraded",
        "the response comes, and never a handshake frame",
        meets(upgraded_only),
        ("error BIRD_ERR_TIMEOUT handshake", "unavailable BIRD_ERR_TIMEOUT", "connected"),
        DEADLINE_S,
        (15.0, 16.1),
    ),
    Case(
        "slow-response",
        "the response comes at a byte a second",
        meets(slow_response),
        ("error BIRD_ERR_TIMEOUT upgrade", "unavailable BIRD_ERR_TIMEOUT", "connected"),
        DEADLINE_S,
        (15.0, 16.1),
    ),
]
