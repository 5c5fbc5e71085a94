"""What an edge does to its clients: it restarts, refuses them, sends them away, and is late."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from case import Case
from lab_edge import Fault
from scale import Run, distance_max, measure
from scripted_server import Connection
from stream import AUDIENCE, DOWN_S
from trial import Measured, Trial

TITLE = "The edge"

AT_ONCE_S = (0.0, 0.1)
FIRST_WAIT_S = (0.0, 1.0)
OVER_CAPACITY_S = (1.0, 2.0)
LEFT_ALONE_S = 3.0
PONG_TIMEOUT_S = 30.0
ACTIVITY_S = 1


# ------------------------------------------------------------------------------------------------------- restarts ----

CLIENTS = 1_000


def restarts_under_many(_: Trial) -> Measured:
    """`make scale` judges the same at ten times the size."""
    run = Run("loop", CLIENTS, restarts=1)
    found = measure(run)
    [restart] = found["restarts"]
    first, middle, last = (restart[name] / 1000 for name in ("first_ms", "median_ms", "last_ms"))
    assert found["delays"] >= CLIENTS, "not all have told that they lost their connection"
    assert restart["accepted"] >= CLIENTS
    assert found["distance"] < distance_max(found["delays"]), found
    assert (found["threads_after"], found["files_after"]) == (1, 0)
    return Measured(
        told=("unavailable", "connected"),
        told_s=None,
        back_s=restart["back_ms"] / 1000,
        lost=CLIENTS - found["delivered"],
        received=found["delivered"],
        away=0,
        note=(
            f"The first, the middle and the last came back after {first:.2f}, {middle:.2f} and {last:.2f} s, at most "
            f"{restart['busiest_100ms']} in 100 ms; the {found['delays']} waits are {found['distance']:.3f} from the "
            f"jitter formula (Kolmogorov-Smirnov), and {distance_max(found['delays']):.3f} would be too far."
        ),
    )


def restarts_in_a_stream(_: Trial) -> Measured:
    """In a process of its own: so many events would be in the way of the other cases."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("stream.py")], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return Measured(told=("unavailable BIRD_ERR_LOST", "connected"), away=0, note="", **json.loads(done.stdout))


# --------------------------------------------------------------------------------------------------------- closes ----


def close(code: int, reason: str = "") -> Fault:
    return lambda connection: connection.send_close(code, reason)


def closes(code: int, reason: str = "") -> Callable[[Trial], None]:
    def run(trial: Trial) -> None:
        trial.start(trial.serve())
        trial.wait_for_service()
        trial.order(close(code, reason))

    return run


def close_case(code: int, what: str, back_s: tuple[float, float]) -> Case:
    told = (f"unavailable BIRD_ERR_LOST {code}", "connected")
    return Case(f"edge-closes-{code}", f"{what} ({code})", closes(code), told, AT_ONCE_S, back_s)


def says_goodbye(trial: Trial) -> None:
    """To a session that another one has taken the place of: never an attempt of its own."""
    closes(4009, "another session has signed in")(trial)
    trial.wait_until_told()
    time.sleep(LEFT_ALONE_S)
    assert trial.edge.accepted == 1, "the client came back by itself"
    trial.heal()
    trial.client.do("connect")


def refuses_with_every_code(trial: Trial) -> Measured:
    trial.start(trial.serve())
    told_s = back_s = 0.0
    codes = range(4000, 4100)
    for number, code in enumerate(codes, 1):
        for _ in range(2):  # the first may come before its time, and the next connection has the number of that time
            trial.client.wait_for("event")
        trial.fault()
        closed_at = time.monotonic()
        trial.order(close(code))
        error = trial.client.wait_for("error", error="BIRD_ERR_REFUSED", code=code)
        failed = trial.client.wait_for("state", current="failed", close_code=code, reason="BIRD_ERR_REFUSED")
        told_s = max(told_s, error["at_s"] - closed_at, failed["at_s"] - closed_at)
        assert trial.edge.accepted == number, "the client came back by itself"
        connected_at = time.monotonic()
        trial.client.do("connect")
        back_s = max(back_s, trial.client.wait_for_state("connected")["at_s"] - connected_at)
    trial.heal()
    assert len(trial.client.all("error")) == len(codes)
    assert not trial.client.all("connecting_in")
    sent = [number for session in trial.edge.sessions for number, _ in session.sent]
    measured = trial.measure()
    received = {int(record["data"]) for record in trial.client.all("event")}
    return replace(
        measured,
        told=("error BIRD_ERR_REFUSED", "failed BIRD_ERR_REFUSED"),
        told_s=told_s,
        back_s=back_s,
        lost=len(set(sent) - received),
        note=f"After each the program connects again: all {len(codes)} codes, no attempt of the client's own.",
    )


