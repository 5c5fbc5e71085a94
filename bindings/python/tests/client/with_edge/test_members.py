from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from bird_realtime import (
    AuthorizationError,
    BirdRealtime,
    BirdRealtimeError,
    ConnectionFailed,
    Event,
    InvalidState,
    Member,
    PresenceChannel,
    TimedOut,
)
from bird_realtime.testing import EdgeServer

from .waiting import GENEROUS_S, eventually

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # pydantic's, about a field of the SDK
    from bird import Bird

Connect = Callable[..., BirdRealtime]


def test_signin_and_what_is_sent_to_the_member(edge: EdgeServer, connect: Connect, sdk: Bird) -> None:
    edge.set_member("m_7", {"name": "Noor"})
    bird = connect("m_7")
    assert bird.member_id is None
    events = bird.member.events(GENEROUS_S)
    assert bird.signin(timeout=GENEROUS_S) == Member("m_7", {"name": "Noor"})
    assert bird.member_id == "m_7"
    edge.wait_for_subscription("#server-to-user-m_7")
    sdk.realtime.members.send(edge.app_id, "m_7", event="order.shipped", data={"parcel": "P-55"})
    event = next(events)
    assert (event.name, event.data, event.channel) == ("order.shipped", {"parcel": "P-55"}, bird.member)
    assert bird.member.name == "#server-to-user-m_7"
    assert bird.signin(timeout=GENEROUS_S) == Member("m_7", {"name": "Noor"})
    assert len(edge.journal("member_auth")) == 1, "signed in already"
    bird.signin(refresh=True, timeout=GENEROUS_S)
    assert len(edge.journal("member_auth")) == 2


def test_a_signin_survives_a_drop(edge: EdgeServer, connect: Connect) -> None:
    bird = connect("m_7", backoff_base_ms=10, backoff_max_ms=20)
    signed_in: list[Member] = []
    bird.connection.bind("signed_in", signed_in.append)
    notes: list[int] = []
    bird.member.bind("note", lambda event: notes.append(event.data))
    bird.signin(timeout=GENEROUS_S)
    edge.drop_connections()
    eventually(lambda: len(signed_in) == 2, "the second signin")
    edge.wait_for_subscription("#server-to-user-m_7")
    edge.send_to_member("m_7", "note", 1)
    eventually(lambda: notes == [1], "the note")


def test_concurrent_signins_share_one_frame(edge: EdgeServer, connect: Connect) -> None:
    bird = connect("m_7")
    edge.fail_http("member_auth", delay_s=0.2, times=1)
    with ThreadPoolExecutor(4) as threads:
        members = list(threads.map(lambda _: bird.signin(timeout=GENEROUS_S).member_id, range(4)))
    assert members == ["m_7"] * 4
    assert len(edge.journal("member_auth")) == 1


