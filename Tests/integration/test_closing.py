"""How connections end, and what a client makes of it (Bird protocol §7, RFC 6455 section 7)."""

from __future__ import annotations

import contextlib
import threading

import pytest
from conftest import StartClient
from scripted_server import (
    CLOSE,
    CONTINUATION,
    PING,
    TEXT,
    Connection,
    ScriptedServer,
    dump,
    event,
    frame,
    handshake,
    succeeded,
    text,
)


def established(server: ScriptedServer, connection_id: str = "1.1") -> Connection:
    connection = server.accept()
    connection.establish(connection_id)
    return connection


BROKEN = {
    "reserved bit": b"\xc1\x00",
    "reserved bits": b"\xb1\x00",
    "unknown opcode": b"\x83\x00",
    "unknown control": b"\x8b\x00",
    "masked": b"\x81\x81abcdx",
    "long ping": frame(PING, b"x" * 126),
    "fragmented ping": frame(PING, b"", fin=False),
    "continuation of nothing": frame(CONTINUATION, b"x"),
    "text inside text": frame(TEXT, b"a", fin=False) + frame(TEXT, b"b"),
    "length with sign": b"\x81\x7f\x80" + b"\x00" * 7,
    "close with one byte": frame(CLOSE, b"\x03"),
    "close with 1005": frame(CLOSE, b"\x03\xed"),
    "close with 999": frame(CLOSE, b"\x03\xe7"),
    "close with 5000": frame(CLOSE, b"\x13\x88"),
}


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize("name", BROKEN)
def test_protocol_error_is_answered_with_1002(server: ScriptedServer, connect: StartClient, name: str) -> None:
    client = connect(server)
    connection = established(server)
    client.wait_for_state("connected")
    connection.send(BROKEN[name])
    connection.expect_close(1002)
    assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_PROTOCOL"
    assert client.all("error", error="BIRD_ERR_PROTOCOL")
    established(server, "2.2")
    client.wait_for_state("connected")


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize(
    "frames",
    [
        frame(TEXT, b'{"event":"\xff"}'),
        frame(TEXT, b"\xed\xa0\x80"),
        frame(TEXT, b"\xc0\x80"),
        frame(TEXT, b'"\xf0\x9f'),
        frame(TEXT, b'"\xc3', fin=False) + frame(CONTINUATION, b'"'),
        frame(CLOSE, b"\x03\xe8\xff"),
    ],
    ids=["0xff", "surrogate", "overlong", "cut", "cut by a fragment", "in a reason"],
)
def test_invalid_utf8_is_answered_with_1007(server: ScriptedServer, connect: StartClient, frames: bytes) -> None:
    client = connect(server)
    connection = established(server)
    client.wait_for_state("connected")
    connection.send(frames)
    connection.expect_close(1007)
    assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_PROTOCOL"


@pytest.mark.parametrize("shape", ["announced", "fragmented"])
def test_message_over_the_limit_is_answered_with_1009(server: ScriptedServer, connect: StartClient, shape: str) -> None:
    limit = 4096
    client = connect(server, message_bytes_max=limit)
    client.do("subscribe", "orders", 0)
    connection = established(server)
    connection.join("orders")
    just_fits = dump(event("tick", "orders", "x" * (limit - len(dump(event("tick", "orders", ""))))))
    assert len(just_fits) == limit
    connection.send(frame(TEXT, just_fits))
    client.wait_for("event")
    if shape == "announced":
        connection.send(frame(TEXT, b"x" * (limit + 1))[:10])  # refused by its header alone
    else:
        connection.send(frame(TEXT, b"x" * limit, fin=False) + frame(CONTINUATION, b"x"))
    connection.expect_close(1009)
    client.wait_for_state("unavailable")
    errors = client.all("error")
    assert len(errors) == 1
    assert str(limit) in errors[0]["message"]
    established(server, "2.2").join("orders")
    client.wait_for("subscribed", is_resubscribe=1)


@pytest.mark.parametrize("code", [4000, 4001, 4003, 4004, 4007, 4009, 4099])
def test_refused_is_terminal(server: ScriptedServer, connect: StartClient, code: int) -> None:
    client = connect(server)
    connection = established(server)
    client.wait_for_state("connected")
    connection.send_close(code, "Member connections terminated")
    failed = client.wait_for_state("failed")
    assert (failed["reason"], failed["close_code"], failed["delay_ms"]) == ("BIRD_ERR_REFUSED", code, -1)
    assert server.is_left_alone_for(0.4)
    errors = client.all("error")
    assert [(error["error"], error["code"]) for error in errors] == [("BIRD_ERR_REFUSED", code)]
    assert "Member connections terminated" in errors[0]["message"]
    assert errors[0]["retriable"] == 0
    client.do("connect")  # the program's own wish
    established(server, "2.2")
    client.wait_for_state("connected")


