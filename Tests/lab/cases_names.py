"""What happens between a name and an address that answers."""

from __future__ import annotations

import time
from collections.abc import Callable

from case import Case
from trial import Trial
from worlds import NAME, NXDOMAIN, REFUSED, SERVFAIL, Cable, Resolver

TITLE = "Names and addresses"

FIRST_WAIT_S = (0.0, 1.0)
AT_ONCE_S = (0.0, 0.2)
DEADLINE_S = (15.0, 15.1)
V4, V4_B, V4_C = "198.51.100.1", "198.51.100.2", "198.51.100.3"
V6 = "2001:db8:e::1"

UNKNOWN = ("error BIRD_ERR_RESOLVE resolve", "unavailable BIRD_ERR_RESOLVE", "connected")
THERE = ("connected",)
SILENT = ("error BIRD_ERR_TIMEOUT connect", "unavailable BIRD_ERR_TIMEOUT", "connected")


def with_names(
    act: Callable[[Trial, Cable, Resolver, Callable[[], None]], None], *addresses: str
) -> Callable[[Trial], None]:
    """The edge is at the last of the addresses; `act` does the rest, and starts the client."""

    def run(trial: Trial) -> None:
        cable = Cable(trial, *addresses)
        edge = cable.edge(addresses[-1])
        resolver = Resolver(trial, cable.near, *addresses)

        def start() -> None:
            cable.start(edge, f"{NAME}:{edge.port}", resolver.command, is_broken=True)

        act(trial, cable, resolver, start)

    return run


def answered(code: int | None) -> Callable[[Trial], None]:
    def act(trial: Trial, cable: Cable, resolver: Resolver, start: Callable[[], None]) -> None:
        resolver.code = code
        resolver.come_up()
        start()
        trial.wait_until_told()
        trial.heal()
        resolver.code = 0

    return with_names(act, V4)


def question_lost(trial: Trial, cable: Cable, resolver: Resolver, start: Callable[[], None]) -> None:
    resolver.lost = 2  # for each family
    resolver.come_up()
    start()


def down_at_start(trial: Trial, cable: Cable, resolver: Resolver, start: Callable[[], None]) -> None:
    start()
    time.sleep(20)
    trial.heal()
    resolver.come_up()


def dead(*addresses: str) -> Callable[[Trial, Cable, Resolver, Callable[[], None]], None]:
    """What is sent to these vanishes."""

    def act(trial: Trial, cable: Cable, resolver: Resolver, start: Callable[[], None]) -> None:
        for address in addresses:
            cable.swallow(address)
        resolver.come_up()
        start()

    return act


def dead_then_alive(trial: Trial, cable: Cable, resolver: Resolver, start: Callable[[], None]) -> None:
    dead(V6, V4_B, V4)(trial, cable, resolver, start)
    trial.wait_until_told()
    trial.heal()
    cable.release(V4)


CASES = [
    Case(
        "name-refused",
        "the name server refuses to answer (REFUSED)",
        answered(REFUSED),
        UNKNOWN,
        AT_ONCE_S,
        FIRST_WAIT_S,
    ),
    Case(
        "name-servfail",
        "the name server has a failure (SERVFAIL)",
        answered(SERVFAIL),
        UNKNOWN,
        AT_ONCE_S,
        FIRST_WAIT_S,
    ),
    Case("name-unknown", "the name does not exist (NXDOMAIN)", answered(NXDOMAIN), UNKNOWN, AT_ONCE_S, FIRST_WAIT_S),
    Case("name-silent", "the name server does not answer", answered(None), UNKNOWN, (10.0, 10.2), FIRST_WAIT_S),
    Case(
        "name-lost", "one question to the name server is lost", with_names(question_lost, V4), THERE, None, (5.0, 5.2)
    ),
    Case(
        "resolver-down",
        "no name server for the first 20 s",
        with_names(down_at_start, V4),
        UNKNOWN,
        AT_ONCE_S,
        (0.0, 30.0),
    ),
    Case(
        "v6-hole", "the IPv6 address is a black hole, IPv4 works", with_names(dead(V6), V6, V4), THERE, None, (0.2, 0.5)
    ),
    Case(
        "v4-hole", "the IPv4 address is a black hole, IPv6 works", with_names(dead(V4), V4, V6), THERE, None, AT_ONCE_S
    ),
    Case("v6-refused", "the IPv6 address refuses, IPv4 works", with_names(dead(), V6, V4), THERE, None, AT_ONCE_S),
    Case(
        "first-hole",
        "the first of two IPv4 addresses is a black hole",
        with_names(dead(V4_B), V4_B, V4),
        THERE,
        None,
        (7.5, 7.8),
    ),
    Case(
        "two-holes",
        "the first two of three are",
        with_names(dead(V4_B, V4_C), V4_B, V4_C, V4),
        THERE,
        None,
        (11.25, 11.6),
    ),
    Case(
        "all-holes",
        "all addresses are until the program is told",
        with_names(dead_then_alive, V6, V4_B, V4),
        SILENT,
        DEADLINE_S,
        (0.0, 9.0),
    ),
]
