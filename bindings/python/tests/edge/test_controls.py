"""Every control, from Python; `test_control_api.py` has them over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from raw_client import TIMEOUT_S, RawClient
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bird_realtime.testing import ConfigError, ConnectionInfo, ControlError, EdgeServer

Connect = Callable[[], RawClient]


def test_connections_and_channels(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    client.sign_in({"member_id": "m_7"})
    client.subscribe("presence-a", {"member_id": "m_7"})
    (connection,) = edge.connections()
    assert connection.connection_id == client.connection_id
    assert connection.channels == ("orders", "presence-a")
    assert connection.member_id == "m_7"
    assert 0 <= connection.age_s < TIMEOUT_S
    assert [(c.name, c.connection_count, c.member_ids) for c in edge.channels()] == [
        ("orders", 1, ()),
        ("presence-a", 1, ("m_7",)),
    ]


def test_journal(edge: EdgeServer, connect: Connect) -> None:
    first, second = connect(), connect()
    first.send("bird:ping")
    first.receive()
    assert [entry.kind for entry in edge.journal()] == ["upgrade", "opened", "upgrade", "opened", "received"]
    assert [entry.text for entry in edge.journal("received", first.connection_id)] == ['{"event": "bird:ping"}']
    assert edge.journal("received", second.connection_id) == []


@pytest.mark.parametrize("reset", [True, False])
def test_drop_connections(edge: EdgeServer, connect: Connect, reset: bool) -> None:
    dropped, kept = connect(), connect()
    assert edge.drop_connections(dropped.connection_id, reset=reset) == 1
    assert dropped.receive_close() == (1006, "")
    edge.wait_for_connections(1)
    assert kept.frames_so_far() == []
    assert edge.drop_connections() == 1
    assert edge.connections() == []
    edge.wait_for(lambda: [entry.text for entry in edge.journal("closed")] == ["1006", "1006"], what="both ends")


def test_a_reset_is_a_reset(edge: EdgeServer) -> None:
    with socket.create_connection((edge.host, edge.port), TIMEOUT_S) as stream:
        stream.sendall(
            f"GET /app/{edge.app_key}?protocol=7 HTTP/1.1\r\nHost: localhost\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        edge.wait_for_connections(1)
        edge.drop_connections()
        with pytest.raises(ConnectionResetError):
            list(iter(lambda: stream.recv(65536), b""))


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (4100, "over capacity"), (4999, "é" * 70)])
def test_close_connections(edge: EdgeServer, connect: Connect, code: int, reason: str) -> None:
    closed, kept = connect(), connect()
    closed.subscribe("orders")
    assert edge.close_connections(code, reason, connection_id=closed.connection_id) == 1
    assert edge.channels() == []
    assert closed.receive_close() == (code, reason[:61])
    assert kept.frames_so_far() == []


def test_close_without_a_code(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    edge.close_connections(1005)
    with pytest.raises(ConnectionClosed) as closed:
        client.socket.recv(timeout=TIMEOUT_S)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1005


def test_injection(edge: EdgeServer, connect: Connect) -> None:
    client, other = connect(), connect()
    assert edge.inject_text("not json", client.connection_id) == 1
    assert edge.inject_binary(b"\x00\xff", client.connection_id) == 1
    assert edge.inject_raw(b"\x81\x02hi", client.connection_id) == 1
    assert [client.socket.recv(timeout=TIMEOUT_S) for _ in range(3)] == ["not json", b"\x00\xff", "hi"]
    assert other.frames_so_far() == []
    assert edge.inject_text('{"event":"x"}') == 2
    assert client.receive() == other.receive() == {"event": "x"}
    edge.inject_raw(b"\xff\xff", other.connection_id)
    with pytest.raises(ConnectionClosed):
        other.socket.recv(timeout=TIMEOUT_S)


def test_a_message_larger_than_the_outbox_can_be_injected(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    text = "x" * (edge.config.outbox_limit_bytes + 1)
    edge.inject_text(text)
    assert client.receive_text() == text


def test_withheld_handshake(edge: EdgeServer) -> None:
    edge.withhold("handshake", times=1)
    with RawClient(edge) as silent, RawClient.greeted(edge):
        assert len(edge.connections()) == 2
        edge.inject_text('{"event":"bird:connection_established","data":{}}', edge.connections()[0].connection_id)
        assert silent.receive()["data"] == {}


def test_withheld_pong(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    edge.withhold("pong", times=1)
    client.send("bird:ping")
    client.subscribe("orders")
    assert client.frames_so_far() == []


def test_withheld_subscribe_of_one_channel(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    edge.withhold("subscribe", channel="private-a")
    client.send("bird:subscribe", client.subscribe_data("private-a"))
    assert client.subscribe("private-b")["channel"] == "private-b"
    assert [channel.name for channel in edge.channels()] == ["private-b"]
    edge.clear_faults()
    assert client.subscribe("private-a")["channel"] == "private-a"


def test_withheld_signin(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    edge.withhold("signin", times=1)
    client.send("bird:signin", {})
    assert client.frames_so_far() == []
    assert client.sign_in({"member_id": "m_7"})["event"] == "bird:signin_success"


@pytest.mark.parametrize("answer", ["handshake", "pong", "subscribe", "signin"])
def test_delayed_answers(edge: EdgeServer, answer: str) -> None:
    edge.delay(answer, 0.2, times=1)
    started = time.monotonic()
    with RawClient.greeted(edge) as client:
        client.subscribe("orders")
        client.sign_in({"member_id": "m_7"})
        client.frames_so_far()
        assert time.monotonic() - started >= 0.2


def test_a_delayed_request_of_a_gone_client_does_nothing(edge: EdgeServer) -> None:
    edge.delay("subscribe", 0.2, times=1)
    with RawClient.greeted(edge) as client:
        client.send("bird:subscribe", {"channel": "orders"})
        edge.wait_for_received("bird:subscribe")
    edge.wait_for_connections(0)
    with RawClient.greeted(edge) as later:
        edge.delay("pong", 0.3, times=1)
        assert later.frames_so_far() == []
    assert edge.channels() == []


@pytest.mark.parametrize("status", [404, 403, 500])
def test_upgrade_refused_over_http(edge: EdgeServer, status: int) -> None:
    edge.fail_http("upgrade", status=status, body="no", times=1)
    with pytest.raises(InvalidStatus) as refused:
        RawClient(edge)
    assert refused.value.response.status_code == status
    with RawClient.greeted(edge):
        pass
    assert [entry.kind for entry in edge.journal()][:3] == ["changed", "upgrade", "upgrade"]


def test_upgrade_redirected(edge: EdgeServer) -> None:
    edge.fail_http("upgrade", status=301, location="wss://elsewhere.example/app", times=1)
    with closing(http.client.HTTPConnection(edge.host, edge.port, timeout=TIMEOUT_S)) as connection:
        connection.request("GET", f"/app/{edge.app_key}?protocol=7", headers={"Upgrade": "websocket"})
        response = connection.getresponse()
        assert (response.status, response.getheader("location")) == (301, "wss://elsewhere.example/app")


def test_double_encoding(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    for on, data in ((False, {"a": 1}), (True, '{"a":1}')):
        edge.set_double_encoding(on)
        edge.publish("x", ["orders"], {"a": 1})
        assert json.loads(client.receive_text())["data"] == data


def test_strict(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.send("bird:unsubscribe", {"channel": "orders"})
    assert client.receive()["event"] == "bird:error"
    edge.set_strict(False)
    client.send("bird:unsubscribe", {"channel": "orders"})
    assert client.frames_so_far() == []


WRONG_USES: dict[str, Callable[[EdgeServer], Any]] = {
    "answer": lambda edge: edge.withhold("everything"),
    "channel": lambda edge: edge.withhold("pong", channel="a"),
    "times": lambda edge: edge.withhold("pong", times=0),
    "delay_s": lambda edge: edge.delay("pong", -1),
    "target": lambda edge: edge.fail_http("everything"),
    "status": lambda edge: edge.fail_http("auth", status=99),
    "wrong_signature": lambda edge: edge.fail_http("rest", wrong_signature=True),
    "connection_id": lambda edge: edge.drop_connections("1.2"),
    "code": lambda edge: edge.close_connections(999),
    "event": lambda edge: edge.publish("bird:x", ["a"]),
    "channels": lambda edge: edge.publish("x", ["a b"]),
    "data_json": lambda edge: edge.publish("x", ["a"], data_json="{"),
    "data": lambda edge: edge.publish("x", ["a"], "\ud83d"),
    "member_id": lambda edge: edge.disconnect_member("a b"),
    "seconds": lambda edge: edge.set_activity_timeout(0),
    "app_key": lambda edge: edge.revoke_key("unknown"),
    "key": lambda edge: edge.set_encryption_master_key(b"short"),
}


@pytest.mark.parametrize(("argument", "use"), WRONG_USES.items(), ids=WRONG_USES)
def test_wrong_use_names_the_argument(edge: EdgeServer, argument: str, use: Callable[[EdgeServer], Any]) -> None:
    with pytest.raises(ControlError, match=f"^{argument}: "):
        use(edge)


def test_one_string_is_no_list_of_channels(edge: EdgeServer) -> None:
    with pytest.raises(ControlError, match="not one string"):
        edge.publish("x", "orders")


def test_a_bad_app_record_names_the_field(edge: EdgeServer) -> None:
    edge.update_app(connection_counting=False)
    with pytest.raises(ConfigError, match="connection_counting"):
        edge.update_app(connection_count_events=True)


def test_waiting(edge: EdgeServer, connect: Connect) -> None:
    client = connect()
    client.subscribe("orders")
    client.sign_in({"member_id": "m_7"})
    expected = [client.connection_id]

    def ids(connections: list[ConnectionInfo]) -> list[str]:
        return [connection.connection_id for connection in connections]

    assert ids(edge.wait_for_connections(1)) == expected
    assert ids(edge.wait_for_subscription("orders")) == expected
    assert ids(edge.wait_for_signin("m_7")) == expected
    assert len(edge.wait_for_received("bird:signin")) == 1
    with pytest.raises(TimeoutError, match="waited 0.1 s for 2 subscriptions to orders.*" + client.connection_id):
        edge.wait_for_subscription("orders", 2, timeout_s=0.1)