def test_refused_before_the_handshake(server: ScriptedServer, connect: StartClient) -> None:
    """An unknown app key: the upgrade succeeds, then comes the close."""
    client = connect(server)
    connection = server.accept()
    connection.upgrade(frame(CLOSE, (4001).to_bytes(2, "big") + b"App does not exist"))
    assert client.wait_for_state("failed")["close_code"] == 4001
    assert server.is_left_alone_for(0.3)


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize("code", [4200, 4201, 4202, 4299])
def test_reconnect_now_does_not_wait(server: ScriptedServer, connect: StartClient, code: int) -> None:
    client = connect(server, backoff_base_ms=30_000, backoff_max_ms=30_000)
    connection = established(server)
    client.wait_for_state("connected")
    connection.send_close(code)
    lost = client.wait_for_state("unavailable")
    assert (lost["close_code"], lost["delay_ms"]) == (code, 0)
    established(server, "2.2")
    client.wait_for_state("connected")


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize("code", [4100, 4199])
def test_over_capacity_waits_at_least_a_second(server: ScriptedServer, connect: StartClient, code: int) -> None:
    client = connect(server, backoff_base_ms=1000, backoff_max_ms=30_000)
    connection = established(server)
    client.wait_for_state("connected")
    connection.send_close(code)
    lost = client.wait_for_state("unavailable")
    assert lost["close_code"] == code
    assert 1000 <= lost["delay_ms"] <= 2000


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize("code", [1000, 1001, 1006, 1011, 3000, 4300, 4999])
def test_other_codes_back_off(server: ScriptedServer, connect: StartClient, code: int) -> None:
    client = connect(server, backoff_base_ms=200, backoff_max_ms=200)
    connection = established(server)
    client.wait_for_state("connected")
    if code == 1006:  # stands for an end without a close frame
        connection.close()
    else:
        connection.send_close(code, "bye")
        answer = connection.read_frame()
        assert answer.close_code == code
    lost = client.wait_for_state("unavailable")
    assert 0 <= lost["delay_ms"] <= 200
    assert lost["close_code"] in ((0, 1006) if code == 1006 else (code,))
    established(server, "2.2")
    client.wait_for_state("connected")
    assert len(client.all("connection_lost")) == 1
    assert len(client.all("connecting_in")) == 1


