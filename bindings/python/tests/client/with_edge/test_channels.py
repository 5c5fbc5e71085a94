from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from bird_realtime import (
    AuthorizationError,
    BirdRealtime,
    BirdRealtimeError,
    Event,
    InvalidArgument,
    NotSubscribed,
    NotSupported,
    QueueFull,
    SubscriptionFailed,
)
from bird_realtime.testing import EdgeServer

from .waiting import GENEROUS_S, eventually

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # pydantic's, about a field of the SDK
    from bird import Bird

Connect = Callable[..., BirdRealtime]


def test_what_the_server_sdk_publishes(edge: EdgeServer, connect: Connect, sdk: Bird) -> None:
    bird = connect()
    events = bird.events(GENEROUS_S)
    for name in ("orders", "returns"):
        bird.subscribe(name).wait_subscribed(GENEROUS_S)
    data = {"sku": "A-19", "left": 4, "ts": 1693526400123456789, "name": "zażółć 🐢"}
    sdk.realtime.publish(edge.app_id, event="stock.moved", channels=["orders", "returns"], data=data)
    both = {event.channel.name: event for event in (next(events), next(events))}
    assert both.keys() == {"orders", "returns"}
    for event in both.values():
        assert (event.name, event.data) == ("stock.moved", data)
        assert json.loads(event.raw) == data


def test_a_batch_of_the_server_sdk(edge: EdgeServer, connect: Connect, sdk: Bird) -> None:
    bird = connect()
    orders = bird.subscribe("orders")
    orders.wait_subscribed(GENEROUS_S)
    events = orders.events(GENEROUS_S)
    batch: Any = [{"event": f"e{n}", "channel": "orders", "data": n} for n in range(10)]
    sdk.realtime.publish_batch(edge.app_id, events=batch)
    assert [(event.name, event.data) for event in (next(events) for _ in range(10))] == [
        (f"e{n}", n) for n in range(10)
    ]


@pytest.mark.parametrize("double_encoding", [True, False])
@pytest.mark.parametrize("value", [{"a": 1}, [1, 2.5], "ready", "42", 42, None, True, "", 2**64 - 1])
def test_data(edge: EdgeServer, connect: Connect, value: Any, double_encoding: bool) -> None:
    edge.set_double_encoding(double_encoding)
    orders = connect().subscribe("orders")
    orders.wait_subscribed(GENEROUS_S)
    events = orders.events(GENEROUS_S)
    edge.publish("tick", ["orders"], value)
    expected = 42 if value == "42" and not double_encoding else value
    assert next(events).data == expected


