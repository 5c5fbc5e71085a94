"""Pings, deadlines, and connections that are dead without saying so (Bird protocol §6)."""

from __future__ import annotations

import socket
import subprocess
import time

import pytest
from command_edge import CommandEdge
from conftest import StartClient
from paths import HARNESS, PROGRAMS
from scripted_server import DEADLINE_S, PONG, ScriptedServer, dump, event, frame, succeeded, text


def test_missing_pong_means_a_new_connection(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, activity_timeout_ms=1000, pong_timeout_ms=300)
    client.do("subscribe", "orders", 0)
    first = server.accept()
    first.establish("1.1", activity_timeout=60)  # the option is smaller and set, so it holds
    first.join("orders")
    client.wait_for("subscribed")
    first.expect({"event": "bird:ping"})
    lost = client.wait_for_state("unavailable")
    assert (lost["reason"], lost["delay_ms"]) == ("BIRD_ERR_TIMEOUT", 0)
    second = server.accept()
    second.establish("2.2")
    second.join("orders")
    client.wait_for("subscribed", is_resubscribe=1)
    second.send_text(event("tick", "orders", 2))
    assert client.wait_for("event")["data"] == "2"
    first.expect_end()


def test_server_value_of_the_activity_timeout_holds(server: ScriptedServer, connect: StartClient) -> None:
    connect(server)
    connection = server.accept()
    connection.establish(activity_timeout=1)
    start = time.monotonic()
    connection.expect({"event": "bird:ping"})
    assert 0.9 <= time.monotonic() - start < 10


def test_any_message_is_proof_of_life(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, pong_timeout_ms=3000)
    connection = server.accept()
    connection.establish(activity_timeout=1)
    for proof in (frame(PONG, b""), text({"event": "bird:pong"}), frame(1, b"not JSON"), frame(9, b"ping")):
        while (found := connection.read_frame()).opcode == PONG:
            pass  # the answer to the ping of the last round
        assert found.json == {"event": "bird:ping"}
        connection.send(proof)
    assert not client.all("state", current="unavailable")
    assert client.statistic("connects") == 1


def test_message_that_never_ends_meets_its_deadline(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, message_timeout_ms=400)
    connection = server.accept()
    connection.establish()
    client.wait_for_state("connected")
    connection.send(text(event("tick", "orders", "x" * 1000))[:50])
    assert client.wait_for_state("unavailable")["reason"] in ("BIRD_ERR_TIMEOUT", "BIRD_ERR_PROTOCOL")
    connection.expect_end()


def test_subscribe_without_an_answer_will_be_retried(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, answer_timeout_ms=300)
    client.do("subscribe", "orders", 0)
    connection = server.accept()
    connection.establish()
    connection.expect_subscribe("orders")
    failed = client.wait_for("subscription_error")
    assert (failed["error"], failed["will_retry"]) == ("BIRD_ERR_TIMEOUT", 1)
    connection.expect_subscribe("orders")
    connection.send_text(succeeded("orders"))
    client.wait_for("subscribed")


def test_answer_deadline_counts_from_the_written_frame(server: ScriptedServer, connect: StartClient) -> None:
    """The edge stops reading; what the client asks then has not been asked until the edge reads again."""
    server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client = connect(
        server, answer_timeout_ms=300, authorizer=1, client_event_bytes_max=100_000, outbound_bytes_max=32_000_000
    )
    client.do("subscribe", "private-a", 0)
    connection = server.accept()
    connection.establish()
    client.do("grant", client.wait_for("request")["request"], "key:sig")
    connection.join("private-a", auth="key:sig")
    client.wait_for("subscribed")
    for _ in range(200):  # more than any socket buffer
        client.do("trigger", "private-a", "client-x", dump("x" * 60_000).decode())
    client.do("subscribe", "orders", 0)
    assert server.is_left_alone_for(1.0)
    assert not client.all("subscription_error", channel="orders")
    wanted = {"event": "bird:subscribe", "data": {"channel": "orders"}}
    while connection.read_frame().json != wanted:
        pass
    failed = client.wait_for("subscription_error", channel="orders")
    assert (failed["error"], failed["will_retry"]) == ("BIRD_ERR_TIMEOUT", 1)