def flaps(code: int) -> Callable[[Trial], None]:
    def shakes_hands_only(connection: Connection) -> None:
        connection.establish()
        connection.send_close(code)
        connection.close()

    def run(trial: Trial) -> None:
        edge = trial.serve(*[shakes_hands_only] * 1000)
        trial.start(edge)
        trial.wait_for_fault()
        time.sleep(10)
        attempts = edge.accepted
        edge.faults.clear()
        trial.heal()
        trial.note = f"{attempts} attempts in the first 10 s."
        assert attempts <= 6

    return run


def answers_a_ping_after(seconds: float) -> Callable[[Trial], None]:
    """The edge says nothing at all meanwhile."""

    def run(trial: Trial) -> None:
        edge = trial.serve(activity_timeout_s=ACTIVITY_S)
        trial.start(edge)
        trial.wait_for_service()

        def is_late() -> None:
            edge.on_ping = lambda: None
            trial.fault()
            time.sleep(seconds)
            edge.is_quiet = False

        edge.on_ping = is_late
        edge.fall_silent()
        trial.wait_for_fault()

    return run


CASES = [
    Case(
        "edge-restarts-under-1000",
        f"it is killed and started again under {CLIENTS} clients.",
        restarts_under_many,
        ("unavailable", "connected"),
        None,
        (0.0, 4.0),
        {},
        1,
    ),
    Case(
        "edge-restarts-in-a-stream",
        f"it ends and is back after {DOWN_S} s, while {AUDIENCE} clients get 1000 events a second each",
        restarts_in_a_stream,
        ("unavailable BIRD_ERR_LOST", "connected"),
        FIRST_WAIT_S,
        (0.0, 4.0),
        {},
        1,
    ),
    Case(
        "edge-refuses",
        "it closes with a code that means: do not come back (4000 to 4099).",
        refuses_with_every_code,
        ("error BIRD_ERR_REFUSED", "failed BIRD_ERR_REFUSED"),
        AT_ONCE_S,
        AT_ONCE_S,
        {},
        1,
    ),
    Case(
        "edge-closes-4009",
        f"another session has taken the place of this one (4009); after {LEFT_ALONE_S:g} s the program connects again",
        says_goodbye,
        ("error BIRD_ERR_REFUSED", "failed BIRD_ERR_REFUSED 4009", "connected"),
        AT_ONCE_S,
        AT_ONCE_S,
    ),
    *(close_case(code, "it is over capacity", OVER_CAPACITY_S) for code in (4100, 4150, 4199)),
    *(close_case(code, "it wants a reconnect at once", AT_ONCE_S) for code in (4200, 4201, 4202, 4299)),
    Case(
        "edge-flaps",
        "it closes with 4200 behind each handshake, for 10 s.",
        flaps(4200),
        ("connected", "unavailable BIRD_ERR_LOST 4200", "connected"),
        AT_ONCE_S,
        (0.0, 16.0),
    ),
    Case(
        "edge-late-pong",
        "it answers a ping after 29 s, and is silent meanwhile",
        answers_a_ping_after(29.0),
        (),
        None,
        None,
    ),
    Case(
        "edge-pong-too-late",
        "it answers a ping after 31 s, and is silent meanwhile",
        answers_a_ping_after(31.0),
        ("unavailable BIRD_ERR_TIMEOUT", "connected"),
        (PONG_TIMEOUT_S, PONG_TIMEOUT_S + 0.1),
        (PONG_TIMEOUT_S, PONG_TIMEOUT_S + 1.2),
    ),
]
