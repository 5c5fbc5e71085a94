"""Watched members, and what an edge refuses or ends (Bird protocol §12, §14 and §18)."""

from __future__ import annotations

import json

import pytest
from conftest import StartClient
from script_client import ScriptClient
from scripted_server import Connection, ScriptedServer, dump, event
from test_late_handlers import settle, sign_in, watchlist


@pytest.fixture
def client(server: ScriptedServer, connect: StartClient) -> ScriptClient:
    return connect(server, member_authorizer=1)


@pytest.fixture
def connection(server: ScriptedServer, client: ScriptClient) -> Connection:
    accepted = server.accept()
    accepted.establish("1.1")
    client.wait_for_state("connected")
    client.do("subscribe", "control", 0)
    accepted.join("control")
    return accepted


def statuses(client: ScriptClient) -> list[tuple[str, list[str]]]:
    return [(record["event"], json.loads(record["data"])) for record in client.all("watchlist")]


def test_each_entry_stands_for_itself(client: ScriptClient, connection: Connection) -> None:
    sign_in(client, connection)
    entries = [
        {"name": "online", "member_ids": ["m_8", 9, None, {}, 1.50]},
        {"name": "online"},
        "no entry",
        {"name": "offline", "member_ids": ["m_1"], "more": True},
    ]
    connection.send_text({"event": "bird_internal:watchlist_events", "data": dump({"events": entries}).decode()})
    connection.send_text({"event": "bird_internal:watchlist_events", "data": {"events": entries[3:]}})
    connection.send_text({"event": "bird_internal:watchlist_events", "data": "nothing"})
    settle(client, connection)
    assert statuses(client) == [("online", ["m_8", "9", "1.5"]), ("offline", ["m_1"]), ("offline", ["m_1"])]
    assert client.statistic("watchlist_entries_malformed") == 3
    assert client.statistic("frames_malformed") == 0


@pytest.mark.parametrize("member_data", ["{}", '{"member_id":""}', "broken"])
def test_a_success_without_a_member_is_an_error_of_its_own(
    server: ScriptedServer, client: ScriptClient, connection: Connection, member_data: str
) -> None:
    client.do("signin", 1, 0)
    question = client.wait_for("request", asks="member")["request"]
    client.do("grant", question, "k:s", '{"member_id":"m_7"}')
    connection.read_frame()
    connection.send_text({"event": "bird:signin_success", "data": {"member_data": member_data}})
    ended = client.wait_for("completion", tag=1)
    assert (ended["status"], ended["field"], ended["retriable"]) == ("BIRD_ERR_IDENTITY", "member_id", 0)
    assert client.do("state")["state"] == "connected"
    assert client.do("member")["member_id"] == ""
    assert not client.all("error")


def test_a_watchlist_too_long_is_told_and_the_signin_succeeds(client: ScriptClient, connection: Connection) -> None:
    client.do("signin", 1, 0)
    question = client.wait_for("request", asks="member")["request"]
    client.do("grant", question, "k:s", '{"member_id":"m_7"}')
    connection.read_frame()
    connection.send_text({"event": "bird:error", "data": {"code": 4302, "message": "watchlist too long"}})
    assert client.wait_for("error")["code"] == 4302
    connection.send_text({"event": "bird:signin_success", "data": {"member_data": '{"member_id":"m_7"}'}})
    assert client.wait_for("completion", tag=1)["status"] == "BIRD_OK"
    connection.send_text(watchlist(online=["m_8"]))
    assert client.wait_for("watchlist")["event"] == "online"


def test_a_client_event_too_many_is_told_and_nobody_is_blamed(client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "orders", 7)
    connection.expect_subscribe("orders")
    connection.send_text({"event": "bird:error", "data": {"code": 4301, "message": "slow down"}})
    assert client.wait_for("error")["code"] == 4301
    connection.send_text({"event": "bird_internal:subscription_succeeded", "channel": "orders", "data": "{}"})
    client.wait_for("subscribed", channel="orders")
    assert client.all("subscription_error") == []


@pytest.mark.parametrize("reason", ["Member connections terminated", "not authorized within timeout"])
def test_unauthorized_is_terminal(
    server: ScriptedServer, client: ScriptClient, connection: Connection, reason: str
) -> None:
    sign_in(client, connection)
    connection.send_close(4009, reason)
    error = client.wait_for("error")
    assert (error["error"], error["code"], error["message"]) == ("BIRD_ERR_REFUSED", 4009, reason)
    change = client.wait_for_state("failed")
    assert (change["close_code"], change["delay_ms"]) == (4009, -1)
    assert server.is_left_alone_for(0.5)
    client.do("connect")
    again = server.accept()
    again.establish("2.2")
    again.expect_subscribe("control")


def test_a_cache_miss_and_a_count_have_names(client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "cache-prices", 0)
    connection.join("cache-prices")
    connection.send_text({"event": "bird:cache_miss", "channel": "cache-prices"})
    connection.send_text(event("bird_internal:connection_count", "cache-prices", {"connection_count": 5}))
    settle(client, connection)
    assert [(each["event"], each["data"]) for each in client.all("event", channel="cache-prices")] == [
        ("bird:cache_miss", "")
    ]
