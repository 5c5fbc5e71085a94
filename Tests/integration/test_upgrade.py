"""The way to a connection: the upgrade request, what servers make of it, and hosts that cannot be reached."""

from __future__ import annotations

import contextlib
import re
import time
from email.utils import formatdate

import pytest
from conftest import StartClient
from scripted_server import ScriptedServer, handshake, refusing_port, text

pytestmark = pytest.mark.c_only("the way to a connection is the engine's, below both faces")

UPGRADE_REQUEST = (
    r"GET /app/{key}\?protocol=7&client=bird-realtime&version=0\.1\.0 HTTP/1\.1\r\n"
    r"Host: {host}\r\n"
    r"Upgrade: websocket\r\n"
    r"Connection: Upgrade\r\n"
    r"Sec-WebSocket-Key: [A-Za-z0-9+/]{{22}}==\r\n"
    r"Sec-WebSocket-Version: 13\r\n"
    r"User-Agent: bird-realtime/0\.1\.0[^\r\n]*\r\n"
    r"\r\n"
)


@pytest.mark.parametrize(("app_key", "in_path"), [("pk_test", "pk_test"), ("my key/é", "my%20key%2F%C3%A9")])
def test_request_is_exact(server: ScriptedServer, connect: StartClient, app_key: str, in_path: str) -> None:
    connect(server, app_key=app_key)
    request = server.accept().read_request().decode()
    assert re.fullmatch(UPGRADE_REQUEST.format(key=in_path, host=re.escape(server.host)), request), request


def test_every_attempt_has_a_key_of_its_own(server: ScriptedServer, connect: StartClient) -> None:
    connect(server)
    keys = set()
    for _ in range(5):
        with server.accept() as connection:
            connection.read_request()
            keys.add(connection.websocket_key)
    assert len(keys) == 5


def test_connected_only_after_the_handshake(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = server.accept()
    connection.upgrade()
    assert client.do("state")["state"] == "connecting"
    connection.send_text(handshake("4242.1357"))
    assert client.wait_for_state("connected")["connection_id"] == "4242.1357"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 200, 204])
def test_http_refusal_is_named(server: ScriptedServer, connect: StartClient, status: int) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    connection.respond(status, "no")
    error = client.wait_for("error")
    assert (error["error"], error["http_status"], error["retriable"]) == ("BIRD_ERR_UPGRADE", status, 1)
    assert error["field"]
    assert str(status) in error["message"]
    assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_UPGRADE"
    server.accept().establish()  # it goes on trying
    client.wait_for_state("connected")


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_refused_upgrade_waits_as_long_as_the_server_asks(
    server: ScriptedServer, connect: StartClient, status: int, form: str
) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    before = time.monotonic()
    # A date has whole seconds: 3 from now may be little more than 2.
    connection.respond(status, Retry_After="2" if form == "seconds" else formatdate(time.time() + 3, usegmt=True))
    # What is left of a date when the client reads it depends on the machine.
    assert int(client.wait_for("connecting_in")["delay_ms"]) >= (1900 if form == "seconds" else 200)
    server.accept().establish()
    assert time.monotonic() - before >= 1.9
    client.wait_for_state("connected")


