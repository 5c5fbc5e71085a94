"""Errors of the edge that name a channel, as soketi sends them: told where errors are told, and on the channel."""

from __future__ import annotations

import json

import pytest
from conftest import StartClient
from script_client import ScriptClient
from scripted_server import Connection, ScriptedServer, dump, event, text

KEYS = {"bird": "connection_id", "pusher": "socket_id"}
# Errors are not encoded twice (Bird protocol §16), but some servers do.
ENCODINGS = [lambda data: data, lambda data: dump(data).decode()]


@pytest.fixture(params=sorted(KEYS))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(face: str, server: ScriptedServer, connect: StartClient, dialect: str) -> ScriptClient:
    calls_handlers = {"consume": "thread"} if face == "c" else {}
    return connect(server, dialect=dialect, **calls_handlers)


@pytest.fixture
def connection(server: ScriptedServer, client: ScriptClient, dialect: str) -> Connection:
    accepted = server.accept()
    accepted.upgrade(text({"event": f"{dialect}:connection_established", "data": {KEYS[dialect]: "1.1"}}))
    client.wait_for_state("connected")
    return accepted


def subscribe(client: ScriptClient, connection: Connection, dialect: str, channel: str) -> None:
    client.do("subscribe", channel, 0)
    assert connection.read_frame().json["event"] == f"{dialect}:subscribe"
    connection.send_text(event(f"{dialect}_internal:subscription_succeeded", channel, {}))
    client.wait_for("subscribed", channel=channel)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("bound_as", ["bird:error", "pusher:error"])
def test_on_a_subscribed_channel(
    client: ScriptClient, connection: Connection, dialect: str, encoding: object, bound_as: str
) -> None:
    subscribe(client, connection, dialect, "orders")
    subscribe(client, connection, dialect, "parcels")
    client.do("bind", 1, "orders", bound_as)
    client.do("bind", 2, "parcels", bound_as)
    client.do("bind", 3, "orders")
    assert callable(encoding)
    data = {"code": 4301, "message": "The app does not have client messaging enabled."}
    connection.send_text({"event": f"{dialect}:error", "channel": "orders", "data": encoding(data)})
    connection.send_text(event("moved", "orders", 1))
    error = client.wait_for("error")
    assert (error["error"], error["code"]) == ("BIRD_ERR_SERVER", 4301)
    assert (error["message"], error["error_channel"]) == (data["message"], "orders")
    client.wait_for("event", event="moved")
    assert [line["binding"] for line in client.all("bound")] == [1, 3], "the error, then the event"
    bound, moved = client.all("bound")
    assert json.loads(bound["data"]) == data
    assert moved["event"] == "moved"
    assert [line["event"] for line in client.all("event")] == ["moved"], "an error is no application event"
    assert client.all("subscription_error") == []


def test_a_pending_subscribe_is_refused_by_it(client: ScriptClient, connection: Connection, dialect: str) -> None:
    for channel in ("orders", "parcels"):
        client.do("subscribe", channel, 0)
        connection.read_frame()
    connection.send_text(
        {"event": f"{dialect}:error", "channel": "orders", "data": {"code": 4009, "message": "not for you"}},
        event(f"{dialect}_internal:subscription_succeeded", "parcels", {}),
    )
    error = client.wait_for("error")
    assert (error["code"], error["error_channel"]) == (4009, "orders")
    refused = client.wait_for("subscription_error", channel="orders")
    assert (refused["error"], refused["code"], refused["will_retry"]) == ("BIRD_ERR_DENIED", 4009, 0)
    assert refused["error_channel"] == "orders"
    assert "not for you" in refused["message"]
    client.wait_for("subscribed", channel="parcels")


def test_on_a_channel_that_nobody_holds(client: ScriptClient, connection: Connection, dialect: str) -> None:
    connection.send_text({"event": f"{dialect}:error", "channel": "elsewhere", "data": {"code": None, "message": "no"}})
    error = client.wait_for("error")
    assert (error["error"], error["message"], error["error_channel"]) == ("BIRD_ERR_SERVER", "no", "elsewhere")
