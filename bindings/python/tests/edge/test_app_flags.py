"""The flags of the app, the settings beside them and their controls, over sockets."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from raw_client import RawClient
from test_cli import running

from bird_realtime.testing import App, ConfigError, ControlError, EdgeConfig, EdgeServer

Connect = Callable[[], RawClient]
StartEdge = Callable[[EdgeConfig], EdgeServer]

MISS = {"event": "bird:cache_miss", "channel": "cache-prices"}


def signed_in(edge: EdgeServer, client: RawClient, member_id: str) -> dict[str, Any]:
    """Signs in with what the auth backend answers; the next frame."""
    request = urllib.request.Request(  # noqa: S310
        edge.member_auth_endpoint,
        json.dumps({"connection_id": client.connection_id}).encode(),
        {"authorization": f"Bearer {member_id}", "content-type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as answer:
        client.send("bird:signin", json.load(answer))
    return client.receive()


def status(frame: dict[str, Any]) -> dict[str, list[str]]:
    assert frame["event"] == "bird_internal:watchlist_events"
    assert "channel" not in frame
    return {event["name"]: event["member_ids"] for event in frame["data"]["events"]}


def test_watchlists_come_from_the_auth_backend(start_edge: StartEdge) -> None:
    edge = start_edge(EdgeConfig(app=App(watchlist_events=True), watchlists={"m_7": ["m_8", "m_9"]}))
    with RawClient.greeted(edge) as noor, RawClient.greeted(edge) as ivo:
        assert signed_in(edge, noor, "m_7")["event"] == "bird:signin_success"
        assert status(noor.receive()) == {"offline": ["m_8", "m_9"]}
        assert signed_in(edge, ivo, "m_8")["event"] == "bird:signin_success"
        assert status(noor.receive()) == {"online": ["m_8"]}
        edge.set_watchlist("m_7", ["m_8"])
        signed_in(edge, noor, "m_7")
        assert status(noor.receive()) == {"online": ["m_8"]}
        edge.drop_connections(ivo.connection_id)
        assert status(noor.receive()) == {"offline": ["m_8"]}
        edge.update_app(watchlist_events=False)
        edge.set_watchlist("m_7", [])
        signed_in(edge, noor, "m_7")
        assert noor.frames_so_far() == []


def test_a_short_cache(edge: EdgeServer, connect: Connect) -> None:
    edge.publish("moved", ["cache-prices"])
    edge.set_cache_ttl(1e-9)
    client = connect()
    client.subscribe("cache-prices")
    assert client.receive() == MISS


def test_settings_of_client_events(edge: EdgeServer, connect: Connect) -> None:
    sender, receiver = connect(), connect()
    sender.subscribe("presence-a", {"member_id": "m_7"})
    receiver.subscribe("presence-a", {"member_id": "m_8"})
    sender.receive()
    edge.set_client_events(per_s=2, sender_key="user_id")
    for _ in range(5):
        sender.send("client-x", 1, channel="presence-a")
    # A slow machine may spread five over more than a second.
    refused = sender.frames_so_far()
    assert refused
    assert all(frame["data"]["code"] == 4301 for frame in refused)
    frames = receiver.frames_so_far()
    assert len(frames) == 5 - len(refused)
    assert frames[0] == {"event": "client-x", "channel": "presence-a", "data": 1, "user_id": "m_7"}


def test_the_deadline_of_authorized_connections(edge: EdgeServer, connect: Connect) -> None:
    edge.update_app(authorized_connections=True)
    patient = connect()
    edge.set_authorized_deadline(2.0)  # in which `proven` proves itself
    proven = connect()
    proven.subscribe("presence-a", {"member_id": "m_7"})
    assert connect().receive_close() == (4009, "not authorized within timeout")
    assert proven.frames_so_far() == patient.frames_so_far() == []


@pytest.fixture
def commanded() -> Iterator[Callable[..., dict[str, Any]]]:
    """Runs the edge as a program, with options; what it says when ready."""
    with ExitStack() as stack:

        def start(*options: str) -> dict[str, Any]:
            process = stack.enter_context(running("--json", "--port", "0", *options))
            assert process.stdout is not None
            facts: dict[str, Any] = json.loads(process.stdout.readline())
            return facts

        yield start


def test_the_flags_of_the_command(commanded: Callable[..., dict[str, Any]]) -> None:
    facts = commanded(
        *("--watchlist-events", "--watch", "m_7=m_8", "--watch", "m_7=m_9", "--watchlist-limit-members", "1"),
        *("--client-events", "--client-events-per-s", "1", "--client-event-sender-key", "user_id"),
        *("--cache-ttl", "0.000001"),
    )
    edge = EdgeServer(EdgeConfig(port=facts["port"]))
    with RawClient.greeted(edge) as noor, RawClient.greeted(edge) as ivo:
        signed_in(edge, noor, "m_7")
        assert noor.receive()["data"]["code"] == 4302
        assert status(noor.receive()) == {"offline": ["m_8"]}
        for client, member_id in ((noor, "m_7"), (ivo, "m_8")):
            client.subscribe("presence-cache-a", {"member_id": member_id})
            assert client.receive()["event"] == "bird:cache_miss"
        noor.receive()
        for _ in range(5):
            ivo.send("client-x", channel="presence-cache-a")
        assert ivo.receive()["data"]["code"] == 4301
        assert noor.receive() == {"event": "client-x", "channel": "presence-cache-a", "user_id": "m_8"}


def test_a_suspended_app(commanded: Callable[..., dict[str, Any]]) -> None:
    edge = EdgeServer(EdgeConfig(port=commanded("--suspended")["port"]))
    with RawClient(edge) as client:
        assert client.receive_close()[0] == 4003


WRONG_USES: dict[str, Callable[[EdgeServer], Any]] = {
    "authorized_deadline_s": lambda edge: edge.set_authorized_deadline(0),
    "cache_ttl_s": lambda edge: edge.set_cache_ttl(1801),
    "client_events_per_s": lambda edge: edge.set_client_events(per_s=0),
    "client_event_sender_key": lambda edge: edge.set_client_events(sender_key="data"),
    "watchlist": lambda edge: edge.set_watchlist("m_7", ["a b"]),
}


@pytest.mark.parametrize(("argument", "use"), WRONG_USES.items(), ids=WRONG_USES)
def test_wrong_use_names_the_argument(edge: EdgeServer, argument: str, use: Callable[[EdgeServer], Any]) -> None:
    with pytest.raises((ConfigError, ControlError), match=f"^{argument}: "):
        use(edge)