@pytest.mark.parametrize("wish", ["61", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_server_that_asks_for_too_much_is_left_alone_for_a_minute(
    server: ScriptedServer, connect: StartClient, wish: str
) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    connection.respond(503, Retry_After=wish)
    assert 60_000 <= int(client.wait_for("connecting_in")["delay_ms"]) <= 60_100
    client.do("retry_now")  # the program's own call does not wait
    server.accept().establish()
    client.wait_for_state("connected")


def test_interim_answers_are_skipped(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"
    connection.send_bytewise(early + connection.switching_protocols())
    connection.send_text(handshake("4242.1357"))
    assert client.wait_for_state("connected")["connection_id"] == "4242.1357"
    assert not client.all("error")


def test_endless_interim_answers_are_bounded(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    with contextlib.suppress(OSError):  # when it has had enough
        for _ in range(1000):
            connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert "16384 header bytes" in client.wait_for("error", error="BIRD_ERR_UPGRADE")["message"]


def test_redirect_is_not_followed(server: ScriptedServer, auth: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    connection.respond(301, Location=f"http://{auth.host}/elsewhere")
    error = client.wait_for("error", error="BIRD_ERR_UPGRADE")
    assert error["http_status"] == 301
    assert auth.host in error["message"]
    assert auth.is_left_alone_for(0.3)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"\x00" * 100,
        b"HTTP/1.1 101\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
    ],
    ids=["ssh", "tls alert", "zeros", "bare 101", "no accept", "wrong accept"],
)
def test_server_that_is_no_websocket(server: ScriptedServer, connect: StartClient, answer: bytes) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    connection.send(answer)
    connection.socket.shutdown(1)
    assert client.wait_for("error")["error"] in ("BIRD_ERR_UPGRADE", "BIRD_ERR_PROTOCOL")
    client.wait_for_state("unavailable")
    connection.close()


@pytest.mark.parametrize(
    "extra",
    [b"Sec-WebSocket-Extensions: permessage-deflate\r\n", b"Sec-WebSocket-Protocol: chat\r\n"],
    ids=["extension", "subprotocol"],
)
def test_what_was_not_offered_is_refused(server: ScriptedServer, connect: StartClient, extra: bytes) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    connection.send(connection.switching_protocols()[:-2] + extra + b"\r\n")
    assert client.wait_for("error")["error"] == "BIRD_ERR_UPGRADE"
    connection.expect_end()


def test_headers_of_the_answer_may_be_written_differently(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    accept = re.search(rb"Accept: (\S+)", connection.switching_protocols())
    assert accept
    connection.send(
        b"HTTP/1.1 101 Fine\r\nServer: x\r\nupgrade: WebSocket\r\nCONNECTION: keep-alive, upgrade\r\n"
        b"sec-websocket-accept:   " + accept[1] + b"  \r\n\r\n" + text(handshake())
    )
    client.wait_for_state("connected")


def test_endless_answer_is_bounded(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, connect_timeout_ms=10_000)
    connection = server.accept()
    connection.read_request()
    connection.send(b"HTTP/1.1 101 Switching Protocols\r\n")
    with contextlib.suppress(OSError):  # when it has had enough
        for _ in range(1000):
            connection.send(b"X-Filler: " + b"x" * 1000 + b"\r\n")
    assert client.wait_for("error")["error"] in ("BIRD_ERR_UPGRADE", "BIRD_ERR_PROTOCOL")


@pytest.mark.parametrize("stage", ["no answer", "no handshake"])
def test_silent_server_meets_the_deadline(server: ScriptedServer, connect: StartClient, stage: str) -> None:
    client = connect(server, connect_timeout_ms=300)
    connection = server.accept()
    if stage == "no handshake":
        with contextlib.suppress(ConnectionError):  # on a busy machine it may be too late already
            connection.upgrade()
    assert client.wait_for("state", previous="connecting")["reason"] == "BIRD_ERR_TIMEOUT"
    connection.expect_end()
    outcome = ""
    while outcome != "connected":  # and here
        with contextlib.suppress(ConnectionError):
            server.accept().establish()
        outcome = client.wait_for("state", previous="connecting")["current"]


def test_nobody_listens(server: ScriptedServer, connect: StartClient) -> None:
    with refusing_port() as port:
        client = connect(server, ws_host=f"127.0.0.1:{port}")
        error = client.wait_for("error")
        assert error["error"] == "BIRD_ERR_CONNECT"
        assert "Connection refused" in error["message"]
        assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_CONNECT"


def test_name_that_does_not_resolve(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, ws_host="nobody.invalid")
    error = client.wait_for("error")
    assert error["error"] == "BIRD_ERR_RESOLVE"
    assert "nobody.invalid" in error["message"]
    assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_RESOLVE"


def test_name_that_resolves(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, ws_host=f"localhost:{server.port}")
    connection = server.accept()
    connection.establish()
    assert f"\r\nHost: localhost:{server.port}\r\n".encode() in connection.request
    client.wait_for_state("connected")


def test_address_replaces_resolving(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, ws_host=f"localhost:{server.port}", address="127.0.0.1")
    connection = server.accept()
    connection.establish()
    assert f"\r\nHost: localhost:{server.port}\r\n".encode() in connection.request
    client.wait_for_state("connected")


def test_handshake_without_an_id_is_refused(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = server.accept()
    connection.upgrade(text({"event": "bird:connection_established", "data": '{"socket_id":"1.1"}'}))
    connection.expect_close(4001)
    client.wait_for_state("failed")
    assert len(client.all("error")) == 1
    assert server.is_left_alone_for(0.3)


# What a server says of its refusal

NGINX = "<html>\r\n<head><title>403 Forbidden</title></head>\r\n<body>\r\n<center><h1>403 Forbidden</h1></center>"


@pytest.mark.parametrize(
    ("status", "headers", "body", "says"),
    [
        (403, "Content-Length: 10\r\n", "No access.", 'HTTP status 403: "No access.".'),
        (403, f"Content-Length: {len(NGINX)}\r\n", NGINX, 'HTTP status 403: "403 Forbidden".'),
        (429, "Content-Length: 20\r\n", '{"message":"slower"}', 'HTTP status 429: "slower".'),
        (404, "Content-Length: 0\r\n", "", "HTTP status 404."),
        (502, "Transfer-Encoding: chunked\r\n", "7\r\nNo edge\r\n0\r\n\r\n", 'HTTP status 502: "No edge".'),
        (503, "", "Later\u2028 \u202ereversed", 'HTTP status 503: "Later".'),
    ],
)
@pytest.mark.parametrize("ending", ["closes", "stays"])
def test_refusal_is_told_with_its_words(
    server: ScriptedServer, connect: StartClient, status: int, headers: str, body: str, says: str, ending: str
) -> None:
    """Whether or not the server says where its answer ends, and however the answer comes."""
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    head = f"HTTP/1.1 {status} X\r\n{headers}\r\n".encode()
    connection.send_bytewise(head + body.encode()[:20])
    connection.send(body.encode()[20:])
    if ending == "closes":
        connection.close()
    error = client.wait_for("error")
    assert (error["error"], error["http_status"]) == ("BIRD_ERR_UPGRADE", status)
    assert error["message"] == f"No connection to {server.host}: the server answered the upgrade with {says}"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 71\r\n\r\n"
        b"<html><title>400 The plain HTTP request was sent to HTTPS port</title>",
        b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
    ],
    ids=["nginx", "Go", "alert"],
)
def test_plaintext_to_a_port_that_wants_tls(server: ScriptedServer, connect: StartClient, answer: bytes) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    connection.send(answer)
    connection.close()
    message = client.wait_for("error", error="BIRD_ERR_UPGRADE")["message"]
    assert message.startswith(f"No connection to {server.host}: ")
    assert message.endswith("The port may want TLS; allow_insecure sends plaintext.")


@pytest.mark.parametrize("ending", ["end", "reset"])
def test_connection_that_ends_before_the_answer_is_lost(
    server: ScriptedServer, connect: StartClient, ending: str
) -> None:
    client = connect(server)
    connection = server.accept()
    connection.read_request()
    if ending == "reset":
        connection.reset()
    else:
        connection.close()
    error = client.wait_for("error")
    assert error["error"] == "BIRD_ERR_LOST"
    what = "ended without an answer to the upgrade" if ending == "end" else "broke: Connection reset by peer"
    assert error["message"] == f"No connection to {server.host}: the connection {what}."
    assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_LOST"


def test_messages_have_ipv6_addresses_in_brackets(server: ScriptedServer, connect: StartClient) -> None:
    with refusing_port() as port:
        message = connect(server, ws_host=f"[::1]:{port}").wait_for("error")["message"]
        assert message == f"No connection to [::1]:{port}: Connection refused."
