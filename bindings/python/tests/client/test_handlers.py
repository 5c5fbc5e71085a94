"""Which handlers an event reaches, in which order, and what they receive."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from bird_realtime import BirdRealtime, Channel, Event, InvalidArgument, _abi

from .batches import BatchMaker
from .fake_library import FakeLibrary


@pytest.fixture
def orders(bird: BirdRealtime) -> Channel:
    return bird.subscribe("orders")


def deliver(bird: BirdRealtime, batch: BatchMaker) -> None:
    bird._router.deliver(batch.decoded())


def send(channel: Channel, name: str, value: Any = None, event_id: int = 0) -> None:
    batch = BatchMaker()
    batch.event(channel._tag, name, value, event_id=event_id)
    deliver(channel._client, batch)


def test_bind_and_decorate(fake: FakeLibrary, bird: BirdRealtime, orders: Channel) -> None:
    seen: list[tuple[str, Any, Channel]] = []

    @orders.bind("moved")
    def first(event: Event) -> None:
        seen.append(("first", event.data, event.channel))

    assert orders.bind("moved", lambda event: seen.append(("second", event.name, event.channel))) is orders
    send(orders, "moved", {"left": 4}, fake.event_id("moved"))
    assert seen == [("first", {"left": 4}, orders), ("second", "moved", orders)]
    assert first.__name__ == "first"


def test_an_event_without_a_number_is_found_by_name(bird: BirdRealtime, orders: Channel) -> None:
    seen: list[str] = []
    orders.bind("zażółć", lambda event: seen.append(event.name))
    send(orders, "zażółć")
    assert seen == ["zażółć"]


def test_a_record_made_before_the_tag_is_found_by_the_channel_name(bird: BirdRealtime, orders: Channel) -> None:
    seen: list[Channel] = []
    orders.bind("moved", lambda event: seen.append(event.channel))
    batch = BatchMaker()
    batch.add(_abi.BIRD_RECORD_EVENT, channel="orders", event="moved")
    batch.add(_abi.BIRD_RECORD_EVENT, channel="others", event="moved")
    batch.add(_abi.BIRD_RECORD_EVENT, tag=99, channel="orders", event="moved")
    deliver(bird, batch)
    assert seen == [orders]


def test_order_of_handlers(bird: BirdRealtime, orders: Channel) -> None:
    seen: list[str] = []
    bird.bind_global(lambda event: seen.append("client global"))
    orders.bind_global(lambda event: seen.append("channel global"))
    bird.bind("moved", lambda event: seen.append("client named"))
    orders.bind("moved", lambda event: seen.append("channel named 1"))
    orders.bind("moved", lambda event: seen.append("channel named 2"))
    send(orders, "moved")
    assert seen == ["channel named 1", "channel named 2", "client named", "channel global", "client global"]
    seen.clear()
    send(orders, "another")
    assert seen == ["channel global", "client global"]


def test_client_handlers_reach_channels_of_later(bird: BirdRealtime) -> None:
    seen: list[str] = []
    bird.bind("moved", lambda event: seen.append(event.channel.name))
    bird.bind_global()(lambda event: seen.append("global"))
    send(bird.subscribe("late"), "moved")
    assert seen == ["late", "global"]


def test_the_member_channel(bird: BirdRealtime) -> None:
    seen: list[Any] = []
    bird.member.bind("note", lambda event: seen.append(event.data))
    send(bird.member, "note", 5)
    assert seen == [5]


@pytest.mark.parametrize(
    ("raw", "data"),
    [
        (b'{"a":1}', {"a": 1}),
        (b'"ready"', "ready"),
        (b"ready", "ready"),
        (b"42", 42),
        (b"null", None),
        (b"NaN", "NaN"),
        (b"-Infinity", "-Infinity"),
        (b'{"a":1}{', '{"a":1}{'),
        (b"", ""),
        (b" [1] ", [1]),
        (b'{"ts":1693526400123456789,"big":18446744073709551615}', {"ts": 1693526400123456789, "big": 2**64 - 1}),
        ("żółw".encode(), "żółw"),
        (b"[" * 100_000, "[" * 100_000),
    ],
)
def test_data(bird: BirdRealtime, orders: Channel, raw: bytes, data: Any) -> None:
    seen: list[Event] = []
    orders.bind("moved", seen.append)
    batch = BatchMaker()
    batch.add(_abi.BIRD_RECORD_EVENT, tag=orders._tag, event="moved", data=raw)
    deliver(bird, batch)
    (event,) = seen
    assert (event.raw, event.data, event.text) == (raw, data, raw.decode())
    assert event.data is event.data, "parsed once"


def test_no_data(bird: BirdRealtime, orders: Channel) -> None:
    seen: list[Event] = []
    orders.bind("moved", seen.append)
    batch = BatchMaker()
    batch.add(_abi.BIRD_RECORD_EVENT, tag=orders._tag, event="moved")
    deliver(bird, batch)
    assert (seen[0].raw, seen[0].data) == (b"", None)
    assert repr(seen[0]) == "<Event 'moved' on 'orders', 0 bytes>"


class Listener:
    def __init__(self) -> None:
        self.count = 0

    def hear(self, event: Event) -> None:
        self.count += 1


def test_unbind(bird: BirdRealtime, orders: Channel) -> None:
    one, two = Listener(), Listener()
    for event in ("a", "b"):
        orders.bind(event, one.hear).bind(event, two.hear)
    orders.bind_global(one.hear)
    orders.unbind("a", one.hear)
    send(orders, "a")
    assert (one.count, two.count) == (1, 1)
    orders.unbind("b")
    send(orders, "b")
    assert (one.count, two.count) == (2, 1)
    orders.unbind_global(one.hear)
    send(orders, "b")
    assert (one.count, two.count) == (2, 1)
    orders.bind_global(two.hear)
    orders.unbind(handler=two.hear)
    send(orders, "a")
    assert (one.count, two.count) == (2, 1)
    orders.bind("a", one.hear).bind_global(one.hear).unbind()
    send(orders, "a")
    assert (one.count, two.count) == (2, 1)
    orders.unbind("never bound").unbind("a", one.hear)


def test_unbound_by_an_earlier_handler_of_the_same_event(bird: BirdRealtime, orders: Channel) -> None:
    listener = Listener()
    orders.bind("a", lambda event: orders.unbind("a", listener.hear))
    orders.bind("a", listener.hear)
    send(orders, "a")
    assert listener.count == 0


def test_bound_by_a_handler_means_from_the_next_event_on(bird: BirdRealtime, orders: Channel) -> None:
    listener = Listener()

    def once(event: Event) -> None:
        orders.unbind("a", once).bind("a", listener.hear)

    orders.bind("a", once)
    send(orders, "a")
    send(orders, "a")
    assert listener.count == 1


def test_each_record_of_a_batch_has_its_own_route(fake: FakeLibrary, bird: BirdRealtime, orders: Channel) -> None:
    seen: list[tuple[str, str]] = []
    others = bird.subscribe("others")
    bird.bind_global(lambda event: seen.append((event.channel.name, event.name)))
    orders.bind("a", lambda event: None).bind("b", lambda event: None)
    records = [
        (orders._tag, "", "a", fake.event_id("a")),
        (others._tag, "", "a", fake.event_id("a")),
        (99, "gone", "a", fake.event_id("a")),
        (others._tag, "", "a", fake.event_id("a")),
        (orders._tag, "", "a", fake.event_id("a")),
        (orders._tag, "", "b", fake.event_id("b")),
        (orders._tag, "", "c", 0),
        (orders._tag, "", "d", 0),
        (0, "others", "a", fake.event_id("a")),
        (0, "orders", "a", fake.event_id("a")),
        (0, "gone", "a", fake.event_id("a")),
    ]
    batch = BatchMaker()
    for tag, channel, event, event_id in records:
        batch.add(_abi.BIRD_RECORD_EVENT, tag=tag, channel=channel, event=event, event_id=event_id, data=b"1")
    deliver(bird, batch)
    named = {orders._tag: "orders", others._tag: "others"}
    assert seen == [(named.get(tag, channel), event) for tag, channel, event, _ in records if channel != "gone"]


@pytest.mark.parametrize(
    ("change", "heard", "heard_late"),
    [
        (lambda channel, late: channel.bind("a", late), [0, 1, 2, 3], [2, 3]),
        (lambda channel, late: channel._client.bind("a", late), [0, 1, 2, 3], [2, 3]),
        (lambda channel, late: channel.bind_global(late), [0, 1, 2, 3], [2, 3]),
        (lambda channel, late: channel.unbind("a"), [0, 1], []),
        (lambda channel, late: channel.unsubscribe(), [0, 1], []),
        (lambda channel, late: channel._client.close(), [0, 1], []),
    ],
)
def test_what_a_handler_changes_holds_from_the_next_event_of_its_batch_on(
    fake: FakeLibrary,
    bird: BirdRealtime,
    orders: Channel,
    change: Callable[[Channel, Callable[[Event], None]], object],
    heard: list[int],
    heard_late: list[int],
) -> None:
    seen: list[int] = []
    seen_late: list[int] = []

    def handler(event: Event) -> None:
        seen.append(event.data)
        if event.data == 1:
            change(orders, lambda event: seen_late.append(event.data))

    orders.bind("a", handler)
    batch = BatchMaker()
    for number in range(4):
        batch.event(orders._tag, "a", number, event_id=fake.event_id("a"))
    fake.deliver(batch)
    bird._delivery.wait_for(lambda: not fake.waiting_batches, 20)
    assert (seen, seen_late) == (heard, heard_late)


def test_what_cannot_be_bound(bird: BirdRealtime, orders: Channel) -> None:
    nothing: Any = "not callable"
    with pytest.raises(InvalidArgument, match="handler must be callable, not str"):
        orders.bind("moved", nothing)
    number: Any = 5
    with pytest.raises(InvalidArgument, match="event must be a str, not int"):
        orders.bind(number, print)
    with pytest.raises(InvalidArgument, match="the connection has no event 'conected'"):
        bird.connection.bind("conected", print)


def test_a_failing_handler_is_reported_and_harms_nobody(
    make_bird: Callable[..., BirdRealtime], caplog: pytest.LogCaptureFixture
) -> None:
    reported: list[tuple[Exception, object]] = []

    def hook(error: Exception, event: object) -> None:
        reported.append((error, event))
        raise RuntimeError("the hook fails too")

    bird = make_bird(thread=False, on_handler_error=hook)
    orders = bird.subscribe("orders")
    listener = Listener()

    def fail(event: Event) -> None:
        raise LookupError("deliberately")

    orders.bind("a", fail).bind("a", listener.hear)
    batch = BatchMaker()
    for _ in range(100):
        batch.event(orders._tag, "a")
    with caplog.at_level(logging.ERROR, "bird_realtime"):
        deliver(bird, batch)
    assert listener.count == 100
    assert len(reported) == 100
    assert isinstance(reported[0][0], LookupError)
    assert isinstance(reported[0][1], Event)
    assert sum(record.message.startswith("A handler failed on <Event 'a'") for record in caplog.records) == 100
    assert sum(record.message == "on_handler_error failed" for record in caplog.records) == 100


def test_a_batch_goes_on_behind_an_interrupt(bird: BirdRealtime, orders: Channel) -> None:
    seen: list[int] = []

    def interrupt(event: Event) -> None:
        seen.append(event.data)
        if event.data == 2:
            raise KeyboardInterrupt

    orders.bind("a", interrupt)
    batch = BatchMaker()
    for number in range(5):
        batch.event(orders._tag, "a", number)
    records = batch.decoded()
    with pytest.raises(KeyboardInterrupt):
        bird._router.deliver(records)
    bird._router.deliver(records)
    assert seen == [0, 1, 2, 3, 4]


def test_unknown_kinds_are_passed_over(bird: BirdRealtime, orders: Channel) -> None:
    batch = BatchMaker()
    batch.add(4711, tag=orders._tag, event="a")
    deliver(bird, batch)


def test_connection_count(bird: BirdRealtime, orders: Channel) -> None:
    seen: list[Any] = []
    orders.bind("bird:connection_count", lambda event: seen.append(event.data["connection_count"]))
    orders.bind_global(lambda event: seen.append("global handlers get application events only"))
    batch = BatchMaker()
    batch.add(_abi.BIRD_RECORD_CONNECTION_COUNT, tag=orders._tag, data=b'{"connection_count":5}')
    deliver(bird, batch)
    assert seen == [5]
