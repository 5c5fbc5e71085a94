"""What the way to the edge does: it loses everything, with or without anybody being told, or becomes another one."""

from __future__ import annotations

import time
from collections.abc import Callable

from case import Case
from scripted_server import Connection
from trial import Trial
from worlds import DEFAULT, EDGE, NEAR, Cable

TITLE = "The network"

DEAD_S = (150.0, 150.2)
# After a change of the network: a ping at once, and 5 s for an answer.
CHECKED_S = (5.0, 5.5)
DEAD = ("unavailable BIRD_ERR_TIMEOUT", "connected")
# The attempt that begins at once meets the same.
DEAD_STILL = (DEAD[0], "error BIRD_ERR_TIMEOUT connect", *DEAD)
# There is no way for an attempt, either.
UNREACHED = (DEAD[0], "error BIRD_ERR_CONNECT connect", "unavailable BIRD_ERR_CONNECT", DEAD[1])
WAIT_MAX_S = 30.0

Way = Callable[[Trial, Cable], None]


def connected(act: Way, activity_timeout_s: int = 120) -> Callable[[Trial], None]:
    def run(trial: Trial) -> None:
        cable = Cable(trial, EDGE)
        edge = cable.edge(EDGE, activity_timeout_s=activity_timeout_s)
        cable.start(edge)
        trial.wait_for_service()
        act(trial, cable)

    return run


def hole(seconds: float | None, *, is_idle: bool = False, asks: bool = False) -> Way:
    """Black for so long, or until the program is told; the edge publishes into it, or the client asks for something."""

    def act(trial: Trial, cable: Cable) -> None:
        if is_idle:
            trial.edge.fall_silent()
            time.sleep(1)
        cable.cut()
        trial.fault()
        if asks:
            trial.client.do("subscribe", "other", 0)
        if seconds is None:
            trial.wait_until_told()
        else:
            time.sleep(seconds)
        if is_idle:
            trial.edge.speak()
        trial.heal()
        cable.mend()

    return act


def forgotten(trial: Trial, cable: Cable) -> None:
    """The edge gives the connection up while nothing gets through, so that nobody hears of it."""
    trial.edge.fall_silent()
    time.sleep(1)
    cable.cut()
    trial.order(Connection.reset)
    trial.wait_for_fault()
    time.sleep(10)
    trial.edge.speak()
    trial.heal()
    cable.mend()


def route_goes(trial: Trial, cable: Cable) -> None:
    trial.fault()
    cable.near.ip("route del default")
    time.sleep(30)
    trial.heal()
    cable.near.ip(DEFAULT)


def link_down(trial: Trial, cable: Cable) -> None:
    trial.fault()
    cable.near.ip("link set cable down")
    time.sleep(30)
    trial.heal()
    cable.near.ip("link set cable up", DEFAULT)


def carrier_lost(trial: Trial, cable: Cable) -> None:
    trial.fault()
    cable.far.ip("link set cable down")
    time.sleep(30)
    trial.heal()
    cable.far.ip("link set cable up")


def short_flap(trial: Trial, cable: Cable) -> None:
    trial.fault()
    cable.far.ip("link set cable down")
    time.sleep(3)
    trial.heal()
    cable.far.ip("link set cable up")


def address_changes(trial: Trial, cable: Cable) -> None:
    trial.fault()
    cable.near.ip(f"addr del {NEAR}/24 dev cable", "addr add 192.0.2.3/24 dev cable", DEFAULT)
    trial.wait_until_told()
    trial.heal()


CASES = [
    Case("hole-20", "a black hole for 20 s, into which the edge publishes", connected(hole(20)), (), None, (0.0, 20.0)),
    Case(
        "hole-20-idle", "the same while nothing is published", connected(hole(20, is_idle=True)), (), None, (0.0, 0.2)
    ),
    Case("hole", "a black hole until the program is told", connected(hole(None)), DEAD, DEAD_S, (0.0, 1.2)),
    Case(
        "hole-asked",
        "a black hole until the program is told; it asks for another channel meanwhile",
        connected(hole(None, asks=True)),
        ("subscription_error BIRD_ERR_TIMEOUT answer_timeout_ms will retry",),
        (30.0, 30.2),
        (0.0, 30.0),
    ),
    Case("hole-200", "a black hole for 200 s", connected(hole(200)), DEAD_STILL, DEAD_S, (0.0, WAIT_MAX_S)),
    Case(
        "hole-ping-30",
        "a black hole; the edge asks for a ping after 30 s",
        connected(hole(None), 30),
        DEAD,
        (60.0, 60.2),
        (0.0, 1.2),
    ),
    Case(
        "forgotten",
        "the edge gives the connection up while nothing gets through, for 10 s",
        connected(forgotten),
        ("unavailable BIRD_ERR_LOST", "connected"),
        (118.0, 120.2),
        (0.0, 111.0),
    ),
    Case("route-gone", "the default route goes for 30 s", connected(route_goes), UNREACHED, (5.0, 10.5), (0.0, 1.0)),
    Case("link-down", "the link is taken down for 30 s", connected(link_down), UNREACHED, CHECKED_S, (0.0, 1.0)),
    Case("carrier-lost", "the cable is pulled out for 30 s", connected(carrier_lost), UNREACHED, CHECKED_S, (0.0, 3.0)),
    Case("short-flap", "the cable is pulled out for 3 s", connected(short_flap), (), None, (0.0, 1.0)),
    Case("address-changes", "the machine has another address", connected(address_changes), DEAD, CHECKED_S, (0.0, 1.2)),
]
