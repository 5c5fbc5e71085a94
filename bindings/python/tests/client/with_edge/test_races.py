"""One thread looks at a channel or a client that another one ends, over and over."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from bird_realtime import BirdRealtime, BirdRealtimeError, Channel, Closed, NotSubscribed
from bird_realtime.testing import EdgeServer

from .conftest import settings
from .waiting import GENEROUS_S

ROUNDS = 1_000
CLIENTS = 40

LOOKS: dict[str, Callable[[Channel], object]] = {
    "state": lambda channel: channel.state,
    "subscribed": lambda channel: channel.subscribed,
    "repr": repr,
    "trigger": lambda channel: channel.trigger("client-x", 1),
    "for": list,
}


@pytest.fixture(autouse=True)
def hurry() -> Iterator[None]:
    """Threads that take turns often are in each other's way more often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Watchers:
    """Threads that each do one thing until they are stopped, and note what it raises."""

    def __init__(self, acts: list[Callable[[], object]], allowed: tuple[type[BaseException], ...]) -> None:
        self._allowed = allowed
        self._is_over = threading.Event()
        self.failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=[act], daemon=True) for act in acts]
        for thread in self._threads:
            thread.start()

    def _run(self, act: Callable[[], object]) -> None:
        try:
            while not self._is_over.is_set():
                with contextlib.suppress(*self._allowed):
                    act()
        except BaseException as error:
            self.failures.append(error)

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(GENEROUS_S)
            assert not thread.is_alive()
        assert not self.failures, repr(self.failures[0])


@pytest.mark.parametrize("look", LOOKS)
def test_a_channel_that_another_thread_unsubscribes(connect: Callable[..., BirdRealtime], look: str) -> None:
    bird = connect()
    current = [bird.subscribe("private-a")]
    allowed = (NotSubscribed,) if look == "trigger" else ()
    watchers = Watchers([lambda: LOOKS[look](current[0])] * 2, allowed)
    try:
        for _ in range(ROUNDS):
            current[0] = bird.subscribe("private-a")
            bird.unsubscribe("private-a")
    finally:
        watchers.stop()


def test_a_client_that_another_thread_closes(edge: EdgeServer) -> None:
    def use(bird: BirdRealtime, channel: Channel) -> None:
        assert bird.connection.state in ("initialized", "connecting", "connected", "disconnected")
        assert isinstance(bird.connection.connection_id, (str, type(None)))
        assert channel.state != "failed"
        repr(channel)
        channel.unbind("tick")

    def call(bird: BirdRealtime, channel: Channel) -> None:
        bird.statistics()
        bird.subscribe("more").bind("tick", print)
        bird.flush(0)
        channel.trigger("client-x", 1)

    for _ in range(CLIENTS):
        bird = BirdRealtime(edge.app_key, **settings(edge, "m_1"))
        channel = bird.subscribe("private-a")
        watchers = Watchers([lambda b=bird, c=channel: use(b, c)] * 2, ())  # type: ignore[misc]
        callers = Watchers([lambda b=bird, c=channel: call(b, c)], (Closed, NotSubscribed, TimeoutError))  # type: ignore[misc]
        try:
            bird.close()
        finally:
            watchers.stop()
            callers.stop()
        assert bird._native.is_destroyed


def test_no_bare_status_of_a_handle(connect: Callable[..., BirdRealtime]) -> None:
    """What is raised has a class of its own."""
    bird = connect()
    room = bird.subscribe("private-a")
    room.unsubscribe()
    bird.close()
    for act in (lambda: room.trigger("client-x", 1), bird.statistics, bird.connect, bird.flush, bird.dump):
        with pytest.raises(BirdRealtimeError) as caught:
            act()
        assert type(caught.value) in (NotSubscribed, Closed)