def test_a_denied_signin(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    edge.fail_http("member_auth", status=403, times=1)
    with pytest.raises(AuthorizationError) as caught:
        bird.signin(timeout=GENEROUS_S)
    assert (caught.value.http_status, caught.value.endpoint) == (403, edge.member_auth_endpoint)
    assert bird.connection.state == "connected"
    assert bird.signin(timeout=GENEROUS_S).member_id == "m_1"


def test_a_wrong_signature(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    errors: list[BirdRealtimeError] = []
    bird.connection.bind("error", errors.append)
    edge.fail_http("member_auth", wrong_signature=True, times=1)
    with pytest.raises(BirdRealtimeError):
        bird.signin(timeout=GENEROUS_S)
    eventually(lambda: len(errors) == 1, "the error event")


def test_a_signin_that_takes_too_long(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    edge.withhold("signin", times=1)
    with pytest.raises(TimedOut, match=r"no answer to the signin within 0\.2 s"):
        bird.signin(timeout=0.2)


def test_a_drop_fails_a_waiting_signin(edge: EdgeServer, connect: Connect) -> None:
    bird = connect()
    edge.withhold("signin", times=1)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(bird.signin)
        edge.wait_for_received("bird:signin")
        edge.drop_connections()
        with pytest.raises(ConnectionFailed):
            waiting.result(GENEROUS_S)


def test_signin_needs_a_connection_to_come(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(wait=False, auto_connect=False)
    bird.connect()
    bird.disconnect()
    with pytest.raises(InvalidState):
        bird.signin(timeout=GENEROUS_S)


def test_an_automatic_signin_that_fails(edge: EdgeServer, connect: Connect) -> None:
    bird = connect(backoff_base_ms=10, backoff_max_ms=20)
    errors: list[BirdRealtimeError] = []
    bird.connection.bind("signin_error", errors.append)
    bird.signin(timeout=GENEROUS_S)
    edge.fail_http("member_auth", status=403, times=1)
    edge.drop_connections()
    eventually(lambda: errors, "signin_error")
    assert errors[0].http_status == 403
    assert bird.connection.state == "connected"


def test_a_terminated_member(edge: EdgeServer, connect: Connect, sdk: Bird) -> None:
    bird = connect("m_7")
    bird.signin(timeout=GENEROUS_S)
    sdk.realtime.members.disconnect(edge.app_id, "m_7")
    with pytest.raises(ConnectionFailed) as caught:
        bird.run_forever()
    assert caught.value.code == 4009
    with pytest.raises(InvalidState):
        bird.signin(timeout=GENEROUS_S)
    assert len(edge.journal("opened")) == 1


def test_the_cause_wins_over_the_timeout(edge: EdgeServer, connect: Connect) -> None:
    """SIG-06: an error that came just before the deadline is not lost, whatever a busy dispatcher delays."""
    bird = connect(thread=False)
    edge.fail_http("member_auth", status=403, times=1)

    def busy(event: Event) -> None:
        eventually(lambda: edge.journal("member_auth"), "the question")
        eventually(lambda: time.monotonic() > deadline + 0.5, "the answer, and the deadline")

    bird.subscribe("orders").bind("bird:subscription_succeeded", busy)
    edge.wait_for_subscription("orders")
    deadline = time.monotonic() + 1
    with pytest.raises(AuthorizationError):
        bird.signin(timeout=1)


# ---------------------------------------------------------------------------------------------------- presence ----


def presence(bird: BirdRealtime, name: str = "presence-lobby") -> PresenceChannel:
    channel = bird.subscribe(name)
    assert isinstance(channel, PresenceChannel)
    return channel


def test_presence(edge: EdgeServer, connect: Connect) -> None:
    edge.set_member("m_1", {"name": "Noor"})
    edge.set_member("m_2")
    one, two = connect("m_1"), connect("m_2")
    lobby = presence(one)
    seen: list[tuple[str, Member, list[str]]] = []
    for event in ("bird:member_added", "bird:member_removed"):
        lobby.bind(event, lambda e: seen.append((e.name, e.member, list(lobby.members))))
    lobby.wait_subscribed(GENEROUS_S)
    assert lobby.members == {"m_1": {"name": "Noor"}}
    assert (lobby.my_id, lobby.me) == ("m_1", {"name": "Noor"})
    other = presence(two)
    rosters: list[dict[str, object]] = []
    other.bind("bird:subscription_succeeded", lambda event: rosters.append(event.members))
    eventually(lambda: rosters, "the second roster")
    assert rosters == [{"m_1": {"name": "Noor"}, "m_2": None}]
    eventually(lambda: len(seen) == 1, "the arrival")
    other.unsubscribe()
    eventually(lambda: len(seen) == 2, "the leaving")
    assert seen == [
        ("bird:member_added", Member("m_2", None), ["m_1", "m_2"]),
        ("bird:member_removed", Member("m_2", None), ["m_1"]),
    ]


def test_the_roster_after_a_drop(edge: EdgeServer, connect: Connect) -> None:
    bird = connect("m_1", backoff_base_ms=10, backoff_max_ms=20)
    lobby = presence(bird)
    sizes: list[int] = []
    bird.connection.bind("unavailable", lambda change: sizes.append(len(lobby.members)))
    lobby.bind("bird:subscription_succeeded", lambda event: sizes.append(len(lobby.members)))
    eventually(lambda: sizes == [1], "the roster")
    edge.drop_connections()
    eventually(lambda: sizes == [1, 0, 1], "an empty roster and a new one")
