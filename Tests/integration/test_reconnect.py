"""Policies of reconnects, giving up, retrying now, and options of a living client (Bird protocol §7, §24)."""

from __future__ import annotations

import time

import pytest
from conftest import StartClient
from script_client import Record, ScriptClient
from scripted_server import Connection, ScriptedServer

LONG_MS = 86_400_000
CLOCK_S = 0.01  # the library counts in whole milliseconds, from when it was woken


def lose(server: ScriptedServer, client: ScriptClient) -> float:
    """A connection that is lost; when it was not yet."""
    connection = server.accept()
    connection.establish()
    client.wait_for_state("connected")
    before = hang_up(connection)
    client.wait_for("connection_lost")
    return before


def hang_up(connection: Connection) -> float:
    """An attempt that fails; when it had not yet."""
    before = time.monotonic()
    connection.close()
    return before


def planned(client: ScriptClient, attempt: int, policy: str) -> int:
    return int(client.wait_for("connecting_in", attempt=attempt, policy=policy)["delay_ms"])


def test_staged_attempts_come_when_they_were_announced(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, reconnect="staged", reconnect_stages="2x60,1x250")
    before = lose(server, client)
    for attempt, wait_ms in enumerate([60, 60, 250, 60, 60], 1):
        assert planned(client, attempt, "staged") == wait_ms
        connection = server.accept()
        assert time.monotonic() - before >= wait_ms / 1000 - CLOCK_S
        assert client.wait_for_state("connecting")["attempt"] == attempt
        before = hang_up(connection)
    assert len(client.all("connection_lost")) == 1
    server.accept().establish("2.2")
    assert client.wait_for_state("connected")["policy"] == ""


def test_an_attempt_outlasts_the_distance_of_attempts(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, reconnect="fixed", reconnect_delay_ms=30)
    lose(server, client)
    slow = server.accept()
    assert server.is_left_alone_for(0.3)
    slow.establish("2.2")
    client.wait_for_state("connected")
    assert client.statistic("attempts") == 2


def gave_up(client: ScriptClient, attempts: int) -> Record:
    error = client.wait_for("error", error="BIRD_ERR_GAVE_UP")
    end = client.wait_for_state("disconnected")
    assert end["reason"] == "BIRD_ERR_GAVE_UP"
    assert end["reason_text"].startswith(f"gave up after {attempts} attempts: ")
    assert error["message"] == end["reason_text"]
    return end


def test_it_gives_up_and_connect_begins_afresh(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, reconnect="fixed", reconnect_delay_ms=10, reconnect_attempts_max=3)
    client.do("subscribe", "orders", 0)
    lose(server, client)
    for _ in range(3):
        hang_up(server.accept())
    gave_up(client, 3)
    client.do("retry_now")
    assert server.is_left_alone_for(0.2)
    assert client.statistic("attempts") == 4
    client.do("connect")
    connection = server.accept()
    connection.establish("2.2")
    connection.join("orders")
    client.wait_for("subscribed")
    connection.close()
    for _ in range(3):
        hang_up(server.accept())
    gave_up(client, 3)


def test_a_session_that_was_replaced_stays_down(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, reconnect="fixed", reconnect_delay_ms=10, may_reconnect=1)
    connection = server.accept()
    connection.establish()
    client.wait_for_state("connected")
    connection.send_close(4009, "Member connections terminated")
    error = client.wait_for("error")
    assert (error["error"], error["code"], error["message"]) == (
        "BIRD_ERR_REFUSED",
        4009,
        "Member connections terminated",
    )
    failed = client.wait_for_state("failed")
    assert (failed["close_code"], failed["reason_text"]) == (4009, "Member connections terminated")
    client.do("retry_now")
    client.do("configure", "reconnect", "staged")
    assert server.is_left_alone_for(0.3)
    assert not client.all("request")
    assert not client.all("connecting_in")
    client.do("connect")
    server.accept().establish("2.2")
    client.wait_for_state("connected")


def test_retry_now_does_not_wait_and_asks_nobody(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, reconnect="staged", reconnect_stages=f"1x{LONG_MS},1x10", may_reconnect=1)
    lose(server, client)
    assert planned(client, 1, "staged") == LONG_MS
    client.do("retry_now")
    hang_up(server.accept())
    assert planned(client, 2, "staged") == LONG_MS, "the schedule begins again"
    client.do("retry_now")
    server.accept().establish("2.2")
    client.wait_for_state("connected")
    client.do("retry_now")
    assert server.is_left_alone_for(0.2)
    assert not client.all("request")


def test_what_is_planned_changes_with_the_options(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, reconnect="fixed", reconnect_delay_ms=LONG_MS)
    lose(server, client)
    assert planned(client, 1, "fixed") == LONG_MS
    client.do("configure", "reconnect_stages", f"1x1,1x20,1x{LONG_MS}")
    client.do("configure", "reconnect", "staged")
    assert planned(client, 1, "staged") <= 1
    hang_up(server.accept())
    assert planned(client, 2, "staged") == 20
    hang_up(server.accept())
    client.do("configure", "reconnect_attempts_max", 2)
    gave_up(client, 2)


@pytest.mark.parametrize(
    ("key", "value", "status", "says"),
    [
        ("region", "eu1", "BIRD_ERR_STATE", "fixed when the client is created"),
        ("reconnect", "sometimes", "BIRD_ERR_VALUE", "staged"),
        ("reconnect_stages", "5x3000,5y9000", "BIRD_ERR_VALUE", 'stage 2 is "5y9000"'),
        ("pong_misses_max", 0, "BIRD_ERR_VALUE", "from 1 to"),
        ("reconects", "fixed", "BIRD_ERR_OPTION", "reconects"),
    ],
)
def test_what_a_living_client_refuses(
    server: ScriptedServer, connect: StartClient, key: str, value: object, status: str, says: str
) -> None:
    client = connect(server)
    reply = client.call("configure", key, value)
    assert (reply["status"], reply["field"]) == (status, key)
    assert says in reply["message"]


def expect_pings(connection: Connection, count: int) -> None:
    for _ in range(count):
        connection.expect({"event": "bird:ping"})


def test_so_many_pings_are_missed(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(
        server, preset="staged", activity_timeout_ms=1000, pong_timeout_ms=300, pong_misses_max=3, reconnect="fixed"
    )
    first = server.accept()
    before = time.monotonic()
    first.establish(activity_timeout=60)
    expect_pings(first, 3)
    lost = client.wait_for_state("unavailable")
    silent = time.monotonic() - before
    assert (lost["reason"], lost["delay_ms"], lost["policy"]) == ("BIRD_ERR_TIMEOUT", 0, "fixed")
    assert "3 pings in a row" in lost["reason_text"]
    assert silent >= 1.0 + 3 * 0.3 - CLOCK_S
    server.accept().establish("2.2")
    client.wait_for_state("connected")
    first.expect_end()


def test_the_keep_alive_changes_at_once(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, reconnect="fixed", reconnect_delay_ms=10)
    first = server.accept()
    first.establish(activity_timeout=3600)
    client.wait_for_state("connected")
    client.do("configure", "activity_timeout_ms", 50)
    expect_pings(first, 1)
    client.do("configure", "pong_misses_max", 2)
    client.do("configure", "pong_timeout_ms", 100)
    expect_pings(first, 1)
    assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_TIMEOUT"
    client.do("configure", "activity_timeout_ms", 60_000)
    second = server.accept()
    second.establish("2.2", activity_timeout=3600)
    client.wait_for_state("connected")