def test_signin_without_an_answer_fails_the_call(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, answer_timeout_ms=300, member_authorizer=1)
    connection = server.accept()
    connection.establish()
    client.wait_for_state("connected")
    client.do("signin", 5, 0)
    client.do("grant", client.wait_for("request")["request"], "key:sig", '{"member_id":"m_7"}')
    assert connection.read_frame().json["event"] == "bird:signin"
    assert client.wait_for("completion", tag=5)["status"] == "BIRD_ERR_TIMEOUT"


def test_drop_fails_a_waiting_signin(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, member_authorizer=1)
    with server.accept() as first:
        first.establish("1.1")
        client.do("signin", 5, 0)
        client.do("grant", client.wait_for("request")["request"], "key:one", '{"member_id":"m_7"}')
        assert first.read_frame().json["event"] == "bird:signin"
    assert client.wait_for("completion", tag=5)["status"] == "BIRD_ERR_LOST"
    second = server.accept()  # and it stays armed
    second.establish("2.2")
    request = client.wait_for("request")
    assert request["connection_id"] == "2.2"
    client.do("grant", request["request"], "key:two", '{"member_id":"m_7"}')
    second.expect({"event": "bird:signin", "data": {"auth": "key:two", "member_data": '{"member_id":"m_7"}'}})


def test_error_frame_is_reported_once_and_cancels_nothing(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    client.do("subscribe", "orders", 0)
    client.do("subscribe", "news", 0)
    connection = server.accept()
    connection.establish()
    connection.expect_subscribe("orders")
    connection.expect_subscribe("news")
    connection.send_text({"event": "bird:error", "data": {"code": None, "message": "something is wrong"}})
    connection.send_text(succeeded("orders"), succeeded("news"))
    client.wait_for("subscribed", channel="orders")
    client.wait_for("subscribed", channel="news")
    errors = client.all("error")
    assert [(error["error"], error["code"]) for error in errors] == [("BIRD_ERR_SERVER", 0)]
    assert "something is wrong" in errors[0]["message"]
    assert client.do("state")["state"] == "connected"


@pytest.mark.c_only("completion records")
def test_error_frame_denies_the_only_waiting_subscribe(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    client.do("subscribe", "orders", 9)
    connection = server.accept()
    connection.establish()
    connection.expect_subscribe("orders")
    start = time.monotonic()
    connection.send_text({"event": "bird:error", "data": {"code": None, "message": "bad signature"}})
    connection.expect({"event": "bird:ping"})
    denied = client.wait_for("subscription_error")
    assert 1.5 < time.monotonic() - start < 15  # there is no pong, and a success within 2 s would have won
    assert (denied["error"], denied["will_retry"]) == ("BIRD_ERR_DENIED", 0)
    assert "bad signature" in denied["message"]
    client.wait_for("completion", tag=9, status="BIRD_ERR_DENIED")
    assert len(client.all("error")) == 1
    assert connection.is_silent_for(0.3)
    client.do("subscribe", "orders", 0)
    connection.expect_subscribe("orders")


@pytest.mark.c_only("a program of its own")
@pytest.mark.parametrize("kind", ["signal", "late"])
@pytest.mark.parametrize("mode", ["thread", "queue", "loop", "host"])
def test_what_has_come_is_read_before_time_is_judged(mode: str, kind: str, command_edge: CommandEdge) -> None:
    """preload/waits.c: a wait ends after the deadline of a pong that has come meanwhile."""
    command = ["env", f"LD_PRELOAD={PROGRAMS / 'waits.so'}", str(HARNESS), "wait_that_overtakes_a_pong"]
    done = subprocess.run(
        [*command, command_edge.host, mode, kind], capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"
