"""Handlers that are bound when what they are for has been delivered.

The same in C, where the engine tells them, and in the Python package, which takes records and runs handlers itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conftest import StartClient
from script_client import ScriptClient
from scripted_server import Connection, ScriptedServer, dump, event, succeeded

SUCCEEDED, FAILED = "bird:subscription_succeeded", "bird:subscription_error"
SIGNIN = {"auth": "k:s", "member_data": '{"member_id":"m_7"}'}

Begin = Callable[..., tuple[ScriptClient, Connection]]


@pytest.fixture
def begin(server: ScriptedServer, connect: StartClient, face: str) -> Begin:
    """A client that runs handlers, and its connection."""

    def start(**options: str | int) -> tuple[ScriptClient, Connection]:
        handlers: dict[str, str | int] = {"consume": "dispatch"} if face == "c" else {}
        client = connect(server, member_authorizer=1, **handlers, **options)
        connection = server.accept()
        connection.establish("1.1")
        client.wait_for_state("connected")
        return client, connection

    return start


def join(client: ScriptClient, connection: Connection, name: str) -> None:
    client.do("subscribe", name, 0)
    connection.join(name)
    client.wait_for("subscribed", channel=name)


def settle(client: ScriptClient, connection: Connection) -> None:
    """Everything that was sent before has been delivered."""
    connection.send_text(event("settled", "control", 1))
    client.wait_for("event", event="settled")


def called(client: ScriptClient) -> list[str]:
    return [record["event"] for record in client.all("bound")]


def sign_in(client: ScriptClient, connection: Connection) -> None:
    client.do("signin", 1, 1)
    client.do("grant", client.wait_for("request", asks="member")["request"], SIGNIN["auth"], SIGNIN["member_data"])
    connection.expect({"event": "bird:signin", "data": SIGNIN})
    connection.send_text(
        {"event": "bird:signin_success", "data": dump({"member_data": SIGNIN["member_data"]}).decode()}
    )
    client.wait_for("signed_in")


def watchlist(**statuses: list[Any]) -> dict[str, Any]:
    events = [{"name": name, "member_ids": ids} for name, ids in statuses.items()]
    return {"event": "bird_internal:watchlist_events", "data": dump({"events": events}).decode()}


def watched(client: ScriptClient) -> list[tuple[str, str]]:
    return [(record["event"], record["data"]) for record in client.all("watched")]


def test_a_success_is_told_once(begin: Begin) -> None:
    client, connection = begin()
    join(client, connection, "control")
    join(client, connection, "orders")
    for number, name in enumerate((SUCCEEDED, FAILED, SUCCEEDED)):
        client.do("bind", number, "orders", name)
    client.wait_for("bound", event=SUCCEEDED, data="{}")
    settle(client, connection)
    assert called(client) == [SUCCEEDED, SUCCEEDED]
    connection.send_text(event("moved", "orders", 1))
    settle(client, connection)
    assert called(client) == [SUCCEEDED, SUCCEEDED]


def test_a_failure_stands_until_it_is_asked_anew(begin: Begin) -> None:
    client, connection = begin()
    join(client, connection, "control")
    join(client, connection, "orders")
    connection.send_text({"event": "bird_internal:subscription_error", "channel": "orders", "data": '"full"'})
    client.wait_for("subscription_error", channel="orders")
    client.do("bind", 0, "orders", SUCCEEDED)
    client.do("bind", 1, "orders", FAILED)
    client.wait_for("bound", event=FAILED)
    client.do("subscribe", "orders", 0)
    client.do("bind", 2, "orders", FAILED)
    connection.join("orders")
    client.wait_for("bound", event=SUCCEEDED)
    settle(client, connection)
    assert called(client) == [FAILED, SUCCEEDED]


def test_nothing_stands_without_a_connection(server: ScriptedServer, begin: Begin) -> None:
    client, connection = begin()
    join(client, connection, "orders")
    client.do("disconnect")
    client.wait_for_state("disconnected")
    client.do("bind", 0, "orders", SUCCEEDED)
    client.do("connect")
    again = server.accept()
    again.establish("2.2")
    again.join("orders")
    client.wait_for("bound", event=SUCCEEDED)
    join(client, again, "control")
    settle(client, again)
    assert called(client) == [SUCCEEDED]


def test_who_watches_late_is_told_who_is_there(server: ScriptedServer, begin: Begin) -> None:
    client, connection = begin()
    join(client, connection, "control")
    sign_in(client, connection)
    connection.expect_subscribe("#server-to-user-m_7")
    connection.send_text(
        succeeded("#server-to-user-m_7"),
        watchlist(online=["m_8", "m_9"], offline=["m_1", 2]),
        watchlist(offline=["m_9"], away=["m_8"]),
    )
    settle(client, connection)
    client.do("watch")
    client.wait_for("watched", event="offline")
    settle(client, connection)
    told = [("online", '["m_8"]'), ("offline", '["m_9","m_1","2"]')]
    assert watched(client) == told
    connection.send_text(watchlist(online=["m_1"]))
    client.wait_for("watched", event="online")
    told.append(("online", '["m_1"]'))
    assert watched(client) == told

    sign_in(client, connection)  # another signin, another list
    client.do("watch")
    settle(client, connection)
    assert watched(client) == told
    connection.send_text(watchlist(offline=["m_8"]))
    settle(client, connection)
    assert watched(client) == [*told, ("offline", '["m_8"]'), ("offline", '["m_8"]')]
    assert [record["event"] for record in client.all("watchlist")][-1] == "offline"

    connection.close()
    client.wait_for("connection_lost")
    client.do("watch")
    again = server.accept()
    again.establish("2.2")
    again.join("control")
    # In the Python package an authorizer that waits holds up the handlers behind it.
    client.do("grant", client.wait_for("request", asks="member")["request"], SIGNIN["auth"], SIGNIN["member_data"])
    settle(client, again)
    assert len(watched(client)) == len(told) + 2
