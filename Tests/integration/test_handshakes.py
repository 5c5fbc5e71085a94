"""What a server says instead of the handshake, or after it as if there had been none (Bird protocol §4)."""

from __future__ import annotations

import pytest
from conftest import StartClient
from scripted_server import ScriptedServer, dump, handshake, text

GREETINGS = {
    "bird": text(handshake()),
    "pusher": text(
        {
            "event": "pusher:connection_established",
            "data": dump({"socket_id": "4242.1357", "activity_timeout": 120}).decode(),
        }
    ),
}


@pytest.mark.parametrize(("dialect", "other"), [("bird", "pusher"), ("pusher", "bird")])
def test_a_server_of_the_other_dialect_is_named_at_once(
    server: ScriptedServer, connect: StartClient, dialect: str, other: str
) -> None:
    client = connect(server, dialect=dialect)
    accepted = server.accept()
    accepted.upgrade(GREETINGS[other])
    error = client.wait_for("error")
    assert (error["error"], error["field"], error["retriable"]) == ("BIRD_ERR_PROTOCOL", "dialect", 0)
    assert error["message"] == (
        f"The server speaks the dialect {other}, and this client is set to {dialect}. "
        f"Set dialect to {other}, or ws_host to another server."
    )
    assert client.wait_for_state("failed")["reason_text"] == error["message"]
    accepted.expect_close(4001)
    assert server.is_left_alone_for(0.3)


def test_one_connection_id_after_the_other_ends_the_connection(
    server: ScriptedServer, auth: ScriptedServer, connect: StartClient
) -> None:
    """Each new id makes who waits for the authorizer ask again: without a bound one edge would have it flooded."""
    client = connect(server, auth_endpoint=f"http://{auth.host}/auth")
    names = [f"private-{number}" for number in range(8)]
    for name in names:
        client.do("subscribe", name, 0)
    accepted = server.accept()
    accepted.establish("1.0")
    asked = auth.accept()
    asked.read_post()
    accepted.send(b"".join(text(handshake(f"1.{number}")) for number in range(1, 3001)))
    accepted.expect_close(1002)
    error = client.wait_for("error")
    assert (error["error"], error["code"], error["retriable"]) == ("BIRD_ERR_PROTOCOL", 1002, 1)
    assert client.wait_for_state("unavailable")["close_code"] == 1002
    assert client.statistic("authorizations") <= 2 * len(names), "for the first id, and for the one that replaced it"
    server.accept().establish("2.0")
    assert client.wait_for_state("connected")["connection_id"] == "2.0"


def test_a_new_connection_id_replaces_the_old_one(
    server: ScriptedServer, auth: ScriptedServer, connect: StartClient
) -> None:
    client = connect(server, auth_endpoint=f"http://{auth.host}/auth")
    client.do("subscribe", "private-a", 0)
    accepted = server.accept()
    accepted.establish("1.0")
    asked = auth.accept()
    assert asked.read_post()[1]["connection_id"] == "1.0"
    accepted.send_text(handshake("1.1"), handshake("1.1"), handshake("1.1"))
    asked = auth.accept()
    assert asked.read_post()[1]["connection_id"] == "1.1"
    asked.respond(200, '{"auth":"k:s"}')
    accepted.join("private-a", auth="k:s")
    client.wait_for("subscribed", channel="private-a")
