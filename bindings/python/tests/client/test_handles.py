"""Handles that one thread ends while another one uses them, and signal handlers that end a client beneath its calls."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from bird_realtime import BirdRealtime, CalledInHandler, Channel, Closed, Event, NotSubscribed, _abi
from bird_realtime._handle import Handle

from .batches import BatchMaker
from .fake_library import FakeLibrary
from .test_delivery import GENEROUS_S, eventually, has_free_turn


class Gate:
    """Holds the calls of one function of the library until it is opened."""

    def __init__(self, fake: FakeLibrary, name: str) -> None:
        self._function = getattr(fake, name)
        self._entered, self._opened = threading.Event(), threading.Event()
        setattr(fake, name, self)

    def __call__(self, *arguments: Any) -> Any:
        self._entered.set()
        assert self._opened.wait(GENEROUS_S)
        return self._function(*arguments)

    def wait_for_a_call(self) -> None:
        assert self._entered.wait(GENEROUS_S)

    def open(self) -> None:
        self._opened.set()


@pytest.fixture
def elsewhere() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


CHANNEL_CALLS: dict[str, tuple[str, Callable[[Channel], object], object]] = {
    "state": ("bird_channel_state", lambda channel: channel.state, "subscribed"),
    "subscribed": ("bird_channel_state", lambda channel: channel.subscribed, True),
    "repr": ("bird_channel_state", repr, "<Channel 'private-room' subscribed>"),
    "trigger": ("bird_channel_trigger", lambda channel: channel.trigger("client-x", 1), True),
}


@pytest.mark.parametrize("call", CHANNEL_CALLS)
@pytest.mark.parametrize("end", ["unsubscribe", "close"])
def test_a_channel_that_ends_during_a_call(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], elsewhere: ThreadPoolExecutor, call: str, end: str
) -> None:
    bird = make_bird(thread=False)
    room = bird.subscribe("private-room")
    function, act, answer = CHANNEL_CALLS[call]
    gate = Gate(fake, function)
    future: Future[object] = elsewhere.submit(act, room)
    gate.wait_for_a_call()
    if end == "close":
        bird.close()
    else:
        room.unsubscribe()
    handle = fake.handle_of("private-room")
    assert handle not in fake.released, "not while a call uses it"
    gate.open()
    assert future.result(GENEROUS_S) == answer
    assert fake.released.count(handle) == 1
    assert (room.state, room.subscribed, repr(room)) == ("unsubscribed", False, "<Channel 'private-room' unsubscribed>")
    with pytest.raises(Closed if end == "close" else NotSubscribed):
        room.trigger("client-x", 1)
    assert list(room.events()) == []


CLIENT_CALLS: dict[str, tuple[str, Callable[[BirdRealtime], object], object]] = {
    "state": ("bird_client_state", lambda bird: bird.connection.state, "connected"),
    "statistics": ("bird_client_statistics", lambda bird: bird.statistics().events_delivered, 7),
    "flush": ("bird_client_flush", lambda bird: bird.flush(), None),
    "connect": ("bird_client_connect", lambda bird: bird.connect(), None),
    "bind": ("bird_client_intern", lambda bird: bird.bind("a", print), ...),
}


@pytest.mark.parametrize("call", CLIENT_CALLS)
@pytest.mark.parametrize("thread", [True, False])
def test_a_client_that_ends_during_a_call(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], elsewhere: ThreadPoolExecutor, call: str, thread: bool
) -> None:
    bird = make_bird(thread=thread)
    function, act, answer = CLIENT_CALLS[call]
    gate = Gate(fake, function)
    future: Future[object] = elsewhere.submit(act, bird)
    gate.wait_for_a_call()
    if call == "flush":  # close() flushes, too
        bird._delivery.end(GENEROUS_S)
    else:
        bird.close()
    assert bird._native.is_destroyed
    assert fake.destroyed == [], "not while a call uses it"
    gate.open()
    assert future.result(GENEROUS_S) in (answer, bird)
    assert fake.destroyed == ["client", "queue"]
    assert bird.connection.state == "disconnected"
    assert (bird.connection.connection_id, bird.member_id) == (None, None)


def test_the_last_call_releases_once() -> None:
    released: list[object] = []
    handle = Handle(7, released.append)

    def add(value: int, more: int) -> int:
        return value + more

    assert handle.call(add, 1) == 8

    def end_within(value: int) -> int:
        handle.end(_abi.BIRD_ERR_UNSUBSCRIBED)
        assert handle.call(lambda value: 0) == _abi.BIRD_ERR_UNSUBSCRIBED
        assert released == []
        return value

    assert handle.call(end_within) == 7
    handle.end(_abi.BIRD_ERR_CLOSED)
    assert released == [7]
    assert handle.call(lambda value: 0) == _abi.BIRD_ERR_CLOSED


def test_calls_and_an_end_from_many_threads(elsewhere: ThreadPoolExecutor) -> None:
    for _ in range(300):
        is_released = threading.Event()
        barrier = threading.Barrier(5)

        def release(value: int, released: threading.Event = is_released) -> None:
            released.set()

        def look(value: int, released: threading.Event = is_released) -> int:
            return 1 if released.is_set() else 0

        handle = Handle(1, release)

        def use(handle: Handle = handle, barrier: threading.Barrier = barrier, look: Any = look) -> None:
            barrier.wait(GENEROUS_S)
            assert {handle.call(look) for _ in range(20)} <= {0, _abi.BIRD_ERR_CLOSED}

        def end(handle: Handle = handle, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(GENEROUS_S)
            handle.end(_abi.BIRD_ERR_CLOSED)

        futures = [elsewhere.submit(use) for _ in range(4)] + [elsewhere.submit(end)]
        for future in futures:
            future.result(GENEROUS_S)
        assert is_released.is_set()


# --------------------------------------------------------------------------------------------- signal handlers ----


class Interruption:
    """Has one call of a function of the library followed by what a signal handler does there."""

    def __init__(self, fake: FakeLibrary, name: str, act: Callable[[], object], *, before: bool = False) -> None:
        self._function, self._act, self._before = getattr(fake, name), act, before
        self._thread = threading.get_ident()
        self.took_s: float | None = None
        setattr(fake, name, self)

    def __call__(self, *arguments: Any) -> Any:
        if self._before:
            self._interrupt()
        result = self._function(*arguments)
        if not self._before:
            self._interrupt()
        return result

    def _interrupt(self) -> None:
        if self.took_s is None and threading.get_ident() == self._thread:
            self.took_s = 0
            began = time.monotonic()
            self._act()
            self.took_s = time.monotonic() - began


def tick(fake: FakeLibrary, *values: int) -> None:
    batch = BatchMaker()
    for value in values:
        batch.event(fake.tags["orders"], "tick", value)
    fake.deliver(batch)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("thread", [True, False])
def test_closing_in_a_signal_handler_while_the_thread_rests(
    fake: FakeLibrary,
    make_bird: Callable[..., BirdRealtime],
    caplog: pytest.LogCaptureFixture,
    thread: bool,
    before: bool,
) -> None:
    """What has come is delivered, as by close() anywhere else."""
    bird = make_bird(thread=thread)
    seen: list[int] = []
    bird.subscribe("orders").bind("tick", lambda event: seen.append(event.data))

    def stop() -> None:
        tick(fake, 1, 2)
        bird.close(timeout=GENEROUS_S)

    interruption = Interruption(fake, "bird_queue_wait", stop, before=before)
    bird.run_forever()
    assert interruption.took_s is not None
    assert interruption.took_s < GENEROUS_S / 4
    assert seen == [1, 2]
    assert (fake.destroyed, fake.held_batches) == (["client", "queue"], 0)
    assert "still running" not in caplog.text


@pytest.mark.parametrize("function", ["bird_queue_drain", "bird_batch_release"])
@pytest.mark.parametrize("thread", [True, False])
def test_closing_in_a_signal_handler_while_a_batch_is_taken(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], thread: bool, function: str
) -> None:
    """As in a handler: nothing is delivered any more, and the interrupted call ends the client."""
    bird = make_bird(thread=thread)
    seen: list[int] = []
    bird.subscribe("orders").bind("tick", lambda event: seen.append(event.data))
    bird._delivery.pause_thread()
    eventually(lambda: has_free_turn(bird))
    interruption = Interruption(fake, function, lambda: bird.close(timeout=GENEROUS_S))
    tick(fake, 1)
    tick(fake, 2)
    bird.run_forever()
    assert interruption.took_s is not None
    assert interruption.took_s < GENEROUS_S / 4
    assert seen == ([] if function == "bird_queue_drain" else [1])
    assert (fake.destroyed, fake.held_batches) == (["client", "queue"], 0)


@pytest.mark.parametrize("thread", [True, False])
def test_closing_in_a_signal_handler_beneath_a_call_that_has_the_lock(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], caplog: pytest.LogCaptureFixture, thread: bool
) -> None:
    bird = make_bird(thread=thread)
    orders = bird.subscribe("orders")
    batch = BatchMaker()
    batch.subscribed(orders._tag, {})
    refused: list[BaseException] = []

    def stop() -> None:
        fake.deliver(batch)  # whose delivery needs the lock
        for wait in (bird.run_forever, orders.wait_subscribed, lambda: bird.wait_until("failed")):
            with pytest.raises(CalledInHandler) as caught:
                wait()
            refused.append(caught.value)
        bird.close(timeout=GENEROUS_S)

    interruption = Interruption(fake, "bird_client_subscribe", stop)
    with pytest.raises(Closed):
        bird.subscribe("more")
    assert interruption.took_s is not None
    assert interruption.took_s < GENEROUS_S / 4
    assert len(refused) == 3
    eventually(lambda: fake.destroyed == ["client", "queue"])
    assert bird.channels == {}
    assert "still running" not in caplog.text


def test_waiting_in_a_signal_handler_while_the_thread_rests(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]
) -> None:
    bird = make_bird(thread=False)
    seen: list[int] = []
    bird.subscribe("orders").bind("tick", lambda event: seen.append(event.data))
    states: list[str] = []

    def wait() -> None:
        tick(fake, 1)
        batch = BatchMaker()
        batch.state(1, 2)
        fake.deliver(batch)
        bird.wait_until("connected", GENEROUS_S)
        states.append("connected")

    Interruption(fake, "bird_queue_wait", wait)
    assert bird._delivery.wait_for(lambda: bool(states), GENEROUS_S)
    assert seen == [1]


@pytest.mark.parametrize("wait", ["run_forever", "wait_until", "events", "signin", "wait_subscribed"])
@pytest.mark.parametrize("thread", [True, False])
def test_a_signal_during_each_wait(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], wait: str, thread: bool
) -> None:
    """A real signal, whose handler closes the client."""
    bird = make_bird(thread=thread)
    orders = bird.subscribe("orders")
    took: list[float] = []

    def stop(number: int, frame: object) -> None:
        began = time.monotonic()
        bird.close(timeout=GENEROUS_S)
        took.append(time.monotonic() - began)

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        if wait in ("run_forever", "events"):
            if wait == "run_forever":
                bird.run_forever()
            else:
                assert list(orders) == []
        else:
            waits: dict[str, Callable[[], object]] = {
                "wait_until": lambda: bird.wait_until("failed"),
                "signin": bird.signin,
                "wait_subscribed": orders.wait_subscribed,
            }
            with pytest.raises((Closed, NotSubscribed)):
                waits[wait]()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(took) == 1
    assert took[0] < GENEROUS_S / 4
    assert fake.destroyed == ["client", "queue"]


@pytest.mark.parametrize("wait", ["run_forever", "wait_until", "events"])
@pytest.mark.parametrize("thread", [True, False])
def test_closing_from_another_thread_during_a_wait(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], elsewhere: ThreadPoolExecutor, wait: str, thread: bool
) -> None:
    bird = make_bird(thread=thread)
    orders = bird.subscribe("orders")
    seen: list[Event] = []
    orders.bind("tick", seen.append)

    def run() -> None:
        if wait == "run_forever":
            bird.run_forever()
        elif wait == "events":
            assert list(orders) == []
        else:
            with pytest.raises(Closed):
                bird.wait_until("failed")

    future = elsewhere.submit(run)
    eventually(lambda: fake.waiting_thread is not None)
    began = time.monotonic()
    bird.close(timeout=GENEROUS_S)
    assert time.monotonic() - began < GENEROUS_S / 4
    future.result(GENEROUS_S)
    assert fake.destroyed == ["client", "queue"]
