"""Every counter and gauge of bird_statistics moves, and is seen by both faces."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path

import pytest
from command_edge import CommandEdge
from conftest import StartClient
from paths import HEADER
from scripted_server import ScriptedServer, event, refusing_port, succeeded, text


def test_what_is_received(server: ScriptedServer, start: StartClient) -> None:
    client = start(server)
    names = ("bytes_received", "messages_received", "events_delivered", "frames_malformed", "frames_unroutable")
    assert [client.statistic(name) for name in names] == [0] * 5
    client.do("connect")
    connection = server.accept()
    connection.establish()
    client.do("subscribe", "orders", 0)
    connection.join("orders")
    client.wait_for("subscribed")
    client.wait_for_statistic("messages_received", lambda value: value == 2)
    bytes_before = client.statistic("bytes_received")
    message = event("tick", "orders", 1)
    connection.send_text(message, event("tick", "strangers", 1), "no object", message)
    client.wait_for_statistic("events_delivered", lambda value: value == 2)
    assert client.statistic("frames_malformed") == 1
    assert client.statistic("frames_unroutable") == 1
    client.wait_for_statistic("messages_received", lambda value: value == 6)
    assert client.statistic("bytes_received") >= bytes_before + 2 * len(text(message))


def test_what_is_sent(server: ScriptedServer, auth: ScriptedServer, start: StartClient) -> None:
    client = start(server, authorizer=1)
    client.do("connect")
    connection = server.accept()
    connection.establish()
    client.wait_for_state("connected")
    bytes_before = client.statistic("bytes_sent")
    assert bytes_before > 100  # the upgrade: counted before its answer was read
    assert client.statistic("messages_sent") == 0
    client.do("subscribe", "private-room", 0)
    client.do("grant", client.wait_for("request")["request"], "key:signature")
    connection.join("private-room", auth="key:signature")
    client.wait_for("subscribed")
    client.do("trigger", "private-room", "client-tick", "1")
    connection.read_frame()
    assert client.statistic("messages_sent") == 2
    client.wait_for_statistic("bytes_sent", lambda value: value > bytes_before + 100)
    assert client.statistic("authorizations") == 1


def test_client_events_that_wait(server: ScriptedServer, start: StartClient) -> None:
    server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)  # else it grows with what is read
    client = start(server, authorizer=1, client_event_bytes_max=100_000, outbound_bytes_max=32_000_000)
    client.do("connect")
    connection = server.accept()
    connection.establish()
    client.do("subscribe", "private-room", 0)
    client.do("grant", client.wait_for("request")["request"], "key:signature")
    connection.join("private-room", auth="key:signature")
    client.wait_for("subscribed")
    assert client.statistic("outbound_bytes") == 0
    payload = json.dumps("x" * 60_000)
    # Nobody reads: the buffers of the sockets fill first.
    waiting = 0
    while client.statistic("outbound_bytes") < 50_000:
        client.do("trigger", "private-room", "client-tick", payload)
        waiting += 1
    for _ in range(waiting):
        connection.read_frame()
    client.wait_for_statistic("outbound_bytes", lambda value: value == 0)
    for _ in range(300):  # more than the buffers of the sockets take
        client.do("trigger", "private-room", "client-tick", payload)
    assert client.statistic("client_events_lost") == 0
    connection.close()
    client.wait_for_statistic("client_events_lost", lambda value: value >= 5)
    assert client.statistic("outbound_bytes") == 0


def test_connections(server: ScriptedServer, start: StartClient) -> None:
    client = start(server)
    client.do("connect")
    server.accept().establish()
    client.wait_for_state("connected")
    assert [client.statistic(name) for name in ("attempts", "connects", "reconnects", "connections_lost")] == [
        *(1, 1, 0, 0)
    ]
    first = client.wait_for_statistic("connected_ms", lambda value: value > 50)
    assert client.statistic("connected_total_ms") >= first
    client.do("disconnect")
    client.wait_for_state("disconnected")
    assert client.statistic("connected_ms") == 0
    total = client.statistic("connected_total_ms")
    assert total >= first
    client.do("connect")
    second = server.accept()
    second.establish()
    client.wait_for_state("connected")
    assert client.statistic("connected_ms") <= client.statistic("connected_total_ms") - total
    second.close()
    server.accept().establish("3.3")
    client.wait_for_state("unavailable")
    client.wait_for_state("connected")
    assert [client.statistic(name) for name in ("attempts", "connects", "reconnects", "connections_lost")] == [
        *(3, 3, 2, 1)
    ]
    client.wait_for_statistic("connected_total_ms", lambda value: value > total)


def test_attempts_without_a_connection(server: ScriptedServer, start: StartClient) -> None:
    with refusing_port() as port:
        client = start(server, ws_host=f"127.0.0.1:{port}")
        client.do("connect")
        client.wait_for_statistic("attempts", lambda value: value >= 3)
        names = ("connects", "reconnects", "connections_lost", "connected_ms", "connected_total_ms")
        assert [client.statistic(name) for name in names] == [0] * 5


def test_pings(server: ScriptedServer, start: StartClient) -> None:
    client = start(server, pong_timeout_ms=2000)
    client.do("connect")
    connection = server.accept()
    connection.establish(activity_timeout=1)
    client.wait_for_state("connected")
    names = ("pings_sent", "pongs_missed", "round_trip_us")
    assert [client.statistic(name) for name in names] == [0, 0, 0]
    connection.expect({"event": "bird:ping"})
    pinged = time.monotonic()
    time.sleep(0.05)  # the round trip that is to be measured
    connection.send_text({"event": "bird:pong"})
    trip_us = client.wait_for_statistic("round_trip_us", lambda value: value > 0)
    assert 40_000 < trip_us < (time.monotonic() - pinged) * 1e6 + 1_900_000
    assert [client.statistic(name) for name in names[:2]] == [1, 0]
    connection.expect({"event": "bird:ping"})
    client.wait_for_state("unavailable")
    assert [client.statistic(name) for name in names] == [2, 1, trip_us]


def test_authorizations(server: ScriptedServer, auth: ScriptedServer, start: StartClient) -> None:
    client = start(server, auth_endpoint=f"http://{auth.host}/auth")
    client.do("connect")
    server.accept().establish()
    client.do("subscribe", "private-a", 0)
    denied = auth.accept()
    denied.read_post()
    denied.respond(403)
    client.wait_for("subscription_error", will_retry=0)
    assert [client.statistic(name) for name in ("authorizations", "authorization_failures")] == [1, 1]


def test_authorizations_without_an_answer(server: ScriptedServer, auth: ScriptedServer, start: StartClient) -> None:
    client = start(server, auth_endpoint=f"http://{auth.host}/auth", auth_timeout_ms=300)
    client.do("connect")
    server.accept().establish()
    client.do("subscribe", "private-b", 0)
    auth.accept().read_post()
    client.wait_for_statistic("authorization_failures", lambda value: value >= 1)
    client.wait_for_statistic("authorizations", lambda value: value >= 2)


def test_channels(server: ScriptedServer, start: StartClient) -> None:
    client = start(server)
    client.do("subscribe", "orders", 0)
    client.do("subscribe", "news", 0)
    assert [client.statistic(name) for name in ("channels", "channels_subscribed")] == [2, 0]
    client.do("connect")
    connection = server.accept()
    connection.establish()
    connection.read_frame()
    connection.send_text(succeeded("orders"))
    client.wait_for("subscribed")
    assert [client.statistic(name) for name in ("channels", "channels_subscribed")] == [2, 1]
    client.do("unsubscribe", "news")
    assert [client.statistic(name) for name in ("channels", "channels_subscribed")] == [1, 1]


@pytest.mark.c_only("the Python package has a thread that always empties its queue")
def test_queue(command_edge: CommandEdge, server: ScriptedServer, start: StartClient) -> None:
    client = start(server)
    client.do("connect")
    connection = server.accept()
    connection.establish()
    client.do("subscribe", "orders", 0)
    connection.join("orders")
    client.wait_for("subscribed")
    assert [client.statistic(name) for name in ("queue_records", "queue_bytes")] == [0, 0]
    client.do("pause")
    connection.send_text(*[event("tick", "orders", number) for number in range(10)])
    client.wait_for_statistic("queue_records", lambda value: value == 10)
    assert client.statistic("queue_bytes") > 500
    client.do("resume")
    for number in range(10):
        assert client.wait_for("event")["data"] == str(number)
    client.wait_for_statistic("queue_bytes", lambda value: value == 0)


@pytest.mark.c_only("it reads sources")
def test_every_field_is_moved_by_a_test() -> None:
    """Here, or where the thing that it counts is tested."""
    fields = re.findall(
        r"uint64_t (\w+);", HEADER.read_text().partition("struct bird_statistics {")[2].partition("}")[0]
    )
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert len(fields) > 25
    assert [field for field in fields if f'"{field}"' not in sources] == []
