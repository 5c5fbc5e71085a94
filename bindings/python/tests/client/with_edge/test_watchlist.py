"""Watched members, cache channels, counts and ends, with the local edge and the official server SDK."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from bird_realtime import BirdRealtime, BirdRealtimeError, ConnectionFailed
from bird_realtime.testing import EdgeServer

from .waiting import GENEROUS_S, eventually

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # pydantic's, about a field of the SDK
    from bird import Bird

Connect = Callable[..., BirdRealtime]


def errors_of(bird: BirdRealtime) -> list[BirdRealtimeError]:
    errors: list[BirdRealtimeError] = []
    bird.connection.bind("error", errors.append)
    return errors


@pytest.fixture
def watched(edge: EdgeServer) -> EdgeServer:
    edge.update_app(watchlist_events=True)
    edge.set_watchlist("m_7", ["m_8", "m_9"])
    return edge


def test_a_handler_bound_after_signin_sees_the_whole_list(watched: EdgeServer, connect: Connect) -> None:
    bird = connect("m_7")
    bird.signin(timeout=GENEROUS_S)
    seen: list[tuple[str, list[str]]] = []
    bird.member.watchlist.bind("offline", lambda ids: seen.append(("offline", ids)))

    @bird.member.watchlist.bind("online")
    def online(ids: list[str]) -> None:
        seen.append(("online", ids))

    eventually(lambda: seen == [("offline", ["m_8", "m_9"])], "the list")
    other = connect("m_8")
    other.signin(timeout=GENEROUS_S)
    eventually(lambda: bird.member.watchlist.online == ["m_8"], "m_8 to come")
    other.close()
    eventually(lambda: seen[1:] == [("online", ["m_8"]), ("offline", ["m_8"])], "m_8 to go")


def test_a_refresh_brings_another_list(watched: EdgeServer, connect: Connect) -> None:
    connect("m_8").signin(timeout=GENEROUS_S)
    bird = connect("m_7")
    bird.signin(timeout=GENEROUS_S)
    eventually(lambda: bird.member.watchlist.online == ["m_8"], "the list")
    assert bird.member.watchlist.offline == ["m_9"]
    watched.set_watchlist("m_7", ["m_1"])
    bird.signin(refresh=True, timeout=GENEROUS_S)
    eventually(lambda: bird.member.watchlist.offline == ["m_1"], "the other list")
    assert bird.member.watchlist.online == []


def test_a_reconnect_brings_the_list_again(watched: EdgeServer, connect: Connect) -> None:
    bird = connect("m_7", backoff_base_ms=10, backoff_max_ms=20)
    told: list[list[str]] = []
    bird.member.watchlist.bind("offline", told.append)
    bird.signin(timeout=GENEROUS_S)
    eventually(lambda: len(told) == 1, "the list")
    watched.drop_connections()
    eventually(lambda: told == [["m_8", "m_9"]] * 2, "the list again")


def test_a_list_too_long_is_an_error_and_a_signin(watched: EdgeServer, connect: Connect) -> None:
    watched.set_watchlist("m_7", [f"w_{number}" for number in range(101)])
    bird = connect("m_7")
    errors = errors_of(bird)
    assert bird.signin(timeout=GENEROUS_S).member_id == "m_7"
    eventually(lambda: len(bird.member.watchlist.offline) == 100, "the list")
    eventually(lambda: errors, "the error")
    assert [error.code for error in errors] == [4302]
    assert bird.connection.state == "connected"


@pytest.mark.parametrize("ended_by", ["sdk", "deadline"])
def test_what_the_edge_ends(edge: EdgeServer, connect: Connect, sdk: Bird, ended_by: str) -> None:
    if ended_by == "deadline":
        edge.set_authorized_deadline(0.2)
        edge.update_app(authorized_connections=True)
    bird = connect("m_7", auto_connect=False, wait=False)
    errors = errors_of(bird)
    states: list[Any] = []
    bird.connection.bind(
        "state_change", lambda change: states.append((change.current, change.code, change.reason_text))
    )
    bird.connect()
    if ended_by == "sdk":
        bird.wait_until("connected", GENEROUS_S)
        bird.signin(timeout=GENEROUS_S)
        sdk.realtime.members.disconnect(edge.app_id, "m_7")
    text = "Member connections terminated" if ended_by == "sdk" else "not authorized within timeout"
    eventually(lambda: ("failed", 4009, text) in states, "the end")
    eventually(lambda: errors, "the error")
    assert bird.connection.state == "failed"
    assert isinstance(bird.connection.error, ConnectionFailed)
    assert [(error.code, error.message) for error in errors] == [(4009, text)]
    with pytest.raises(BirdRealtimeError):
        bird.signin(timeout=GENEROUS_S)
    assert len(edge.journal("opened")) == 1
    edge.update_app(authorized_connections=False)
    bird.connect()
    bird.wait_until("connected", GENEROUS_S)
    assert bird.signin(timeout=GENEROUS_S).member_id == "m_7"


@pytest.mark.parametrize("name", ["cache-prices", "private-cache-prices", "presence-cache-prices"])
def test_cache_channels(edge: EdgeServer, connect: Connect, sdk: Bird, name: str) -> None:
    seen: list[tuple[str, Any]] = []
    first = connect(auto_connect=False, wait=False)
    first.subscribe(name).bind_global(lambda event: seen.append((event.name, event.data)))
    first.connect()
    eventually(lambda: seen == [("bird:cache_miss", None)], "the miss")
    sdk.realtime.publish(edge.app_id, event="moved", channels=[name], data={"eur": 1.5})
    eventually(lambda: seen[1:] == [("moved", {"eur": 1.5})], "the event")
    order: list[str] = []
    second = connect("m_2", auto_connect=False, wait=False)
    channel = second.subscribe(name)
    channel.bind("bird:subscription_succeeded", lambda event: order.append("succeeded"))
    channel.bind("moved", lambda event: order.append("moved"))
    channel.bind("bird:cache_miss", lambda event: order.append("missed"))
    second.connect()
    eventually(lambda: order == ["succeeded", "moved"], "the cached event")


def test_connection_counts(connect: Connect) -> None:
    counts: list[int] = []
    first, second = connect(auto_connect=False, wait=False), connect("m_2")
    first.subscribe("orders").bind("bird:connection_count", lambda event: counts.append(event.data["connection_count"]))
    first.connect()
    eventually(lambda: counts == [1], "the first count")
    second.subscribe("orders")
    eventually(lambda: counts == [1, 2], "the second")
    second.unsubscribe("orders")
    eventually(lambda: counts == [1, 2, 1], "the third")


def test_too_many_client_events(edge: EdgeServer, connect: Connect) -> None:
    edge.set_client_events(per_s=1)
    sender, receiver = connect(), connect("m_2")
    errors = errors_of(sender)
    channels = [bird.subscribe("private-room") for bird in (sender, receiver)]
    received: list[str] = []
    for channel in channels:
        channel.bind_global(lambda event: received.append(event.channel._client.connection.connection_id))
        channel.wait_subscribed(GENEROUS_S)
    for _ in range(5):
        channels[0].trigger("client-x", 1)
    eventually(lambda: len(errors) + len(received) == 5 and errors, "the refusals")
    assert {error.code for error in errors} == {4301}
    assert set(received) == {receiver.connection.connection_id}, "nothing comes back to the sender"
    assert channels[0].subscribed
