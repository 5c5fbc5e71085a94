"""What ends, or holds up, a connection that worked."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from case import Case
from lab_edge import CHANNEL, Fault
from relay import Relay
from scripted_server import Connection, event, text
from trial import Trial

TITLE = "While connected"

AT_ONCE_S = (0.0, 0.1)
# When the program runs again.
UNREAD_S = (0.5, 0.7)
# The first wait is drawn from 0 to 1 s.
FIRST_WAIT_S = (0.0, 1.0)
# 120 s without a byte, and 30 s without an answer to the ping.
DEAD_S = (150.0, 150.2)

RST, FIN = Connection.reset, Connection.close
LOST = ("unavailable BIRD_ERR_LOST", "connected")
DEAD = ("unavailable BIRD_ERR_TIMEOUT", "connected")


def breaks(fault: Fault) -> Callable[[Trial], None]:
    """The edge does it between two events."""

    def run(trial: Trial) -> None:
        trial.start(trial.serve())
        trial.wait_for_service()
        trial.order(fault)

    return run


def in_a_frame(end: Fault) -> Fault:
    def fault(connection: Connection) -> None:
        connection.send(text(event("tick", CHANNEL, -1))[:40])
        end(connection)

    return fault


def closes(code: int) -> Fault:
    def fault(connection: Connection) -> None:
        connection.send_close(code)
        connection.expect_end()
        connection.close()

    return fault


def closed(name: str, code: int, what: str, back_s: tuple[float, float]) -> Case:
    told = (f"unavailable BIRD_ERR_LOST {code}", "connected")
    return Case(f"close-{name}", f"close frame with {code}: {what}", breaks(closes(code)), told, AT_ONCE_S, back_s)


def restarts(trial: Trial) -> None:
    edge = trial.serve()
    trial.start(edge)
    trial.wait_for_service()
    trial.fault()
    edge.go_down()
    time.sleep(10)
    trial.heal()
    edge.come_up()


def through_a_relay(act: Callable[[Trial, Relay], None]) -> Callable[[Trial], None]:
    def run(trial: Trial) -> None:
        edge = trial.serve()
        relay = trial.stack.enter_context(Relay(edge.port))
        trial.start(edge, relay.host)
        trial.wait_for_service()
        trial.fault()
        act(trial, relay)

    return run


def killed(trial: Trial, relay: Relay) -> None:
    relay.signal(signal.SIGKILL)
    trial.wait_until_told()
    trial.heal()


def stopped(seconds: float) -> Callable[[Trial, Relay], None]:
    """The peer's kernel takes everything, and accepts connections; nobody answers."""

    def act(trial: Trial, relay: Relay) -> None:
        relay.signal(signal.SIGSTOP)
        time.sleep(seconds)
        trial.heal()
        relay.signal(signal.SIGCONT)

    return act


def client_stopped(seconds: float, activity_timeout_s: int = 120) -> Callable[[Trial], None]:
    def run(trial: Trial) -> None:
        trial.start(trial.serve(activity_timeout_s=activity_timeout_s))
        trial.wait_for_service()
        trial.fault()
        os.kill(trial.client.process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        trial.heal()
        os.kill(trial.client.process.pid, signal.SIGCONT)

    return run


def unread(end: Fault) -> Callable[[Trial], None]:
    """The program does not run while forty events come and the connection ends behind them."""

    def run(trial: Trial) -> None:
        trial.start(trial.serve())
        trial.wait_for_service()
        os.kill(trial.client.process.pid, signal.SIGSTOP)
        time.sleep(2)
        trial.order(end)
        trial.wait_for_fault()
        time.sleep(0.5)
        trial.heal()
        os.kill(trial.client.process.pid, signal.SIGCONT)

    return run


def drips(size: int) -> Callable[[Trial], None]:
    """An event whose frame has so many bytes comes at one a second."""

    def run(trial: Trial) -> None:
        is_over = threading.Event()

        def fault(connection: Connection) -> None:
            empty = len(text(event("slow", CHANNEL, "")))
            try:
                for byte in text(event("slow", CHANNEL, "x" * (size - empty))):
                    connection.send(bytes([byte]))
                    time.sleep(1)
            finally:
                trial.heal()
                is_over.set()

        trial.start(trial.serve())
        trial.wait_for_service()
        trial.order(fault, is_last=False)
        assert is_over.wait(2 * size)

    return run


CASES = [
    Case("rst", "RST between two events", breaks(RST), LOST, AT_ONCE_S, FIRST_WAIT_S, is_quick=True),
    Case("fin", "FIN without a close frame", breaks(FIN), LOST, AT_ONCE_S, FIRST_WAIT_S),
    Case("rst-frame", "RST within a frame", breaks(in_a_frame(RST)), LOST, AT_ONCE_S, FIRST_WAIT_S),
    Case("fin-frame", "FIN within a frame", breaks(in_a_frame(FIN)), LOST, AT_ONCE_S, FIRST_WAIT_S),
    Case(
        "rst-unread", "RST behind forty events that the program has not read", unread(RST), LOST, UNREAD_S, FIRST_WAIT_S
    ),
    Case("fin-unread", "FIN behind as many", unread(FIN), LOST, UNREAD_S, FIRST_WAIT_S),
    closed("1001", 1001, "going away", FIRST_WAIT_S),
    closed("4200", 4200, "again, at once", (0.0, 0.1)),
    closed("4100", 4100, "over capacity", (1.0, 2.0)),
    Case(
        "restart",
        "the edge is gone for 10 s; its port refuses",
        restarts,
        (LOST[0], "error BIRD_ERR_CONNECT connect", "unavailable BIRD_ERR_CONNECT", LOST[1]),
        AT_ONCE_S,
        (0.0, 30.0),
        runs=5,
    ),
    Case(
        "stopped",
        "the edge's process is stopped (SIGSTOP) for 60 s",
        through_a_relay(stopped(60)),
        (),
        None,
        (0.0, 0.1),
    ),
    Case(
        "half-open",
        "it is stopped for 200 s, as by a suspended machine whose kernel goes on answering",
        through_a_relay(stopped(200)),
        (DEAD[0], "error BIRD_ERR_TIMEOUT upgrade", *DEAD),
        DEAD_S,
        (0.0, 30.0),
    ),
    Case("client-stopped", "the program itself is stopped for 160 s", client_stopped(160), (), None, (0.0, 0.1)),
    Case(
        "client-stopped-quick",
        "the same for 45 s; the edge asks for a ping after 1 s",
        client_stopped(45, 1),
        (),
        None,
        (0.0, 0.1),
    ),
    Case("slow-event", "an event of 55 bytes comes at a byte a second", drips(55), (), None, (0.0, 0.2)),
    Case(
        "slower-event",
        "an event of 100 bytes comes at a byte a second",
        drips(100),
        ("error BIRD_ERR_TIMEOUT message_timeout_ms", *DEAD),
        (60.0, 60.1),
        FIRST_WAIT_S,
    ),
]
