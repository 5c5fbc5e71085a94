"""Threads: who delivers, how waiting calls wait, and how a client ends."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bird_realtime import (
    BirdRealtime,
    CalledInHandler,
    Closed,
    ConnectionFailed,
    Event,
    InvalidArgument,
    Member,
    NotSubscribed,
    NotSupported,
    QueueFull,
    TimedOut,
    _abi,
    delivery,
    stream,
)

from .batches import BatchMaker
from .fake_library import FakeLibrary

GENEROUS_S = 60.0


@pytest.fixture
def elsewhere() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


def send(fake: FakeLibrary, channel_name: str, *values: Any) -> None:
    batch = BatchMaker()
    for value in values:
        batch.event(fake.tags[channel_name], "tick", value)
    fake.deliver(batch)


def fail(fake: FakeLibrary) -> None:
    fake.state = _abi.BIRD_STATE_FAILED
    batch = BatchMaker()
    batch.state(2, _abi.BIRD_STATE_FAILED, close_code=4009, reason=_abi.BIRD_ERR_REFUSED, reason_text=b"terminated")
    fake.deliver(batch)


Delivering = Callable[[], list[threading.Thread]]


@pytest.fixture
def delivering() -> Delivering:
    """The threads of the clients of this test that deliver; one of a test before it may be ending."""
    others = set(threading.enumerate())
    return lambda: [thread for thread in set(threading.enumerate()) - others if thread.name == "bird-realtime"]


def test_the_dispatcher_thread(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], delivering: Delivering
) -> None:
    bird = make_bird()
    arrived = threading.Event()
    names: list[str] = []

    def handler(event: Event) -> None:
        names.append(threading.current_thread().name)
        arrived.set()

    bird.subscribe("orders").bind("tick", handler)
    send(fake, "orders", 1)
    assert arrived.wait(GENEROUS_S)
    assert names == ["bird-realtime"]
    bird.close()
    assert (fake.destroyed, fake.held_batches) == (["client", "queue"], 0)
    assert len(fake.released) == 2, "the channel and the member channel"
    eventually(lambda: not delivering())


def test_close_is_idempotent_and_ends_everything(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    with make_bird() as bird:
        orders = bird.subscribe("orders")
    bird.close()
    assert fake.destroyed == ["client", "queue"]
    assert (bird.connection.state, bird.connection.connection_id, bird.member_id) == ("disconnected", None, None)
    assert orders.state == "unsubscribed"
    for call in (
        bird.connect,
        bird.disconnect,
        bird.flush,
        bird.signin,
        bird.statistics,
        lambda: bird.subscribe("x"),
        lambda: bird.wait_until("connected"),
        lambda: orders.trigger("client-x", {}),
        lambda: orders.bind("a", print),
    ):
        with pytest.raises(Closed):
            call()
    assert list(bird.events()) == []
    orders.unsubscribe()
    orders.unbind()


def test_close_delivers_what_is_left(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    bird = make_bird(thread=False)
    seen: list[int] = []
    bird.subscribe("orders").bind("tick", lambda event: seen.append(event.data))
    send(fake, "orders", 1, 2)
    send(fake, "orders", 3)
    bird.close()
    assert seen == [1, 2, 3]
    assert fake.held_batches == 0


@pytest.mark.parametrize("thread", [True, False])
def test_close_in_a_handler(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], delivering: Delivering, thread: bool
) -> None:
    bird = make_bird(thread=thread)
    seen: list[int] = []

    def once(event: Event) -> None:
        seen.append(event.data)
        bird.close()

    bird.subscribe("orders").bind("tick", once)
    send(fake, "orders", 1, 2, 3)
    send(fake, "orders", 4)
    bird.run_forever()
    assert seen == [1], "no handler is called once close() has returned"
    for each in delivering():
        each.join(GENEROUS_S)
    assert (fake.destroyed, fake.held_batches, fake.waiting_batches) == (["client", "queue"], 0, 0)


def test_close_does_not_wait_for_a_handler_for_ever(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], delivering: Delivering, caplog: pytest.LogCaptureFixture
) -> None:
    bird = make_bird()
    running, go_on = threading.Event(), threading.Event()

    def slow(event: Event) -> None:
        running.set()
        go_on.wait(GENEROUS_S)

    bird.subscribe("orders").bind("tick", slow)
    send(fake, "orders", 1)
    assert running.wait(GENEROUS_S)
    (thread,) = delivering()
    bird.close(timeout=0.05)
    assert "A handler is still running" in caplog.text
    assert fake.destroyed == []
    go_on.set()
    thread.join(GENEROUS_S)
    assert fake.destroyed == ["client", "queue"]


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GENEROUS_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def has_free_turn(bird: BirdRealtime) -> bool:
    is_free = bird._delivery._turn.acquire(blocking=False)
    if is_free:
        bird._delivery._turn.release()
    return is_free


def test_run_forever_delivers_on_the_calling_thread(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], delivering: Delivering, elsewhere: ThreadPoolExecutor
) -> None:
    bird = make_bird()
    seen: list[str] = []

    def last(event: Event) -> None:
        seen.append(threading.current_thread().name)
        bird.close()

    bird.subscribe("orders").bind("tick", last)
    main = threading.get_ident()

    def send_when_running() -> None:
        eventually(lambda: fake.waiting_thread == main)
        send(fake, "orders", 1)

    future = elsewhere.submit(send_when_running)
    bird.run_forever()
    future.result(GENEROUS_S)
    assert seen == ["MainThread"]
    eventually(lambda: not delivering())


def test_the_thread_goes_on_after_run_forever(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    bird = make_bird()
    names: list[str] = []
    arrived = threading.Event()
    orders = bird.subscribe("orders")

    @orders.bind("tick")
    def first(event: Event) -> None:
        names.append(threading.current_thread().name)
        if event.data == "interrupt":
            raise KeyboardInterrupt
        arrived.set()

    bird._delivery.pause_thread()
    eventually(lambda: has_free_turn(bird))
    send(fake, "orders", "interrupt", "rest")
    with pytest.raises(KeyboardInterrupt):
        bird.run_forever()
    assert arrived.wait(GENEROUS_S)
    assert names == ["MainThread", "bird-realtime"]


def test_run_forever_raises_a_refusal(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    bird = make_bird()
    fail(fake)
    with pytest.raises(ConnectionFailed, match="terminated") as caught:
        bird.run_forever()
    assert caught.value.code == 4009
    with pytest.raises(ConnectionFailed, match="terminated"):
        next(bird.events())
    with pytest.raises(ConnectionFailed, match="terminated"):
        bird.wait_until("connected", GENEROUS_S)
    bird.wait_until("failed", GENEROUS_S)


def test_nothing_ends_the_dispatcher_thread(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    bird = make_bird()
    done = threading.Event()

    def leave(event: Event) -> None:
        if event.data == 3:
            done.set()
        sys.exit(1)

    bird.subscribe("orders").bind("tick", leave)
    send(fake, "orders", 1, 2)
    send(fake, "orders", 3)
    assert done.wait(GENEROUS_S)


def test_a_queue_that_fails_ends_the_delivery(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], delivering: Delivering, caplog: pytest.LogCaptureFixture
) -> None:
    bird = make_bird()
    (thread,) = delivering()
    fake.statuses["bird_queue_drain"] = _abi.BIRD_ERR_HANDLE
    bird._native.wake()
    thread.join(GENEROUS_S)
    assert "Delivery has ended: status -2" in caplog.text
    assert fake.destroyed == ["client", "queue"]


def test_waiting_calls_in_a_handler(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime]) -> None:
    bird = make_bird()
    orders = bird.subscribe("orders")
    errors: list[BaseException] = []
    done = threading.Event()

    def wait(event: Event) -> None:
        for call in (
            bird.signin,
            bird.run_forever,
            lambda: bird.wait_until("failed", 1),
            lambda: next(bird.events()),
        ):
            with pytest.raises(CalledInHandler) as caught:
                call()
            errors.append(caught.value)
        done.set()

    orders.bind("tick", wait)
    send(fake, "orders", 1)
    assert done.wait(GENEROUS_S)
    assert len(errors) == 4


def _answer_signin(fake: FakeLibrary, answer: Callable[[int], BatchMaker]) -> None:
    def signin(client: Any, flags: int, tag: int, error: Any) -> int:
        fake.calls.append(("bird_client_signin", flags))
        fake.deliver(answer(tag))
        return _abi.BIRD_OK

    fake.bird_client_signin = signin  # type: ignore[attr-defined]


@pytest.mark.parametrize("thread", [True, False])
def test_signin(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], thread: bool) -> None:
    def succeed(tag: int) -> BatchMaker:
        batch = BatchMaker()
        batch.add(_abi.BIRD_RECORD_COMPLETION, operation=tag + 1000, detail=_abi.CompletionDetail())
        member_data = {"member_id": "m_7", "member_info": {"name": "Noor"}, "watchlist": ["m_8"]}
        batch.member(_abi.BIRD_RECORD_SIGNED_IN, 0, "m_7", member_data)
        batch.add(
            _abi.BIRD_RECORD_COMPLETION,
            operation=tag,
            data=json.dumps(member_data).encode(),
            detail=_abi.CompletionDetail(operation=_abi.BIRD_OPERATION_SIGNIN),
        )
        return batch

    bird = make_bird(thread=thread)
    _answer_signin(fake, succeed)
    assert bird.signin(timeout=GENEROUS_S) == Member("m_7", {"name": "Noor"})
    assert bird.signin(refresh=True, timeout=GENEROUS_S).member_id == "m_7"
    assert [call[1] for call in fake.calls if call[0] == "bird_client_signin"] == [0, 1]
    assert bird._router.completions == {}


def test_signin_fails(fake: FakeLibrary, bird: BirdRealtime) -> None:
    def refuse(tag: int) -> BatchMaker:
        batch = BatchMaker()
        detail = _abi.CompletionDetail(status=_abi.BIRD_ERR_LOST)
        batch.add(_abi.BIRD_RECORD_COMPLETION, operation=tag, detail=detail)
        return batch

    _answer_signin(fake, refuse)
    with pytest.raises(ConnectionFailed):
        bird.signin(timeout=GENEROUS_S)
    _answer_signin(fake, lambda tag: BatchMaker())
    with pytest.raises(TimedOut, match=r"no answer to the signin within 0\.05 s"):
        bird.signin(timeout=0.05)
    assert bird._router.completions == {}


def test_signin_ends_with_the_client(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], elsewhere: ThreadPoolExecutor
) -> None:
    bird = make_bird()
    future = elsewhere.submit(bird.signin)
    assert bird._delivery.wait_for(lambda: bool(bird._router.completions), GENEROUS_S)
    bird.close()
    with pytest.raises(Closed):
        future.result(GENEROUS_S)


def test_wait_until(fake: FakeLibrary, bird: BirdRealtime) -> None:
    batch = BatchMaker()
    batch.state(1, 2)
    fake.deliver(batch)
    bird.wait_until("connected", GENEROUS_S)
    bird.wait_until("connected", 0)
    fake.state = _abi.BIRD_STATE_CONNECTING
    with pytest.raises(TimedOut, match="it is connecting"):
        bird.wait_until("connected", 0.05)
    batch = BatchMaker()
    batch.state(1, 2)
    batch.state(2, 3)
    fake.deliver(batch)
    bird.wait_until("connected", GENEROUS_S)
    assert bird.connection._named == {}, "nothing is left bound"
    with pytest.raises(InvalidArgument, match="no state 'conected'"):
        bird.wait_until("conected")


def test_wait_subscribed(fake: FakeLibrary, bird: BirdRealtime) -> None:
    orders = bird.subscribe("orders")
    with pytest.raises(TimedOut):
        orders.wait_subscribed(0.05)  # subscribed already, but its handlers have not been told
    batch = BatchMaker()
    batch.subscribed(orders._tag, {})
    fake.deliver(batch)
    orders.wait_subscribed(GENEROUS_S)
    handle = fake.handle_of("orders")
    fake.channel_states[handle] = _abi.BIRD_CHANNEL_PENDING
    with pytest.raises(TimedOut):
        orders.wait_subscribed(0.05)
    fake.channel_states[handle] = _abi.BIRD_CHANNEL_FAILED
    batch = BatchMaker()
    batch.add(_abi.BIRD_RECORD_SUBSCRIPTION_ERROR, tag=orders._tag, detail=_abi.SubscriptionDetail())
    fake.deliver(batch)
    with pytest.raises(Exception, match="status -30") as caught:
        orders.wait_subscribed(GENEROUS_S)
    assert caught.value is orders.error


def test_trigger(fake: FakeLibrary, bird: BirdRealtime) -> None:
    room = bird.subscribe("private-room")
    assert room.trigger("client-a", {"żółw": [1.5, None, 2**70]})
    assert room.trigger("client-b")
    assert room.trigger("client-c", None)
    assert room.trigger("client-d", raw=b'{"n": 1.000}')
    sent = [call[2:5] for call in fake.calls if call[0] == "bird_channel_trigger"]
    payload = '{"żółw":[1.5,null,1180591620717411303424]}'.encode()
    assert sent == [
        (b"client-a", payload, len(payload)),
        (b"client-b", None, 0),
        (b"client-c", b"null", 4),
        (b"client-d", b'{"n": 1.000}', 12),
    ]
    unfit: Any
    for unfit in ({1, 2}, float("nan"), "\ud800"):
        with pytest.raises(InvalidArgument, match="data cannot be written as JSON") as caught:
            room.trigger("client-e", unfit)
        assert caught.value.status == _abi.BIRD_ERR_PAYLOAD
    text: Any = "text"
    with pytest.raises(InvalidArgument, match="raw must be bytes, not str"):
        room.trigger("client-f", raw=text)
    with pytest.raises(InvalidArgument, match="data and raw"):
        room.trigger("client-g", 1, raw=b"1")
    fake.statuses["bird_channel_trigger"] = _abi.BIRD_ERR_NOT_SUBSCRIBED
    with pytest.raises(NotSubscribed):
        room.trigger("client-h", 1)
    fake.statuses["bird_channel_trigger"] = _abi.BIRD_ERR_FULL
    with pytest.raises(QueueFull) as full:
        room.trigger("client-i", 1)
    assert full.value.retriable
    room.unsubscribe()
    with pytest.raises(NotSubscribed, match="subscribe again"):
        room.trigger("client-j", 1)


def test_the_member_channel_is_for_listening(bird: BirdRealtime) -> None:
    with pytest.raises(NotSupported):
        bird.member.trigger("client-x", 1)
    with pytest.raises(NotSupported):
        bird.member.unsubscribe()


def test_statistics(bird: BirdRealtime) -> None:
    assert bird.statistics().events_delivered == 7


def test_flush(fake: FakeLibrary, bird: BirdRealtime) -> None:
    bird.flush()
    fake.statuses["bird_client_flush"] = _abi.BIRD_ERR_TIMEOUT
    with pytest.raises(TimedOut, match=r"not everything was written within 0\.25 s"):
        bird.flush(0.25)
    assert [call[2] for call in fake.calls if call[0] == "bird_client_flush"][-1] == 0
    fake.statuses.clear()  # else the end of the client waits, too


# ----------------------------------------------------------------------------------------------------- streams ----


@pytest.mark.parametrize("thread", [True, False])
def test_events_of_a_channel(fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], thread: bool) -> None:
    bird = make_bird(thread=thread)
    orders, others = bird.subscribe("orders"), bird.subscribe("others")
    events = iter(orders)
    send(fake, "others", 0)
    send(fake, "orders", 1, 2)
    seen = []
    for event in events:
        seen.append(event.data)
        if event.data == 2:
            break
    assert seen == [1, 2]
    everything = bird.events(timeout=GENEROUS_S)
    send(fake, "orders", 3)
    send(fake, "others", 4)
    assert [next(everything).data, next(everything).data] == [3, 4]
    assert others._default_route, "the stream is still there"
    del events, everything
    gc.collect()
    assert not orders._default_route
    assert not others._default_route
    assert not bird._delivery._buffers


def test_a_closed_stream(fake: FakeLibrary, bird: BirdRealtime) -> None:
    bird.subscribe("orders")
    events = bird.events()
    send(fake, "orders", 1, 2)
    assert next(events).data == 1
    events.close()
    events.close()
    assert list(events) == []


def test_a_stream_ends_with_its_channel(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], elsewhere: ThreadPoolExecutor
) -> None:
    bird = make_bird()
    orders = bird.subscribe("orders")
    events = orders.events()
    send(fake, "orders", 1)
    seen: list[int] = []
    future = elsewhere.submit(lambda: seen.extend(event.data for event in events))
    assert bird._delivery.wait_for(lambda: seen == [1], GENEROUS_S)
    orders.unsubscribe()
    future.result(GENEROUS_S)
    assert seen == [1]


def test_a_full_stream_pauses_the_delivery(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "STREAM_EVENTS_MAX", 10)
    bird = make_bird()
    bird.subscribe("orders")
    events = bird.events()
    for start in range(0, 100, 5):
        send(fake, "orders", *range(start, start + 5))
    assert bird._delivery._buffers[0].consumer == threading.get_ident()
    with contextlib.suppress(QueueFull):
        bird._delivery.wait_for(lambda: bird._delivery._buffers[0].is_full, GENEROUS_S)
    with pytest.raises(QueueFull, match="take its events before waiting"):
        bird.signin(timeout=GENEROUS_S)
    assert fake.waiting_batches == 18
    assert [next(events).data for _ in range(100)] == list(range(100))


# ------------------------------------------------------------------------------------------- ends of a client ----


@pytest.mark.parametrize("thread", [True, False])
def test_a_forgotten_client(fake: FakeLibrary, delivering: Delivering, thread: bool) -> None:
    bird = BirdRealtime("pk_forgotten", region="us1", thread=thread, on_handler_error=lambda error, event: None)
    bird.subscribe("orders").bind("tick", bird.connection.unbind)
    gone = weakref.ref(bird)
    threads = delivering()
    assert len(threads) == thread
    del bird
    with pytest.warns(ResourceWarning, match="unclosed BirdRealtime client of app pk_forgotten"):
        gc.collect()
    assert gone() is None
    for each in threads:
        each.join(GENEROUS_S)
        assert not each.is_alive()
    assert fake.destroyed == ["client", "queue"]


def test_a_client_collected_by_its_own_thread(fake: FakeLibrary, delivering: Delivering) -> None:
    """The last reference may go while the dispatcher thread delivers."""
    bird = BirdRealtime("pk_forgotten", region="us1")
    running, go_on = threading.Event(), threading.Event()

    def handler(event: Event) -> None:
        running.set()
        go_on.wait(GENEROUS_S)
        gc.collect()

    bird.subscribe("orders").bind("tick", handler)
    (thread,) = delivering()
    send(fake, "orders", 1)
    assert running.wait(GENEROUS_S)
    del bird, handler
    go_on.set()
    with pytest.warns(ResourceWarning, match="unclosed"):
        eventually(lambda: gc.collect() < 0 or not thread.is_alive())
    assert fake.destroyed == ["client", "queue"]


def test_a_channel_keeps_its_client(fake: FakeLibrary) -> None:
    channel = BirdRealtime("pk_test", region="us1", thread=False).subscribe("orders")
    gc.collect()
    assert channel.subscribed
    channel._client.close()


def test_the_exit_hook_ends_clients_silently(
    fake: FakeLibrary, make_bird: Callable[..., BirdRealtime], delivering: Delivering
) -> None:
    seen: list[Event] = []
    threaded, plain = make_bird(), make_bird(thread=False)
    plain.subscribe("orders").bind("tick", seen.append)
    send(fake, "orders", 1)
    delivery._end_all()
    eventually(lambda: not delivering())
    assert fake.destroyed == ["client", "queue"] * 2
    assert seen == []
    threaded.close()


def test_posts_are_bounded(bird: BirdRealtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "POSTED_CALLS_MAX", 2)
    bird._delivery.post(lambda: None)
    bird._delivery.post(lambda: None)
    with pytest.raises(QueueFull):
        bird._delivery.post(lambda: None)


def test_log_records_are_of_one_logger(caplog: pytest.LogCaptureFixture) -> None:
    assert not logging.getLogger("bird_realtime").handlers, "the package configures no logging"
