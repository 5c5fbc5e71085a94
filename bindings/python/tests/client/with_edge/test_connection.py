from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bird_realtime import BirdRealtime, BirdRealtimeError, ConnectionFailed, InvalidArgument, StateChange, TimedOut
from bird_realtime.testing import App, EdgeConfig, EdgeServer

from .waiting import GENEROUS_S, eventually

Connect = Callable[..., BirdRealtime]


def test_states_of_a_life(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(auto_connect=False, wait=False)
    assert (bird.connection.state, bird.connection.connection_id) == ("initialized", None)
    changes: list[StateChange] = []
    ids: list[str | None] = []
    bird.connection.bind("state_change", changes.append)
    bird.connection.bind("connected", lambda change: ids.append(bird.connection.connection_id))
    bird.connect()
    bird.connect()
    bird.wait_until("connected", GENEROUS_S)
    (connection,) = edge.wait_for_connections(1)
    assert bird.connection.connection_id == connection.connection_id
    bird.disconnect()
    bird.wait_until("disconnected", GENEROUS_S)
    assert bird.connection.connection_id is None
    bird.connect()
    bird.wait_until("connected", GENEROUS_S)
    bird.close()
    assert [(change.previous, change.current) for change in changes] == [
        ("initialized", "connecting"),
        ("connecting", "connected"),
        ("connected", "disconnected"),
        ("disconnected", "connecting"),
        ("connecting", "connected"),
        ("connected", "disconnected"),
    ]
    assert len(ids) == 2
    assert ids[0] == changes[1].connection_id == connection.connection_id
    edge.wait_for_connections(0)
    assert [entry.text for entry in edge.journal("closed")] == ["1000 client disconnect"] * 2


def test_a_wait_has_seen_what_passes_at_once(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is lost between the look that ends the wait and what is done next."""
    bird = connect()
    channel = bird.subscribe("orders")
    channel.wait_subscribed(GENEROUS_S)
    looks = iter([True])
    monkeypatch.setattr(type(bird.connection), "_is", lambda self, state: next(looks, False))
    bird.wait_until("connected", GENEROUS_S)
    looks = iter([True])
    monkeypatch.setattr(type(channel), "subscribed", property(lambda self: next(looks, False)))
    channel.wait_subscribed(GENEROUS_S)


def test_the_upgrade_names_the_client(edge: EdgeServer, connect: Connect) -> None:
    connect()
    (opened,) = edge.journal("opened")
    assert "client=bird-realtime&version=0.1.0" in opened.text


@pytest.mark.parametrize("ending", ["drop", "close 4200", "close 1001", "close 4100"])
def test_reconnect(edge: EdgeServer, connect: Connect, ending: str) -> None:
    bird = connect(backoff_base_ms=10, backoff_max_ms=20)
    told: list[str] = []
    for event in ("unavailable", "connecting_in", "connection_lost", "connected"):
        bird.connection.bind(event, partial(lambda name, change: told.append(name), event))
    orders = bird.subscribe("orders")
    seen: list[Any] = []
    successes: list[tuple[bool, float]] = []
    orders.bind("tick", lambda event: seen.append(event.data))
    orders.bind("bird:subscription_succeeded", lambda e: successes.append((e.is_resubscribe, e.interrupted)))
    edge.wait_for_subscription("orders")
    first = bird.connection.connection_id
    if ending == "drop":
        edge.drop_connections()
    else:
        edge.close_connections(int(ending.split()[1]), "deliberately")
    eventually(lambda: len(successes) == 2, "the second subscription")
    edge.publish("tick", ["orders"], 1)
    eventually(lambda: seen == [1], "the event")
    assert bird.connection.connection_id != first
    assert len(edge.wait_for_received("bird:subscribe", 2)) == 2
    assert successes[0] == (False, 0)
    assert successes[1][0]
    assert 0 <= successes[1][1] < GENEROUS_S  # an immediate reconnect may take less than a millisecond
    assert sorted(told) == ["connected", "connecting_in", "connection_lost", "unavailable"]
    assert seen == [1]


def test_an_outage(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(backoff_base_ms=10, backoff_max_ms=20, flap_guard=False)
    errors: list[BirdRealtimeError] = []
    bird.connection.bind("error", errors.append)
    edge.stop()
    bird.wait_until("unavailable", GENEROUS_S)
    edge.start()
    bird.wait_until("connected", GENEROUS_S)
    assert all(isinstance(error, ConnectionFailed) and error.retriable for error in errors)


def test_a_refusal_is_final(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    errors: list[BirdRealtimeError] = []
    bird.connection.bind("error", errors.append)
    edge.close_connections(4009, "Member connections terminated")
    with pytest.raises(ConnectionFailed, match="Member connections terminated") as caught:
        bird.run_forever()
    assert caught.value.code == 4009
    assert not caught.value.retriable
    assert bird.connection.state == "failed"
    eventually(lambda: errors, "the error event")
    assert [(type(error), error.code) for error in errors] == [(ConnectionFailed, 4009)]
    with pytest.raises(ConnectionFailed):
        bird.wait_until("connected", GENEROUS_S)
    bird.connect()
    bird.wait_until("connected", GENEROUS_S)


def test_an_unknown_key(edge: EdgeServer) -> None:
    with BirdRealtime("pk_unknown", ws_host=edge.ws_host, allow_insecure=True) as bird:
        with pytest.raises(ConnectionFailed) as caught:
            bird.wait_until("connected", GENEROUS_S)
        assert caught.value.code == 4001


def test_nobody_listens(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(wait=False, auto_connect=False)
    errors: list[BirdRealtimeError] = []
    bird.connection.bind("error", errors.append)
    edge.stop()
    bird.connect()
    with pytest.raises(TimedOut):
        bird.wait_until("connected", 0.3)
    eventually(lambda: errors, "the error event")
    assert isinstance(errors[0], ConnectionFailed)
    assert edge.ws_host in errors[0].message


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "region"),
        ({"region": "mars1"}, "region"),
        ({"ws_host": "local host"}, "ws_host"),
        ({"region": "us1", "connect_timeout_ms": -5}, "connect_timeout_ms"),
        ({"region": "us1", "auth_endpoint": "http://example.com/auth"}, "auth_endpoint"),
    ],
)
def test_options_that_the_library_refuses(options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        BirdRealtime("pk_test", **options)
    assert caught.value.field == field


def test_the_app_key_is_required() -> None:
    with pytest.raises(InvalidArgument) as caught:
        BirdRealtime("", region="us1")
    assert caught.value.field == "app_key"


def test_auth_headers_are_checked() -> None:
    with pytest.raises(InvalidArgument):
        BirdRealtime("pk_test", region="us1", auth_headers={"x": "a\r\nb: c"})


def test_statistics(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    orders = bird.subscribe("orders")
    orders.wait_subscribed(GENEROUS_S)
    events = orders.events(GENEROUS_S)
    edge.publish("tick", ["orders"], 1)
    assert next(events).data == 1
    eventually(lambda: bird.statistics().events_delivered == 1, "the count, which may lag behind the event")
    statistics = bird.statistics()
    assert (statistics.connects, statistics.attempts) == (1, 1)
    assert statistics.bytes_received > 0


def test_close_without_time_ends_the_client_too(connect: Connect) -> None:
    bird = connect(thread=False)
    bird.close(0)
    assert bird._native.is_destroyed


def test_many_clients(edge: EdgeServer, connect: Connect) -> None:
    birds = [connect(wait=False) for _ in range(20)]
    seen: list[int] = []
    for number, bird in enumerate(birds):
        bird.subscribe("orders").bind("tick", partial(lambda number, event: seen.append(number), number))
    edge.wait_for_subscription("orders", 20)
    edge.publish("tick", ["orders"])
    eventually(lambda: sorted(seen) == list(range(20)), "an event on each client")


def test_authorized_connections(connect: Connect) -> None:
    config = EdgeConfig(app=App(authorized_connections=True), authorized_deadline_s=0.2)
    with EdgeServer(config) as edge, BirdRealtime(edge.app_key, ws_host=edge.ws_host, allow_insecure=True) as bird:
        with pytest.raises(ConnectionFailed) as caught:
            bird.run_forever()
        assert caught.value.code == 4009


def test_a_failing_log_handler_is_no_harm(edge: EdgeServer, connect: Connect) -> None:
    """OBS-05: it may use the client, and what it raises ends nothing."""

    class Handler(logging.Handler):
        calls = 0

        def emit(self, record: logging.LogRecord) -> None:
            Handler.calls += 1
            bird.subscribe(f"from-the-log-{Handler.calls % 3}")
            raise LookupError(bird.connection.state)

    bird = connect(log_level="info", wait=False, auto_connect=False)
    loggers, handler = logging.getLogger("bird_realtime"), Handler()
    level = loggers.level
    loggers.addHandler(handler)
    loggers.setLevel(logging.DEBUG)
    try:
        bird.connect()
        bird.wait_until("connected", GENEROUS_S)
        events = bird.subscribe("orders").events(GENEROUS_S)
        edge.wait_for_subscription("orders")
        edge.publish("tick", ["orders"], 1)
        assert next(events).data == 1
        assert Handler.calls > 0
    finally:
        loggers.removeHandler(handler)
        loggers.setLevel(level)


def test_network_hints(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    sent = bird.statistics().messages_sent
    bird.network_hint("up")
    bird.network_hint("down")
    eventually(lambda: bird.statistics().messages_sent == sent + 1)  # a ping
    assert bird.statistics().network_changes == 2
    with pytest.raises(InvalidArgument, match="up, down, resumed"):
        bird.network_hint("sideways")
    bird.close()
    with pytest.raises(BirdRealtimeError):
        bird.network_hint("up")