def test_handlers_in_a_thread_and_order(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    orders = bird.subscribe("orders")
    seen: list[int] = []
    done = threading.Event()

    @orders.bind("tick")
    def on_tick(event: Event) -> None:
        seen.append(event.data)
        if len(seen) == 2_000:
            done.set()

    orders.wait_subscribed(GENEROUS_S)
    for number in range(2_000):
        edge.publish("tick", ["orders"], number)
    assert done.wait(GENEROUS_S)
    assert seen == list(range(2_000))


def test_a_success_comes_before_events(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(wait=False, auto_connect=False)
    seen: list[str] = []
    orders = bird.subscribe("orders")
    orders.bind("bird:subscription_succeeded", lambda event: seen.append(event.name))
    orders.bind_global(lambda event: seen.append(event.name))
    assert orders.state == "idle"
    bird.connect()
    edge.wait_for_subscription("orders")
    edge.publish("tick", ["orders"], 1)
    eventually(lambda: len(seen) == 2, "both events")
    assert seen == ["bird:subscription_succeeded", "tick"]
    assert orders.subscribed


def test_subscribe_is_idempotent_and_unsubscribe_ends(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    orders = bird.subscribe("orders")
    assert bird.subscribe("orders") is orders
    orders.wait_subscribed(GENEROUS_S)
    assert bird.subscribe("orders") is orders
    seen: list[int] = []
    orders.bind("tick", lambda event: seen.append(1))
    orders.unsubscribe()
    edge.wait_for_received("bird:unsubscribe")
    assert orders.state == "unsubscribed"
    again = bird.subscribe("orders")
    assert again is not orders
    again.bind("tick", lambda event: seen.append(2))
    again.wait_subscribed(GENEROUS_S)
    edge.publish("tick", ["orders"], 1)
    eventually(lambda: seen, "the event")
    assert seen == [2]
    assert len(edge.journal("received")) == 3


@pytest.mark.parametrize("name", ["no spaces", "", "a" * 165, "#server-to-user-x", "żółw"])
def test_a_bad_name(edge: EdgeServer, connect: Connect, name: str) -> None:
    bird = connect()
    told: list[object] = []
    bird.connection.bind("error", told.append)
    channel = bird.subscribe(name)
    channel.bind("bird:subscription_error", lambda event: told.append(event.error))
    eventually(lambda: len(told) >= 1, "the error")
    assert channel.state == "failed"
    assert isinstance(channel.error, InvalidArgument)
    assert told[-1] is channel.error
    assert bird.channels == {}
    assert edge.journal("received") == []


def test_a_denied_channel_and_a_second_try(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    edge.deny_channel("private-a")
    failures: list[SubscriptionFailed] = []
    channel = bird.subscribe("private-a").bind("bird:subscription_error", failures.append)
    with pytest.raises(AuthorizationError, match="403") as caught:
        channel.wait_subscribed(GENEROUS_S)
    assert (caught.value.http_status, caught.value.endpoint) == (403, edge.auth_endpoint)
    assert channel.state == "failed"
    assert [(failure.error.http_status, failure.will_retry) for failure in failures] == [(403, False)]
    with pytest.raises(AuthorizationError):
        next(iter(channel))
    edge.allow_channel("private-a")
    assert bird.subscribe("private-a") is channel
    channel.wait_subscribed(GENEROUS_S)
    assert channel.error is None


def test_no_endpoint_is_an_error_of_the_channel(edge: EdgeServer, connect: Connect) -> None:
    channel = connect(auth_endpoint=None).subscribe("private-a")
    with pytest.raises(AuthorizationError, match="auth_endpoint"):
        channel.wait_subscribed(GENEROUS_S)


def test_an_idle_asyncio_loop_is_woken(edge: EdgeServer, connect: Connect) -> None:
    """A program with a loop of its own hands events over to it; handlers run on another thread."""
    bird = connect()

    async def first_two() -> list[int]:
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[Event] = asyncio.Queue()
        orders = bird.subscribe("orders")
        orders.bind("tick", lambda event: loop.call_soon_threadsafe(events.put_nowait, event))
        await asyncio.to_thread(orders.wait_subscribed, GENEROUS_S)
        seen = []
        for number in (1, 2):
            await asyncio.to_thread(edge.publish, "tick", ["orders"], number)
            seen.append((await asyncio.wait_for(events.get(), GENEROUS_S)).data)
        return seen

    assert asyncio.run(first_two()) == [1, 2]


def test_client_events(edge: EdgeServer, connect: Connect) -> None:
    one, two = connect("m_1"), connect("m_2")
    rooms = [bird.subscribe("private-room") for bird in (one, two)]
    for room in rooms:
        room.wait_subscribed(GENEROUS_S)
    streams = [room.events(GENEROUS_S) for room in rooms]
    assert rooms[0].trigger("client-typing", {"on": True, "big": 2**64 - 1})
    assert rooms[0].trigger("client-bare")
    assert rooms[1].trigger("client-back", raw=b'{"n":1.000}')
    one.flush(GENEROUS_S)
    first, second = next(streams[1]), next(streams[1])
    assert (first.name, first.data) == ("client-typing", {"on": True, "big": 2**64 - 1})
    assert (second.name, second.data) == ("client-bare", None)
    back = next(streams[0])
    assert (back.name, back.raw) == ("client-back", b'{"n":1.000}'), "never back to the sender"


def test_client_events_that_cannot_be_sent(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(wait=False, auto_connect=False)
    room, orders = bird.subscribe("private-room"), bird.subscribe("orders")
    with pytest.raises(NotSubscribed):
        room.trigger("client-x", {})
    bird.connect()
    room.wait_subscribed(GENEROUS_S)
    orders.wait_subscribed(GENEROUS_S)
    with pytest.raises(InvalidArgument) as caught:
        room.trigger("typing", {})
    assert caught.value.field == "event"
    with pytest.raises(InvalidArgument):
        room.trigger("client-x", raw=b"{not json")
    with pytest.raises(InvalidArgument, match="10"):
        room.trigger("client-x", "x" * 10_241)
    with pytest.raises(NotSupported):
        orders.trigger("client-x", {})
    room.unsubscribe()
    with pytest.raises(NotSubscribed):
        room.trigger("client-x", {})
    bird.flush(GENEROUS_S)
    assert not [entry for entry in edge.journal("received") if "client-x" in entry.text]


def test_connection_counts(edge: EdgeServer, connect: Connect) -> None:
    counts: list[int] = []
    bird = connect()
    orders = bird.subscribe("orders")
    orders.bind("bird:connection_count", lambda event: counts.append(event.data["connection_count"]))
    orders.wait_subscribed(GENEROUS_S)
    connect().subscribe("orders")
    eventually(lambda: counts and counts[-1] == 2, "two connections")


def test_a_cache_channel_without_an_event(edge: EdgeServer, connect: Connect) -> None:
    seen: list[Event] = []
    cache = connect().subscribe("cache-prices").bind("bird:cache_miss", seen.append)
    cache.wait_subscribed(GENEROUS_S)
    edge.inject_text('{"event":"bird:cache_miss","channel":"cache-prices"}')
    eventually(lambda: seen, "bird:cache_miss")
    assert (seen[0].channel, seen[0].data) == (cache, None)


def test_a_slow_handler_loses_nothing(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(queue_records_max=100, queue_bytes_max=10_000)
    orders = bird.subscribe("orders")
    orders.wait_subscribed(GENEROUS_S)
    gate = threading.Event()
    seen: list[int] = []

    def slow(event: Event) -> None:
        assert gate.wait(GENEROUS_S)
        seen.append(event.data)

    orders.bind("tick", slow)
    for number in range(1_000):
        edge.publish("tick", ["orders"], number)
    eventually(lambda: bird.statistics().read_pauses > 0, "a pause of reading")
    gate.set()
    eventually(lambda: len(seen) == 1_000, "all events")
    assert seen == list(range(1_000))


@pytest.mark.parametrize("overflow", ["drop-oldest", "drop-newest"])
def test_a_slow_handler_may_lose_events(edge: EdgeServer, connect: Connect, overflow: str) -> None:
    bird = connect(queue_records_max=100, overflow=overflow)
    errors: list[BirdRealtimeError] = []
    bird.connection.bind("error", errors.append)
    orders = bird.subscribe("orders")
    orders.wait_subscribed(GENEROUS_S)
    gate = threading.Event()
    seen: list[int] = []

    def slow(event: Event) -> None:
        assert gate.wait(GENEROUS_S)
        seen.append(event.data)

    orders.bind("tick", slow)
    for number in range(1_000):
        edge.publish("tick", ["orders"], number)
    eventually(lambda: bird.statistics().events_delivered == 1_000, "all to have come")
    statistics = bird.statistics()
    assert 800 < statistics.events_dropped < 1_000
    assert statistics.read_pauses == 0
    gate.set()
    eventually(lambda: len(seen) == 1_000 - statistics.events_dropped, "what was kept")
    kept = 1_000 - statistics.events_dropped
    assert seen == sorted(seen)
    assert seen[-1] == (999 if overflow == "drop-oldest" else kept - 1)
    eventually(lambda: errors, "the notice")
    assert [(type(error), error.field, error.retriable) for error in errors] == [(QueueFull, "overflow", True)]


def _frame(number: int) -> bytes:
    """An event as an unfragmented text message (RFC 6455 5.2) of 126 to 65 535 bytes."""
    message = json.dumps({"event": "tick", "channel": "orders", "data": json.dumps([number, "x" * 200])}).encode()
    return bytes([0x81, 126, *len(message).to_bytes(2, "big")]) + message


def test_small_messages_after_a_pause_in_the_middle_of_one(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(queue_bytes_max=20_000)
    orders = bird.subscribe("orders")
    orders.wait_subscribed(GENEROUS_S)
    gate = threading.Event()
    seen: list[int] = []

    def slow(event: Event) -> None:
        assert gate.wait(GENEROUS_S)
        seen.append(event.data[0])

    orders.bind("tick", slow)
    stream = b"".join(_frame(number) for number in range(1_000))
    edge.inject_raw(stream[:-10])
    eventually(lambda: bird.statistics().read_pauses > 0, "a pause of reading")
    gate.set()
    eventually(lambda: len(seen) == 999, "all complete messages")
    edge.inject_raw(stream[-10:])
    eventually(lambda: len(seen) == 1_000, "the message that was cut")
    assert seen == list(range(1_000))


@pytest.mark.parametrize("thread", [True, False])
def test_interrupts_at_any_point(edge: EdgeServer, connect: Connect, thread: bool) -> None:
    """Ctrl-C comes between any two instructions, here a thousand times while events keep coming."""
    bird = connect(thread=thread)
    seen: list[int] = []
    orders = bird.subscribe("orders").bind("tick", lambda event: seen.append(event.data))
    orders.wait_subscribed(GENEROUS_S)
    is_over = threading.Event()

    def publish() -> None:
        for number in itertools.count():
            if is_over.is_set():
                return
            edge.publish("tick", ["orders"], number)

    random_s = random.Random(1)  # noqa: S311

    def interrupted() -> None:
        signal.setitimer(signal.ITIMER_REAL, random_s.uniform(1e-6, 1e-3))
        bird.run_forever()

    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        for _ in range(1_000):
            with pytest.raises(KeyboardInterrupt):
                interrupted()
    finally:
        signal.signal(signal.SIGALRM, previous)
        is_over.set()
        publisher.join()
    events = orders.events(GENEROUS_S)
    edge.publish("last", ["orders"])
    while next(events).name != "last":
        pass
    assert seen == sorted(set(seen)), "in order and none twice"
    assert len(seen) > 100
    bird.close()
    assert bird._native.is_destroyed
