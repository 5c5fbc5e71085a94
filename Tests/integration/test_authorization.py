"""The authorizer: what is asked, and every way an answer can go wrong (Bird protocol §9)."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import time
from collections import deque
from email.utils import formatdate

import pytest
from command_edge import CommandEdge
from conftest import StartClient
from paths import CLIENT_SCRIPT, HARNESS
from program import Program
from script_client import ScriptClient
from scripted_server import Connection, ScriptedServer, refusing_port, succeeded

GRANTED = json.dumps({"auth": "key:signature"})


def endpoint(auth: ScriptedServer) -> str:
    return f"http://{auth.host}/bird/auth"


@pytest.fixture
def client(server: ScriptedServer, auth: ScriptedServer, connect: StartClient) -> ScriptClient:
    return connect(server, auth_endpoint=endpoint(auth), header__X_Token="hush-1")


@pytest.fixture
def connection(server: ScriptedServer, client: ScriptClient) -> Connection:
    accepted = server.accept()
    accepted.establish("4242.1357")
    client.wait_for_state("connected")
    return accepted


def test_request_and_its_use(auth: ScriptedServer, client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "presence-lobby", 0)
    post = auth.accept()
    head, body = post.read_post()
    assert head.startswith("POST /bird/auth HTTP/1.1\r\n")
    assert re.search(r"\r\ncontent-type: application/json\r\n", head, re.IGNORECASE)
    assert re.search(r"\r\nX_Token: hush-1\r\n", head)
    assert body == {"connection_id": "4242.1357", "channel_name": "presence-lobby"}
    member_data = '{"member_id": "m_7", "member_info": {"name": "Noor\\u00e9"}}'
    post.respond(200, json.dumps({"auth": "key:signature", "member_data": member_data, "extra": [1]}))
    presence = {"presence": {"ids": ["m_7", 8], "hash": {"m_7": {"name": "Noor"}, "8": None}, "count": 2}}
    connection.join("presence-lobby", presence, auth="key:signature", member_data=member_data)
    subscribed = client.wait_for("subscribed")
    assert (subscribed["my_id"], subscribed["member_count"]) == ("m_7", 2)
    assert client.do("roster", "presence-lobby")["members"] == "m_7 8"


def test_answer_with_a_byte_order_mark(auth: ScriptedServer, client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "private-ledger", 0)
    post = auth.accept()
    post.read_post()
    post.respond(200, b"\xef\xbb\xbf" + GRANTED.encode())
    connection.join("private-ledger", auth="key:signature")
    client.wait_for("subscribed")


@pytest.mark.c_only("completion records")
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, "<!doctype html><title>Sign in</title>"),
        (200, ""),
        (200, "[]"),
        (200, "{}"),
        (200, '{"auth":""}'),
        (200, '{"auth":7}'),
        (204, ""),
    ],
)
def test_useless_answer_is_final(
    auth: ScriptedServer, client: ScriptClient, connection: Connection, status: int, body: str
) -> None:
    client.do("subscribe", "private-ledger", 3)
    post = auth.accept()
    post.read_post()
    post.respond(status, body, Content_Type="text/html")
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"]) == ("BIRD_ERR_AUTH", 0)
    assert (failed["endpoint"], failed["http_status"]) == (endpoint(auth), status)
    assert failed["channel"] == "private-ledger"
    client.wait_for("completion", tag=3, status="BIRD_ERR_AUTH")
    assert auth.is_left_alone_for(0.3)
    assert connection.is_silent_for(0.1)


@pytest.mark.c_only("what is decided in the engine alone")
def test_compressed_answer_is_called_that(auth: ScriptedServer, client: ScriptClient, connection: Connection) -> None:
    client.do("subscribe", "private-ledger", 0)
    post = auth.accept()
    assert "encoding" not in post.read_post()[0].lower()
    post.respond(200, gzip.compress(GRANTED.encode()), Content_Encoding="gzip")
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"]) == ("BIRD_ERR_AUTH", 0)
    assert "has the content-encoding gzip, which was not asked for" in failed["message"]
    assert connection.is_silent_for(0.1)


@pytest.mark.c_only("completion records")
@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_denial_is_final_until_asked_again(
    auth: ScriptedServer, client: ScriptClient, connection: Connection, status: int
) -> None:
    client.do("subscribe", "private-ledger", 3)
    post = auth.accept()
    post.read_post()
    post.respond(status, "<h1>no</h1>")
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"]) == ("BIRD_ERR_DENIED", 0)
    assert (failed["endpoint"], failed["http_status"], failed["code"]) == (endpoint(auth), status, 0)
    assert "hush" not in json.dumps(failed)
    client.wait_for("completion", tag=3, status="BIRD_ERR_DENIED")
    assert auth.is_left_alone_for(0.3)
    client.do("subscribe", "private-ledger", 4)
    post = auth.accept()
    post.read_post()
    post.respond(200, GRANTED)
    connection.join("private-ledger", auth="key:signature")
    client.wait_for("completion", tag=4, status="BIRD_OK")


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 425, 429])
def test_transient_failure_is_tried_again(
    auth: ScriptedServer, client: ScriptClient, connection: Connection, status: int
) -> None:
    client.do("subscribe", "private-ledger", 0)
    for answer in (status, 200):
        post = auth.accept()
        post.read_post()
        post.respond(answer, GRANTED)
    connection.join("private-ledger", auth="key:signature")
    client.wait_for("subscribed")
    assert not client.all("subscription_error")
    assert auth.is_left_alone_for(0.2)


@pytest.mark.c_only("the engine reads it")
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured(auth: ScriptedServer, client: ScriptClient, connection: Connection, form: str) -> None:
    client.do("subscribe", "private-ledger", 0)
    post = auth.accept()
    post.read_post()
    start = time.monotonic()
    # A date has whole seconds: 3 from now may be little more than 2.
    post.respond(429, Retry_After="2" if form == "seconds" else formatdate(time.time() + 3, usegmt=True))
    post = auth.accept()
    assert time.monotonic() - start >= 1.9
    post.read_post()
    post.respond(200, GRANTED)
    connection.join("private-ledger", auth="key:signature")


@pytest.mark.c_only("the engine reads it")
def test_retry_after_without_measure_is_a_minute(
    auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("subscribe", "private-ledger", 0)
    post = auth.accept()
    post.read_post()
    post.respond(429, Retry_After="99999999999999999999")
    assert auth.is_left_alone_for(0.5)  # the backoff of these tests ends after 0.1 s
    assert connection.is_silent_for(0.1)


@pytest.mark.c_only("the engine reads it")
def test_interim_answers_of_an_authorizer_say_nothing(
    auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("subscribe", "private-ledger", 0)
    post = auth.accept()
    post.read_post()
    post.send(b"HTTP/1.1 103 Early Hints\r\nRetry-After: 30\r\nContent-Encoding: gzip\r\n\r\n")
    post.respond(503)
    post = auth.accept()
    post.read_post()
    post.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    post.respond(200, GRANTED)
    connection.join("private-ledger", auth="key:signature")


@pytest.mark.c_only("the engine reads it")
@pytest.mark.parametrize("wish", ["Thu, 01 Jan 1970 00:00:01 GMT", "soon", "-7"])
def test_retry_after_that_asks_for_nothing(
    auth: ScriptedServer, client: ScriptClient, connection: Connection, wish: str
) -> None:
    client.do("subscribe", "private-ledger", 0)
    for status in (503, 200):
        post = auth.accept()
        post.read_post()
        post.respond(status, GRANTED, Retry_After=wish)
    connection.join("private-ledger", auth="key:signature")


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize(
    ("status", "error", "says"),
    [(200, "BIRD_ERR_AUTH", "is larger than 262144 bytes"), (403, "BIRD_ERR_DENIED", "HTTP 403")],
)
def test_answer_that_is_too_large_is_final(
    auth: ScriptedServer, client: ScriptClient, connection: Connection, status: int, error: str, says: str
) -> None:
    client.do("subscribe", "private-ledger", 0)
    post = auth.accept()
    post.read_post()
    with contextlib.suppress(ConnectionError):  # nobody reads it to the end
        post.respond(status, b" " * 10_000_000)
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"], failed["http_status"]) == (error, 0, status)
    assert says in failed["message"]
    assert auth.is_left_alone_for(0.3)
    assert connection.is_silent_for(0.1)


def test_lasting_failure_is_reported_once_and_tried_on(
    auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("subscribe", "private-ledger", 0)
    for _ in range(4):  # the first and three more
        post = auth.accept()
        post.read_post()
        post.respond(503)
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"], failed["http_status"]) == ("BIRD_ERR_AUTH", 1, 503)
    post = auth.accept()
    post.read_post()
    post.respond(200, GRANTED)
    connection.join("private-ledger", auth="key:signature")
    client.wait_for("subscribed")
    assert len(client.all("subscription_error")) == 1


def test_redirect_is_not_followed(
    auth: ScriptedServer, client: ScriptClient, connection: Connection, server: ScriptedServer
) -> None:
    client.do("subscribe", "private-ledger", 0)
    post = auth.accept()
    post.read_post()
    post.respond(302, Location=f"http://{server.host}/login")
    failed = client.wait_for("subscription_error")
    assert failed["will_retry"] == 0
    assert failed["http_status"] == 302
    assert f"http://{server.host}/login" in failed["message"]
    assert server.is_left_alone_for(0.2)
    assert connection.is_silent_for(0.1)


def test_hanging_endpoint_meets_the_deadline(
    server: ScriptedServer, auth: ScriptedServer, connect: StartClient
) -> None:
    client = connect(server, auth_endpoint=endpoint(auth), auth_timeout_ms=200)
    connection = server.accept()
    connection.establish()
    client.do("subscribe", "private-ledger", 0)
    hanging = [auth.accept() for _ in range(4)]
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"]) == ("BIRD_ERR_AUTH", 1)
    for post in hanging:
        post.expect_end()
    auth.answer_posts_until(connection, GRANTED)
    connection.join("private-ledger", auth="key:signature")


def test_endpoint_that_cannot_be_reached(server: ScriptedServer, connect: StartClient) -> None:
    with refusing_port() as port:
        client = connect(server, auth_endpoint=f"http://127.0.0.1:{port}/auth")
        server.accept().establish()
        client.do("subscribe", "private-ledger", 0)
        failed = client.wait_for("subscription_error")
        assert (failed["error"], failed["will_retry"], failed["curl_code"]) == ("BIRD_ERR_AUTH", 1, 7)
        assert (failed["endpoint"], failed["http_status"]) == (f"http://127.0.0.1:{port}/auth", 0)
        assert failed["message"]


@pytest.mark.c_only("completion records")
def test_missing_endpoint_is_the_channels_error(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = server.accept()
    connection.establish()
    client.do("subscribe", "private-ledger", 4)
    failed = client.wait_for("subscription_error")
    assert failed["will_retry"] == 0
    assert "auth_endpoint" in failed["message"]
    client.wait_for("completion", tag=4)
    refused = client.call("signin", 5, 0)
    assert (refused["status"], refused["field"]) == ("BIRD_ERR_VALUE", "member_auth_endpoint")
    assert connection.is_silent_for(0.2)


def test_answer_for_a_lost_connection_is_dropped(
    server: ScriptedServer, auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("subscribe", "private-ledger", 0)
    slow = auth.accept()
    assert slow.read_post()[1]["connection_id"] == "4242.1357"
    connection.close()
    client.wait_for_state("unavailable")
    second = server.accept()
    second.establish("2.2")
    fresh = auth.accept()
    assert fresh.read_post()[1]["connection_id"] == "2.2"
    with contextlib.suppress(OSError):  # the client may have given it up already
        slow.respond(200, json.dumps({"auth": "key:stale"}))
    fresh.respond(200, json.dumps({"auth": "key:fresh"}))
    second.join("private-ledger", auth="key:fresh")
    client.wait_for("subscribed")
    assert second.is_silent_for(0.2)
    assert auth.is_left_alone_for(0.1)


def test_unsubscribe_while_authorizing_sends_nothing(
    auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    client.do("subscribe", "private-ledger", 0)
    post = auth.accept()
    post.read_post()
    client.do("unsubscribe", "private-ledger")
    post.expect_end()  # nobody waits for the answer any more
    assert connection.is_silent_for(0.3)


def test_channels_are_authorized_side_by_side(
    auth: ScriptedServer, client: ScriptClient, connection: Connection
) -> None:
    names = [f"private-{number}" for number in range(20)]
    for name in names:
        client.do("subscribe", name, 0)
    waiting = [auth.accept() for _ in range(8)]  # at most 8 at once
    assert auth.is_left_alone_for(0.2)
    asked: list[str] = []
    while len(asked) < len(names):
        post = waiting.pop(0)
        asked.append(post.read_post()[1]["channel_name"])
        post.respond(200, GRANTED)
        if len(asked) + len(waiting) < len(names):
            waiting.append(auth.accept())
        connection.send_text(succeeded(connection.read_frame().json["data"]["channel"]))
    assert sorted(asked) == sorted(names)
    assert sorted(client.wait_for("subscribed")["channel"] for _ in names) == sorted(names)


def test_a_process_asks_for_64_at_once(auth: ScriptedServer, command_edge: CommandEdge) -> None:
    """Ten clients, each of which may have 8 under way."""
    clients, channels = 10, 10
    program = Program(
        [HARNESS, "many_clients_authorize_side_by_side", command_edge.host, endpoint(auth), str(clients), str(channels)]
    )
    try:
        waiting = deque(auth.accept() for _ in range(64))
        assert auth.is_left_alone_for(0.5)
        for _ in range(clients * channels):
            post = waiting.popleft() if waiting else auth.accept()
            post.read_post()
            post.respond(200, GRANTED)
        assert program.wait() == 0, program.lines
    finally:
        program.close()


# What the program is told


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (404, "No such page\nand more", 'failed (HTTP 404): "No such page".'),
        (403, "<html><head><title>Sign in</title></head>", 'failed (HTTP 403): "Sign in".'),
        (401, '{"message": "unknown token"}', 'failed (HTTP 401): "unknown token".'),
        (403, '{"auth": "hush"}', "failed (HTTP 403)."),
        (400, b"\x00\x01\x02", "failed (HTTP 400)."),
        (400, "", "failed (HTTP 400)."),
        (403, "a\x1b[31m\u202eb", "failed (HTTP 403)."),
        (200, "<title>Sign in</title>", 'failed: the answer is not JSON: "Sign in".'),
        (200, "hush:signature", "failed: the answer is not JSON."),
        (200, '{"auth": "hush', "failed: the answer is not JSON."),
        (302, "", "failed (HTTP 302): redirects are not followed, Location is missing."),
    ],
)
def test_fault_names_the_url_and_what_the_answer_says(
    server: ScriptedServer, auth: ScriptedServer, connect: StartClient, status: int, body: str | bytes, says: str
) -> None:
    client = connect(server, auth_endpoint=f"{endpoint(auth)}?token=hush")
    server.accept().establish()
    client.do("subscribe", "private-ledger", 0)
    post = auth.accept()
    post.read_post()
    post.respond(status, body)
    message = client.wait_for("subscription_error")["message"]
    assert message == f"Channel authorization of private-ledger at {endpoint(auth)} {says}"


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize("asks_for_headers", [False, True])
def test_timeout_names_the_url_and_the_step(
    server: ScriptedServer, auth: ScriptedServer, connect: StartClient, asks_for_headers: bool
) -> None:
    options = {"header_provider": 1} if asks_for_headers else {}
    client = connect(server, auth_endpoint=f"{endpoint(auth)}?token=hush", auth_timeout_ms=500, **options)
    server.accept().establish()
    client.do("subscribe", "private-ledger", 0)
    for _ in range(4):  # the first and three more
        if asks_for_headers:
            client.do("headers", client.wait_for("request")["request"], "X-Token", "hush")
        auth.accept().read_post()
    error = client.wait_for("subscription_error")
    assert (error["error"], error["field"], error["endpoint"]) == ("BIRD_ERR_AUTH", "auth_timeout_ms", endpoint(auth))
    assert error["message"] == (
        f"Channel authorization of private-ledger at {endpoint(auth)} failed: "
        "no answer within 500 ms. It was at this step: answer."
    )


@pytest.mark.c_only("libcurl sends them")
def test_headers_that_are_empty_are_sent(server: ScriptedServer, auth: ScriptedServer, connect: StartClient) -> None:
    options = {"header_provider": 1, "header__X-Option": "", "header__X-Blank": " ", "header__X-Full": " a b "}
    client = connect(server, auth_endpoint=endpoint(auth), **options)
    connection = server.accept()
    connection.establish()
    client.do("subscribe", "private-ledger", 0)
    request = client.wait_for("request")["request"]
    # What belongs to the frame of the request is refused wherever it comes from.
    for name in ("Content-Length", "transfer-encoding", "Host", "Connection", "Expect", "Upgrade", "TE", "Trailer"):
        refused = client.call("headers", request, name, "1")
        assert (refused["status"], refused["field"]) == ("BIRD_ERR_VALUE", "headers")
        assert f"must not set {name}" in refused["message"]
    client.do("headers", request, "X-Provided", "")
    post = auth.accept()
    head, body = post.read_post()
    lines = head.split("\r\n")
    for line in ("X-Option:", "X-Blank:", "X-Full: a b", "X-Provided:"):
        assert line in lines
    assert body["channel_name"] == "private-ledger"
    post.respond(200, GRANTED)
    connection.join("private-ledger", auth="key:signature")
    client.wait_for("subscribed")


def test_headers_of_the_frame_are_refused_by_options() -> None:
    for name in ("Content-Length", "transfer-encoding", "Keep-Alive", "Proxy-Connection"):
        refused = ScriptClient([CLIENT_SCRIPT], app_key="pk_test", ws_host="localhost:1", **{f"header__{name}": "hush"})
        refused.process.wait()
        assert (refused.created["status"], refused.created["field"]) == ("BIRD_ERR_VALUE", "auth_header")
        assert f"must not set {name}" in refused.created["message"]
        assert "hush" not in refused.created["message"]
