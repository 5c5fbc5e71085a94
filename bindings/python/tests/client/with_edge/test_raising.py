"""Whatever a function of the program raises, and however long it takes, the client goes on."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from bird_realtime import BirdRealtime, CalledInHandler, Event, SubscriptionFailed
from bird_realtime.testing import EdgeServer

from .waiting import GENEROUS_S, eventually

Connect = Callable[..., BirdRealtime]


class Stop(BaseException):
    """One that is no Exception."""


def recurse() -> None:
    recurse()


RAISED = (ValueError, MemoryError, StopIteration, OSError, RecursionError)
INTERRUPTING = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, Stop)


def raiser(kind: type[BaseException]) -> Callable[..., Any]:
    """A function that notes its calls and raises."""

    def function(*arguments: object) -> Any:
        function.calls += 1  # type: ignore[attr-defined]
        if kind is RecursionError:
            recurse()
        raise kind("on purpose")

    function.calls = 0  # type: ignore[attr-defined]
    return function


class Raising(logging.Handler):
    """A logging handler that raises."""

    def __init__(self, kind: type[BaseException]) -> None:
        super().__init__()
        self.raise_it = raiser(kind)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name != "bird_realtime":  # the package's own entries tell of the exceptions
            self.raise_it()


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)


@pytest.fixture
def library_log() -> Iterator[logging.Logger]:
    logger = logging.getLogger("bird_realtime.connection")
    before = list(logger.handlers)
    yield logger
    logger.handlers[:] = before


def check_order(edge: EdgeServer, bird: BirdRealtime, seen: list[int]) -> None:
    """Every event comes, in order, on the connection that there is."""
    connection_id = bird.connection.connection_id
    for number in range(20):
        edge.publish("tick", ["orders"], number)
    eventually(lambda: len(seen) == 20, "every event")
    assert seen == list(range(20))
    assert bird.connection.connection_id == connection_id


@pytest.mark.parametrize("kind", RAISED + INTERRUPTING)
def test_handlers_that_raise(
    edge: EdgeServer, connect: Connect, kind: type[BaseException], library_log: logging.Logger
) -> None:
    bad, told = raiser(kind), raiser(ValueError)
    library_log.addHandler(handler := Raising(kind))
    bird = connect(auto_connect=False, wait=False, on_handler_error=told, log_level="verbose")
    seen: list[int] = []
    bird.connection.bind("state_change", bad).bind("connected", bad).bind("error", bad)
    orders = bird.subscribe("orders").bind("bird:subscription_succeeded", bad).bind("tick", bad)
    orders.bind("tick", lambda event: seen.append(event.data))
    bird.bind_global(bad)
    bird.connect()
    bird.wait_until("connected", GENEROUS_S)
    orders.wait_subscribed(GENEROUS_S)
    edge.inject_text('{"event":"bird:error","data":{"code":4301,"message":"x"}}')
    if kind in RAISED:
        check_order(edge, bird, seen)
        eventually(lambda: bad.calls >= 44, "the calls of all handlers")  # type: ignore[attr-defined]
        eventually(lambda: told.calls >= 44, "the calls of the hook")  # type: ignore[attr-defined]
    else:
        # It leaves the event, whose other handlers are not called, but not the delivery.
        for number in range(20):
            edge.publish("tick", ["orders"], number)
        eventually(lambda: bad.calls >= 23, "an attempt of each event")  # type: ignore[attr-defined]
        assert told.calls == 0  # type: ignore[attr-defined]
    assert handler.raise_it.calls > 0  # type: ignore[attr-defined]
    assert bird.connection.state == "connected"
    bird.close()
    assert bird._native.is_destroyed


def test_authorizers_that_raise(edge: EdgeServer, connect: Connect) -> None:
    """The question is answered all the same, and long before its deadline."""
    # All kinds at once: some are tried again, for up to seven seconds.
    cases = []
    for kind in RAISED + INTERRUPTING:
        bad = raiser(kind)
        bird = connect(authorizer=bad, member_authorizer=bad, auth_timeout_ms=86_400_000)
        failures: list[SubscriptionFailed] = []
        room = bird.subscribe("private-room").bind("bird:subscription_error", failures.append)
        cases.append((kind, bird, room, failures))
    with ThreadPoolExecutor(len(cases)) as threads:
        signins = [threads.submit(bird.signin, timeout=GENEROUS_S) for _, bird, _, _ in cases]
    for (kind, bird, room, failures), signin in zip(cases, signins):
        eventually(partial(bool, failures), f"the error of the channel after {kind}")
        assert "on purpose" in str(failures[0].error) or kind is RecursionError
        with pytest.raises(Exception, match=r"on purpose|recursion"):
            signin.result()
        assert bird.connection.state == "connected"
        assert room.state != "subscribed"


@pytest.mark.parametrize("kind", RAISED + INTERRUPTING)
def test_may_reconnect_that_raises(edge: EdgeServer, connect: Connect, kind: type[BaseException]) -> None:
    """A defect does not keep the program offline."""
    bad = raiser(kind)
    bird = connect(may_reconnect=bad, backoff_base_ms=1, flap_guard=False)
    before = bird.connection.connection_id
    edge.drop_connections()
    eventually(lambda: bird.connection.connection_id not in (None, before), "another connection")
    assert bad.calls > 0  # type: ignore[attr-defined]


def test_a_handler_that_blocks_holds_up_nobody_else(edge: EdgeServer, connect: Connect) -> None:
    """Pings are answered, other clients are served, and what came meanwhile comes after it, in order."""
    edge.set_activity_timeout(1)
    slow, other = connect(queue_records_max=1_000), connect()
    entered, release = threading.Event(), threading.Event()
    seen: list[int] = []
    seen_by_other: list[int] = []

    def block(event: Event) -> None:
        if event.data == 0:
            entered.set()
            assert release.wait(GENEROUS_S)
        seen.append(event.data)

    slow.subscribe("orders").bind("tick", block).wait_subscribed(GENEROUS_S)
    other.subscribe("orders").bind("tick", lambda event: seen_by_other.append(event.data)).wait_subscribed(GENEROUS_S)
    connection_id = slow.connection.connection_id
    try:
        edge.publish("tick", ["orders"], 0)
        assert entered.wait(GENEROUS_S)
        for number in range(1, 500):
            edge.publish("tick", ["orders"], number)
        eventually(lambda: len(seen_by_other) == 500, "all events at the other client")
        pings = slow.statistics().pings_sent
        eventually(lambda: slow.statistics().pings_sent >= pings + 3, "pings of the client that is blocked")
        assert slow.statistics().pongs_missed == 0
        assert not seen
    finally:
        release.set()
    eventually(lambda: len(seen) == 500, "all events")
    assert seen == seen_by_other == list(range(500))
    assert slow.connection.connection_id == connection_id


def test_handlers_that_wait_or_end_their_client(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    refused: list[str] = []

    def refuse(call: Callable[[], object]) -> None:
        with pytest.raises(CalledInHandler):
            call()
        refused.append("once")

    def wait(event: Event) -> None:
        refuse(bird.run_forever)
        refuse(bird.signin)
        refuse(lambda: bird.wait_until("failed"))
        refuse(event.channel.wait_subscribed)
        bird.close()

    bird.subscribe("orders").bind("tick", wait).wait_subscribed(GENEROUS_S)
    edge.publish("tick", ["orders"], 0)
    eventually(lambda: bird._native.is_destroyed, "the end of the client")
    assert len(refused) == 4
