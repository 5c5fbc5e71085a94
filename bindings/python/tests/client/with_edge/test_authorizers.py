"""Authorizers in Python, asked by the library through request records."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bird_realtime import AuthorizationError, BirdRealtime, PresenceChannel, SubscriptionFailed
from bird_realtime.edge import signing
from bird_realtime.testing import EdgeServer

from .waiting import GENEROUS_S, eventually

Connect = Callable[..., BirdRealtime]


class Backend:
    """Signs with the app secret, as a backend would."""

    def __init__(self, edge: EdgeServer) -> None:
        self.edge = edge
        self.asked: list[tuple[str, str]] = []

    def sign(self, text: str) -> str:
        return signing.auth_string(self.edge.app_key, self.edge.app_secret, text)

    def channel(self, channel_name: str, connection_id: str) -> dict[str, str]:
        self.asked.append((channel_name, connection_id))
        if not channel_name.startswith("presence-"):
            return {"auth": self.sign(signing.channel_string(connection_id, channel_name))}
        member_data = json.dumps({"member_id": 7, "member_info": {"name": "Noor"}})
        return {
            "auth": self.sign(signing.channel_string(connection_id, channel_name, member_data)),
            "member_data": member_data,
        }

    def member(self, connection_id: str) -> dict[str, str]:
        self.asked.append(("", connection_id))
        member_data = json.dumps({"member_id": "m_7"})
        return {"auth": self.sign(signing.signin_string(connection_id, member_data)), "member_data": member_data}


@pytest.mark.parametrize("thread", [True, False])
def test_authorizers(edge: EdgeServer, connect: Connect, thread: bool) -> None:
    backend = Backend(edge)
    bird = connect(authorizer=backend.channel, member_authorizer=backend.member, thread=thread)
    room, lobby = bird.subscribe("private-room"), bird.subscribe("presence-lobby")
    room.wait_subscribed(GENEROUS_S)
    lobby.wait_subscribed(GENEROUS_S)
    assert bird.signin(timeout=GENEROUS_S).member_id == "m_7"
    connection_id = bird.connection.connection_id
    assert sorted(backend.asked) == [
        ("", connection_id),
        ("presence-lobby", connection_id),
        ("private-room", connection_id),
    ]
    assert isinstance(lobby, PresenceChannel)
    assert lobby.my_id == "7"
    assert not edge.journal("auth")


def test_each_client_has_headers_of_its_own(edge: EdgeServer, connect: Connect) -> None:
    """AUTH-20: side by side and one after the other."""
    with connect("m_1") as first, connect("m_2") as second:
        for bird, me in ((first, "m_1"), (second, "m_2"), (first, "m_1")):
            lobby = bird.subscribe(f"presence-{me}")
            lobby.wait_subscribed(GENEROUS_S)
            assert isinstance(lobby, PresenceChannel)
            assert lobby.my_id == me
            lobby.unsubscribe()
    assert connect("m_3").signin(timeout=GENEROUS_S).member_id == "m_3"


def test_a_storm_of_authorizations(edge: EdgeServer, connect: Connect) -> None:
    """MEM-08: thousands of authorizations are begun and given up, while their backend refuses, is late or denies."""
    bird = connect(backoff_base_ms=10, backoff_max_ms=20)
    names = [f"private-{number}" for number in range(40)]
    faults: list[dict[str, Any]] = [{"status": 503}, {"status": 403}, {"delay_s": 0.02}, {"hang": True}, {"body": "{"}]
    for number in range(1_500):
        if number % 20 == 0:
            edge.clear_faults()
            edge.fail_http("auth", **faults[number // 20 % len(faults)])
        name = names[number * 7 % len(names)]
        if bird.subscribe(name).state in ("failed", "authorizing") and number % 3:
            bird.subscribe(name).unsubscribe()
        if number % 10 == 0:
            bird.flush()
        if number % 500 == 499:
            edge.drop_connections()
            bird.wait_until("connected", GENEROUS_S)
    assert len(edge.journal("auth")) > 150
    edge.clear_faults()
    bird.disconnect()  # denials are final on one connection
    bird.connect()
    for name in names:
        bird.subscribe(name).wait_subscribed(GENEROUS_S)
    edge.wait_for_connections(1)


def test_async_authorizers(edge: EdgeServer, connect: Connect) -> None:
    backend = Backend(edge)

    async def authorizer(channel_name: str, connection_id: str) -> dict[str, str]:
        await asyncio.sleep(0)
        return backend.channel(channel_name, connection_id)

    async def member_authorizer(connection_id: str) -> dict[str, str]:
        return backend.member(connection_id)

    bird = connect(authorizer=authorizer, member_authorizer=member_authorizer)
    bird.subscribe("private-room").wait_subscribed(GENEROUS_S)
    assert bird.signin(timeout=GENEROUS_S).member_id == "m_7"


def test_asked_again_on_each_connection(edge: EdgeServer, connect: Connect) -> None:
    backend = Backend(edge)
    bird = connect(authorizer=backend.channel, backoff_base_ms=10, backoff_max_ms=20)
    room = bird.subscribe("private-room")
    room.wait_subscribed(GENEROUS_S)
    edge.drop_connections()
    eventually(lambda: len(backend.asked) == 2, "the second request")
    room.wait_subscribed(GENEROUS_S)
    assert backend.asked[0][1] != backend.asked[1][1]


def _deny(channel_name: str, connection_id: str) -> dict[str, str]:
    raise AuthorizationError("not this one")


def _defect(channel_name: str, connection_id: str) -> dict[str, str]:
    raise KeyError("token")


@pytest.mark.parametrize(
    ("authorizer", "message"),
    [
        (_deny, "not this one"),
        (_defect, "token"),
        (lambda channel_name, connection_id: "key:signature", "returned str"),
        (lambda channel_name, connection_id: None, "returned NoneType"),
    ],
)
def test_answers_that_end_the_subscription(edge: EdgeServer, connect: Connect, authorizer: Any, message: str) -> None:
    bird = connect(authorizer=authorizer)
    failures: list[SubscriptionFailed] = []
    room = bird.subscribe("private-room").bind("bird:subscription_error", failures.append)
    with pytest.raises(AuthorizationError, match=message):
        room.wait_subscribed(GENEROUS_S)
    assert [failure.will_retry for failure in failures] == [False]
    assert edge.journal("received") == [], "nothing goes on the wire"


def test_a_transient_failure_is_asked_again(edge: EdgeServer, connect: Connect) -> None:
    backend = Backend(edge)

    def flaky(channel_name: str, connection_id: str) -> dict[str, str]:
        if not backend.asked:
            backend.asked.append(("failed", connection_id))
            raise ConnectionResetError("reset")
        return backend.channel(channel_name, connection_id)

    reported: list[Exception] = []
    bird = connect(authorizer=flaky, on_handler_error=lambda error, what: reported.append(error))
    bird.subscribe("private-room").wait_subscribed(GENEROUS_S)
    assert len(backend.asked) == 2
    assert [type(error) for error in reported] == [ConnectionResetError]


def test_an_authorizer_that_is_late(edge: EdgeServer, connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    """The library stops waiting; the late answer is refused and harms nothing."""
    backend = Backend(edge)
    failed = threading.Event()

    def late(channel_name: str, connection_id: str) -> dict[str, str]:
        failed.wait(0.5)
        return backend.channel(channel_name, connection_id)

    bird = connect(authorizer=late, auth_timeout_ms=100)
    failures: list[SubscriptionFailed] = []
    bird.subscribe("private-room").bind("bird:subscription_error", failures.append)
    eventually(lambda: failures, "the failure")
    failed.set()
    assert failures[0].will_retry
    eventually(lambda: "was not accepted: The request has been answered" in caplog.text, "the entry in the log")