def test_close_without_a_code(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = established(server)
    client.wait_for_state("connected")
    connection.send(frame(CLOSE, b""))
    client.wait_for_state("unavailable")
    established(server, "2.2")
    client.wait_for_state("connected")


@pytest.mark.parametrize("end", ["fin", "reset", "half a frame", "half a handshake"])
def test_drop_resubscribes_each_channel_once(server: ScriptedServer, connect: StartClient, end: str) -> None:
    client = connect(server)
    channels = ["orders", "news", "cache-prices"]
    for channel in channels:
        client.do("subscribe", channel, 0)
    first = established(server)
    for channel in channels:
        first.join(channel)
    first.send_text(event("tick", "orders", 1))
    client.wait_for("event", data="1")
    if end == "reset":
        first.reset()
    else:
        first.send(text(event("tick", "orders", "never"))[:20] if end.startswith("half") else b"")
        first.close()
    client.wait_for("connection_lost")
    if end == "half a handshake":
        with server.accept() as short:
            short.upgrade(text(handshake())[:20])
    second = established(server, "2.2")
    assert sorted(second.read_frame().json["data"]["channel"] for _ in channels) == sorted(channels)
    second.send_text(*map(succeeded, channels))
    for _ in channels:
        assert client.wait_for("subscribed")["is_resubscribe"] == 1
    second.send_text(event("tick", "orders", 2))
    client.wait_for("event", data="2")
    assert second.is_silent_for(0.2)
    assert len(client.all("event")) == 2
    assert len(client.all("subscribed")) == 2 * len(channels)
    assert len(client.all("connection_lost")) == 1


def test_interruption_is_told(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    client.do("subscribe", "orders", 0)
    with established(server) as first:
        first.join("orders")
        fresh = client.wait_for("subscribed")
        assert (fresh["is_resubscribe"], fresh["interrupted_ms"]) == (0, 0)
    client.wait_for_state("unavailable")
    second = established(server, "2.2")
    second.expect_subscribe("orders")
    assert server.is_left_alone_for(0.3)
    second.send_text(succeeded("orders"))
    again = client.wait_for("subscribed")
    assert again["is_resubscribe"] == 1
    assert 300 <= again["interrupted_ms"] < 30_000


def test_connect_from_many_threads_opens_one_socket(server: ScriptedServer, start: StartClient) -> None:
    client = start(server)
    client.do("storm", 5)
    established(server)
    client.wait_for_state("connected")
    client.do("storm", 5)
    assert server.is_left_alone_for(0.3)
    assert client.statistic("attempts") == 1


def test_connect_during_the_wait_dials_once_and_now(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, backoff_base_ms=1000, backoff_max_ms=30_000)
    first = established(server)
    client.wait_for_state("connected")
    first.send_close(4100)  # a wait of 1 to 2 seconds
    delay_s = client.wait_for_state("unavailable")["delay_ms"] / 1000
    client.do("connect")
    established(server, "2.2")
    client.wait_for_state("connected")
    assert server.is_left_alone_for(delay_s + 0.2)  # the planned attempt is gone
    assert client.statistic("attempts") == 2


def test_disconnect_during_the_wait_cancels_it(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, backoff_base_ms=1000, backoff_max_ms=30_000)
    first = established(server)
    client.wait_for_state("connected")
    first.send_close(4100)
    delay_s = client.wait_for_state("unavailable")["delay_ms"] / 1000
    client.do("disconnect")
    client.wait_for_state("disconnected")
    assert server.is_left_alone_for(delay_s + 0.2)


def test_disconnect_and_connect_leave_one_connection(server: ScriptedServer, connect: StartClient) -> None:
    """The old connection's late end must not touch the new one."""
    client = connect(server)
    client.do("subscribe", "orders", 0)
    first = established(server)
    first.join("orders")
    client.wait_for("subscribed")
    client.do("disconnect")
    client.do("connect")
    second = established(server, "2.2")
    second.join("orders")
    client.wait_for("subscribed")
    first.send_text(event("tick", "orders", "old"))  # nobody listens there any more
    first.close()
    second.send_text(event("tick", "orders", "new"))
    assert client.wait_for("event")["data"] == '"new"'
    assert server.is_left_alone_for(0.2)
    assert client.do("state")["state"] == "connected"
    assert len(client.all("event")) == 1


def test_cycles_leave_one_connection_and_one_handler(server: ScriptedServer, connect: StartClient) -> None:
    """REC-23: what was bound stays bound once, however often the client has connected."""
    client = connect(server)
    for number in range(1, 4):
        client.do("subscribe", "orders", 0)
        with established(server, f"{number}.1") as connection:
            connection.join("orders")
            client.wait_for("subscribed")
            client.do("disconnect")
            connection.expect_close(1000)
        client.wait_for_state("disconnected")
        client.do("connect")
    last = established(server, "4.1")
    last.join("orders")
    client.wait_for("subscribed")
    last.send_text(event("tick", "orders", 1), event("tock", "orders", 2))
    client.wait_for("event", event="tock")
    assert len(client.all("event", event="tick")) == 1
    client.wait_for_statistic("events_delivered", lambda value: value == 2)


def test_flapping_server_is_dialled_slowly(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, flap_guard=1)
    delays = []
    for number in range(1, 5):
        connection = established(server, f"{number}.1")
        client.wait_for_state("connected")
        connection.send_close(4200)
        delays.append(client.wait_for_state("unavailable")["delay_ms"])
        connection.close()
    # From the third short connection in a row: at least half of 2 s, then of 4 s, although 4200 says "at once".
    assert delays[:2] == [0, 0]
    assert delays[2] >= 1000
    assert delays[3] >= 2000


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize(
    ("end", "status"),
    [("answer", "BIRD_OK"), ("fin", "BIRD_OK"), ("reset", "BIRD_ERR_LOST"), ("silence", "BIRD_ERR_TIMEOUT")],
)
def test_close_says_whether_the_edge_answered(
    server: ScriptedServer, connect: StartClient, end: str, status: str
) -> None:
    client = connect(server)
    connection = established(server)
    client.wait_for_state("connected")

    def serve() -> None:
        assert connection.read_frame().close_code == 1000
        if end == "reset":
            connection.reset()
        elif end != "silence":
            connection.send(frame(CLOSE, b"\x03\xe8") if end == "answer" else b"")
            connection.close()

    edge = threading.Thread(target=serve)
    edge.start()
    assert client.call("close", 10_000)["status"] == status
    edge.join()


@pytest.mark.c_only("what is decided in the engine alone")
def test_close_under_a_flood(server: ScriptedServer, connect: StartClient) -> None:
    """An edge that never looks at what comes, and sends on: the close is not answered, and costs little."""
    client = connect(server)
    client.do("subscribe", "orders", 0)
    connection = established(server)
    connection.join("orders")
    client.wait_for("subscribed")
    flood = text(event("tick", "other", "x" * 200)) * 400
    is_over = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while not is_over.is_set():
                connection.socket.sendall(flood)

    edge = threading.Thread(target=serve)
    edge.start()
    try:
        assert client.call("close", 10_000)["status"] == "BIRD_ERR_TIMEOUT"
    finally:
        is_over.set()
        edge.join()
