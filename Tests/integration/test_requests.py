"""What the library asks the program beside authorizations: headers for the endpoints, and leave to reconnect."""

from __future__ import annotations

import json
import re
import time

import pytest
from conftest import StartClient
from script_client import Record, ScriptClient
from scripted_server import Connection, ScriptedServer

GRANTED = json.dumps({"auth": "key:signature", "member_data": '{"member_id":"m_1"}'})


def endpoint(auth: ScriptedServer, path: str = "/bird/auth") -> str:
    return f"http://{auth.host}{path}"


@pytest.fixture
def client(server: ScriptedServer, auth: ScriptedServer, connect: StartClient) -> ScriptClient:
    return connect(
        server,
        auth_endpoint=endpoint(auth),
        member_auth_endpoint=endpoint(auth, "/bird/member"),
        header_provider=1,
        header__X_Token="hush-old",
        header__X_Other="kept",
    )


@pytest.fixture
def connection(server: ScriptedServer, client: ScriptClient) -> Connection:
    accepted = server.accept()
    accepted.establish("4242.1357")
    client.wait_for_state("connected")
    return accepted


def asked_for_headers(client: ScriptClient) -> Record:
    return client.wait_for("request", asks="headers")


def header_values(head: str, name: str) -> list[str]:
    return re.findall(rf"\r\n{name}: (.*?)(?=\r\n)", head, re.IGNORECASE)


def test_headers_are_asked_for_each_post(auth: ScriptedServer, client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "private-ledger", 0)
    for attempt in (1, 2):
        question = asked_for_headers(client)
        assert question["headers_for"] == endpoint(auth)
        assert auth.is_left_alone_for(0.1)  # nothing is sent before the answer
        client.do("headers", question["request"], "x_token", f"hush-{attempt}")
        post = auth.accept()
        head, body = post.read_post()
        assert header_values(head, "x_token") == [f"hush-{attempt}"]  # in place of the option's
        assert header_values(head, "x_other") == ["kept"]
        assert body["channel_name"] == "private-ledger"
        post.respond(503 if attempt == 1 else 200, GRANTED)
    connection.expect_subscribe("private-ledger", auth="key:signature", member_data='{"member_id":"m_1"}')


