"""Which frame an answer of the edge answers: channels left and subscribed again, and errors, which name no channel."""

from __future__ import annotations

import pytest
from conftest import StartClient
from script_client import ScriptClient
from scripted_server import Connection, ScriptedServer, event, succeeded

UNSUBSCRIBE = {"event": "bird:unsubscribe", "data": {"channel": "orders"}}


def error(message: str) -> dict[str, object]:
    return {"event": "bird:error", "data": {"code": None, "message": message}}


def answer_ping(connection: Connection, *answers: object) -> None:
    """The answers are those that were due before it."""
    connection.expect({"event": "bird:ping"})
    connection.send_text(*answers, {"event": "bird:pong"})


@pytest.fixture
def client(server: ScriptedServer, connect: StartClient) -> ScriptClient:
    return connect(server)


@pytest.fixture
def connection(server: ScriptedServer, client: ScriptClient) -> Connection:
    accepted = server.accept()
    accepted.establish()
    client.wait_for_state("connected")
    return accepted


def test_who_comes_back_before_the_answer_takes_the_frame_under_way(
    client: ScriptClient, connection: Connection
) -> None:
    """S1: neither an unrelated error nor the refusal of a second frame makes it count as subscribed when it is not."""
    client.do("subscribe", "orders", 0)
    connection.expect_subscribe("orders")
    client.do("unsubscribe", "orders")
    client.do("subscribe", "orders", 0)
    connection.send_text(error("about something else"))
    answer_ping(connection, succeeded("orders"))
    client.wait_for("subscribed", channel="orders")
    connection.send_text(event("tick", "orders", 1))
    client.wait_for("event", channel="orders", event="tick")
    client.do("unsubscribe", "orders")
    connection.expect(UNSUBSCRIBE)


def test_who_comes_back_is_refused_with_the_frame_under_way(client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "orders", 0)
    connection.expect_subscribe("orders")
    client.do("unsubscribe", "orders")
    client.do("subscribe", "orders", 0)
    connection.send_text(error("no orders"))
    answer_ping(connection)
    assert "no orders" in client.wait_for("subscription_error", channel="orders")["message"]
    assert not client.all("subscribed")


def test_channel_that_is_left_before_the_answer_is_left_behind_it(client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "orders", 0)
    connection.expect_subscribe("orders")
    client.do("unsubscribe", "orders")
    client.do("subscribe", "news", 0)
    connection.expect_subscribe("news")
    connection.send_text(succeeded("orders"), succeeded("never-wanted"), succeeded("news"))
    connection.expect(UNSUBSCRIBE)
    client.wait_for("subscribed", channel="news")
    client.do("subscribe", "orders", 0)
    connection.join("orders")
    client.wait_for("subscribed", channel="orders")


@pytest.mark.parametrize("pongs", [True, False])
def test_error_that_has_denied_is_not_due_again(client: ScriptClient, connection: Connection, pongs: bool) -> None:
    """S2: a is refused, subscribed again and confirmed; then b is refused, and is not left to wait for its answer."""
    for name, is_first in [("a", True), ("a", False), ("b", True)]:
        client.do("subscribe", name, 0)
        connection.expect_subscribe(name)
        if not is_first:
            connection.send_text(succeeded(name))
            client.wait_for("subscribed", channel=name)
            continue
        connection.send_text(error(f"no {name}"))
        if pongs:
            answer_ping(connection)
        else:
            connection.expect({"event": "bird:ping"})
        denied = client.wait_for("subscription_error", channel=name)
        assert denied["error"] == "BIRD_ERR_DENIED"
        assert f"no {name}" in denied["message"]


def test_second_error_about_a_channel_that_was_left_denies_nobody(client: ScriptClient, connection: Connection) -> None:
    """S3: the edge refuses a with two errors while it is left, and takes its time for b."""
    client.do("subscribe", "a", 0)
    connection.expect_subscribe("a")
    client.do("unsubscribe", "a")
    client.do("subscribe", "b", 0)
    connection.expect_subscribe("b")
    connection.send_text(error("no a"), error("No current subscription to channel a"))
    answer_ping(connection, succeeded("b"))
    client.wait_for("subscribed", channel="b")
    client.do("subscribe", "c", 0)
    connection.join("c")
    client.wait_for("subscribed", channel="c")
    assert not client.all("subscription_error")


def test_pong_tells_which_of_many_were_refused(client: ScriptClient, connection: Connection) -> None:
    for name in "abcd":
        client.do("subscribe", name, 0)
        connection.expect_subscribe(name)
    connection.send_text(succeeded("a"), error("no b"))
    answer_ping(connection, succeeded("c"), error("no d"))
    for name in "bd":
        assert f"no {name}" in client.wait_for("subscription_error", channel=name)["message"]
    assert {record["channel"] for record in client.all("subscribed")} == {"a", "c"}