def test_headers_of_a_signin_know_their_endpoint(
    auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("signin", 5, 0)
    question = asked_for_headers(client)
    assert question["headers_for"] == endpoint(auth, "/bird/member")
    client.do("headers", question["request"], "authorization", "Bearer hush")
    post = auth.accept()
    head, _ = post.read_post()
    assert head.startswith("POST /bird/member ")
    assert header_values(head, "authorization") == ["Bearer hush"]
    assert header_values(head, "x_token") == ["hush-old"]
    post.respond(403)
    failed = client.wait_for("completion", tag=5)
    assert (failed["status"], failed["http_status"]) == ("BIRD_ERR_DENIED", 403)
    assert "hush" not in json.dumps(failed)
    assert connection.is_silent_for(0.1)


def test_headers_of_the_program_replace_the_librarys(
    auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("subscribe", "private-ledger", 0)
    client.do("headers", asked_for_headers(client)["request"], "user-agent", "mine/1")
    head, _ = auth.accept().read_post()
    assert header_values(head, "user-agent") == ["mine/1"]
    assert connection.is_silent_for(0.1)


def test_unusable_header_is_a_denial_or_stays_open(
    auth: ScriptedServer, client: ScriptClient, connection: Connection, face: str
) -> None:
    client.do("subscribe", "private-ledger", 0)
    request = asked_for_headers(client)["request"]
    reply = client.call("headers", request, "x(token", "hush-new")
    if face == "c":  # the C program hears of it and may give another answer; the Python function has returned
        assert (reply["status"], reply["field"]) == ("BIRD_ERR_ARGUMENT", "headers")
        assert "hush" not in reply["message"]
        assert client.call("grant", request, "key:signature")["status"] == "BIRD_ERR_ARGUMENT"
        client.do("refuse", request, 0, "a header is unusable")
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"]) == ("BIRD_ERR_DENIED", 0)
    assert failed["field"] == "header_provider"
    assert "hush" not in json.dumps(failed)
    assert auth.is_left_alone_for(0.2)
    assert connection.is_silent_for(0.1)


def test_headers_for_a_lost_connection_are_dropped(
    server: ScriptedServer, auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("subscribe", "private-ledger", 0)
    stale = asked_for_headers(client)["request"]
    connection.close()
    second = server.accept()
    second.establish("2.2")
    # In Python the function still runs; whatever it returns is for nobody.
    client.call("headers", stale, "x_token", "hush-stale")
    client.do("headers", asked_for_headers(client)["request"], "x_token", "hush-fresh")
    post = auth.accept()
    head, body = post.read_post()
    assert (header_values(head, "x_token"), body["connection_id"]) == (["hush-fresh"], "2.2")
    post.respond(200, json.dumps({"auth": "key:fresh"}))
    second.join("private-ledger", auth="key:fresh")
    client.wait_for("subscribed")
    assert auth.is_left_alone_for(0.1)


@pytest.mark.c_only("a matter of the core")
def test_deadline_covers_headers_and_post(server: ScriptedServer, auth: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, auth_endpoint=endpoint(auth), header_provider=1, auth_timeout_ms=4000)
    server.accept().establish()
    client.do("subscribe", "private-ledger", 0)
    question = asked_for_headers(client)
    start = time.monotonic()
    time.sleep(2.0)  # half of the time goes for the headers
    client.do("headers", question["request"], "x_token", "hush")
    auth.accept().expect_end()
    assert time.monotonic() - start < 2.0 + 4.0


# Leave to reconnect


@pytest.fixture
def asking(server: ScriptedServer, connect: StartClient) -> ScriptClient:
    client = connect(server, may_reconnect=1)
    accepted = server.accept()
    accepted.establish()
    client.wait_for_state("connected")
    accepted.send_close(4201, "no pong")
    accepted.close()
    return client


def asked_for_leave(client: ScriptClient, attempt: int) -> Record:
    return client.wait_for("request", asks="reconnect", attempt=attempt)


def test_reconnect_waits_for_leave(server: ScriptedServer, asking: ScriptClient) -> None:
    question = asked_for_leave(asking, 1)
    assert (question["error"], question["code"], question["retriable"]) == ("BIRD_ERR_LOST", 4201, 1)
    assert "no pong" in question["message"]
    assert server.is_left_alone_for(0.1)
    asking.do("proceed", question["request"], 0)
    server.accept().establish("2.2")
    asking.wait_for_state("connected")
    assert asking.statistic("attempts_refused") == 0


def test_refused_attempts_are_counted_and_planned_again(server: ScriptedServer, asking: ScriptClient) -> None:
    for attempt in (1, 2, 3):
        asking.do("refuse", asked_for_leave(asking, attempt)["request"], 0, "metered line")
        assert asking.wait_for("connecting_in", attempt=attempt + 1)["delay_ms"] <= 100
    question = asked_for_leave(asking, 4)
    assert asking.statistic("attempts_refused") == 3
    assert asking.statistic("attempts") == 1  # none of them reached for the network
    asking.do("proceed", question["request"], 0)
    server.accept().establish("2.2")
    assert asking.wait_for_state("connecting")["attempt"] == 4
    asking.wait_for_state("connected")


def test_attempt_that_was_put_off_is_not_asked_about_again(server: ScriptedServer, asking: ScriptClient) -> None:
    question = asked_for_leave(asking, 1)
    start = time.monotonic()
    asking.do("proceed", question["request"], 400)
    assert asking.wait_for("connecting_in", delay_ms=400)["reason"] == "BIRD_OK"
    server.accept().establish("2.2")
    assert time.monotonic() - start >= 0.39
    asking.wait_for_state("connected")
    assert len(asking.all("request")) == 1


def test_silence_is_leave(server: ScriptedServer, asking: ScriptClient) -> None:
    question = asked_for_leave(asking, 1)
    server.accept().establish("2.2")
    # Too late: refused, and without any effect.
    asking.call("refuse", question["request"], 0, "too late")
    asking.wait_for_state("connected")
    assert asking.statistic("attempts_refused") == 0


def test_the_programs_own_connect_needs_no_leave(server: ScriptedServer, asking: ScriptClient) -> None:
    question = asked_for_leave(asking, 1)
    asking.do("connect")
    server.accept().establish("2.2")
    asking.call("refuse", question["request"], 0, "too late")
    asking.wait_for_state("connected")
    assert asking.statistic("attempts_refused") == 0


def test_each_failed_attempt_asks_again(server: ScriptedServer, asking: ScriptClient) -> None:
    asking.do("proceed", asked_for_leave(asking, 1)["request"], 0)
    server.accept().close()
    question = asked_for_leave(asking, 2)
    assert question["retriable"] == 1
    asking.do("proceed", question["request"], 0)
    server.accept().establish("2.2")
    asking.wait_for_state("connected")
