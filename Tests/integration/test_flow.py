"""Programs that do not keep up: what is kept and dropped, what they are told, and what becomes of the connection."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from certificates import Authority
from conftest import StartClient
from script_client import Record, ScriptClient
from scripted_server import (
    DEADLINE_S,
    PING,
    PONG,
    TEXT,
    Connection,
    ScriptedServer,
    dump,
    event,
    frame,
    text,
)

pytestmark = pytest.mark.c_only("the program decides when records are consumed")

WAYS = ["drain", "dispatch", "thread"]
RESERVED_RECORDS = 1024
# Of an event of these tests: its name, its data and what the library keeps beside them.
EVENT_BYTES = 1000


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.002)


def numbered(*numbers: int, pad: int = 0) -> bytes:
    return b"".join(text(event("tick", "orders", {"n": n, "pad": "x" * pad})) for n in numbers)


def numbers(client: ScriptClient) -> list[int]:
    return [json.loads(record["data"])["n"] for record in client.all("event", event="tick")]


def establish(server: ScriptedServer, client: ScriptClient) -> Connection:
    """A connection on which `orders` is subscribed."""
    client.do("subscribe", "orders", 0)
    connection = server.accept()
    connection.establish()
    connection.join("orders")
    client.wait_for("subscribed", channel="orders")
    return connection


def stop_consuming(client: ScriptClient, connection: Connection, way: str) -> None:
    """From now on nothing is consumed. In the pool one event is needed, in whose handler the program stands."""
    eventually(lambda: client.statistic("queue_records") == 0, "an empty queue")
    client.do("pause")
    if way == "thread":
        connection.send_text(event("gate", "orders", 0))
        eventually(lambda: client.statistic("queue_records") == 1, "a handler that waits")


def held(way: str) -> int:
    """Records that a consumer who stands still has taken already."""
    return 1 if way == "thread" else 0


def sends_all(client: ScriptClient, connection: Connection, stream: bytes) -> None:
    """Sends, and returns when the client has read everything and put it into its queue."""
    before = client.statistic("bytes_received")
    connection.send(stream)
    eventually(lambda: client.statistic("bytes_received") == before + len(stream), "everything was read")
    # Bytes are counted before they are worked on; this waits for the reactor to be through with them.
    client.do("flush", 10_000)


def all_consumed(client: ScriptClient) -> None:
    client.do("resume")
    eventually(lambda: client.statistic("queue_records") == client.statistic("queue_bytes") == 0, "an empty queue")


def overflow_errors(client: ScriptClient) -> list[Record]:
    return client.all("error", field="overflow")


# What is kept


@pytest.mark.parametrize("way", WAYS)
def test_drop_oldest_keeps_exactly_the_newest(server: ScriptedServer, connect: StartClient, way: str) -> None:
    client = connect(server, consume=way, overflow="drop-oldest", queue_records_max=100)
    connection = establish(server, client)
    stop_consuming(client, connection, way)
    for first in range(0, 5000, 250):
        sends_all(client, connection, numbered(*range(first, first + 250)))
    kept = 100 - 1 - held(way)  # the notice has a place too
    statistics = client.do("statistics")
    assert statistics["events_dropped"] == 5000 - kept
    assert statistics["queue_records"] == 100
    assert statistics["read_pauses"] == 0
    all_consumed(client)
    assert numbers(client) == list(range(5000 - kept, 5000))
    [notice] = overflow_errors(client)
    assert (notice["error"], notice["area"], notice["retriable"]) == ("BIRD_ERR_FULL", 2, 1)
    assert "drop-oldest" in notice["message"]
    assert "queue_records_max 100" in notice["message"]
    # The rest of the connection is as before.
    connection.send(numbered(5000))
    assert json.loads(client.wait_for("event", event="tick", data='{"n":5000,"pad":""}')["data"])["n"] == 5000


@pytest.mark.parametrize("way", WAYS)
def test_drop_newest_keeps_exactly_the_oldest(server: ScriptedServer, connect: StartClient, way: str) -> None:
    client = connect(server, consume=way, overflow="drop-newest", queue_records_max=100)
    connection = establish(server, client)
    stop_consuming(client, connection, way)
    for first in range(0, 5000, 250):
        sends_all(client, connection, numbered(*range(first, first + 250)))
    kept = 100 - held(way)
    statistics = client.do("statistics")
    assert statistics["events_dropped"] == 5000 - kept
    assert statistics["queue_records"] == 101  # the notice uses the reserved room
    assert statistics["read_pauses"] == 0
    all_consumed(client)
    assert numbers(client) == list(range(kept))
    [notice] = overflow_errors(client)
    assert "drop-newest" in notice["message"]
    connection.send(numbered(5000))
    client.wait_for("event", data='{"n":5000,"pad":""}')


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["drop-oldest", "drop-newest"])
def test_bound_in_bytes(server: ScriptedServer, connect: StartClient, way: str, policy: str) -> None:
    bound = 100_000
    client = connect(server, consume=way, overflow=policy, queue_bytes_max=bound)
    connection = establish(server, client)
    stop_consuming(client, connection, way)
    for first in range(0, 2000, 100):
        sends_all(client, connection, numbered(*range(first, first + 100), pad=EVENT_BYTES))
    statistics = client.do("statistics")
    waiting, dropped = statistics["queue_records"], statistics["events_dropped"]
    # One event more or less than the bound; the notice and the gate are small.
    assert bound - 1500 < statistics["queue_bytes"] < bound + 2500
    assert 2000 - dropped == waiting - 1 - held(way)
    all_consumed(client)
    kept = range(dropped, 2000) if policy == "drop-oldest" else range(2000 - dropped)
    assert numbers(client) == list(kept)
    assert len(overflow_errors(client)) == 1


@pytest.mark.parametrize("policy", ["drop-oldest", "drop-newest"])
def test_one_event_may_be_larger_than_the_queue(server: ScriptedServer, connect: StartClient, policy: str) -> None:
    client = connect(server, overflow=policy, queue_bytes_max=2000)
    connection = establish(server, client)
    for n in range(20):
        connection.send(numbered(n, pad=50_000))
        client.wait_for("event")
        eventually(lambda: client.statistic("queue_records") == 0, "an empty queue")
    assert client.statistic("events_dropped") == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bound", [{"queue_records_max": 100}, {"queue_bytes_max": 50_000}])
def test_pause_loses_nothing(server: ScriptedServer, connect: StartClient, way: str, bound: dict[str, int]) -> None:
    client = connect(server, consume=way, **bound)
    connection = establish(server, client)
    stop_consuming(client, connection, way)
    stream = numbered(*range(3000), pad=50)
    sent = connection.send_until_stalled(stream, stalled_for_s=0.3)
    eventually(lambda: client.statistic("read_pauses") == 1, "a pause")
    client.do("resume")
    connection.send(stream[sent:])
    client.wait_for("event", data=f'{{"n":2999,"pad":"{"x" * 50}"}}')
    assert numbers(client) == list(range(3000))
    all_consumed(client)
    assert client.statistic("events_dropped") == 0
    assert not overflow_errors(client)


# What is never dropped


@pytest.mark.parametrize("policy", ["drop-oldest", "drop-newest"])
@pytest.mark.parametrize("way", WAYS)
def test_records_of_other_kinds_survive_a_flood(
    server: ScriptedServer, connect: StartClient, way: str, policy: str
) -> None:
    client = connect(server, consume=way, overflow=policy, queue_records_max=50, authorizer=1)
    connection = establish(server, client)
    client.do("subscribe", "presence-lobby", 0)
    client.do("grant", client.wait_for("request")["request"], "key:signature", '{"member_id":"m_0"}')
    fields = {"auth": "key:signature", "member_data": '{"member_id":"m_0"}'}
    connection.join("presence-lobby", {"presence": {"ids": ["m_0"], "hash": {"m_0": None}, "count": 1}}, **fields)
    client.wait_for("subscribed", channel="presence-lobby")
    stop_consuming(client, connection, way)
    for n in range(1, 201):
        added = event("bird_internal:member_added", "presence-lobby", {"member_id": f"m_{n}"})
        count = event("bird_internal:connection_count", "orders", {"connection_count": n})
        sends_all(client, connection, numbered(*range(n * 20, n * 20 + 20)) + text(added) + text(count))
    client.do("subscribe", "orders", 7)  # completes at once
    connection.send_text({"event": "bird:error", "data": {"code": 4301, "message": "slow down"}})
    connection.send_text({"event": "bird:cache_miss", "channel": "orders"})
    assert client.statistic("events_dropped") > 3900
    all_consumed(client)
    assert [record["member_id"] for record in client.all("member_added")] == [f"m_{n}" for n in range(1, 201)]
    counts = [json.loads(record["data"])["connection_count"] for record in client.all("connection_count")]
    assert counts == list(range(1, 201))
    assert [record["tag"] for record in client.all("completion")] == [7]
    assert len(client.all("error", code=4301)) == 1
    client.wait_for("event", event="bird:cache_miss")
    assert client.do("roster", "presence-lobby")["members"] == " ".join(f"m_{n}" for n in range(201))
    assert numbers(client) == sorted(numbers(client))


def test_events_and_others_keep_their_order(server: ScriptedServer, connect: StartClient) -> None:
    """With drop-oldest they lie apart; what is kept of them comes as it came."""
    client = connect(server, overflow="drop-oldest", queue_records_max=1000)
    connection = establish(server, client)
    client.do("pause")
    stream = b""
    for n in range(700):
        stream += numbered(*([n] * (n % 5)))
        stream += text(event("bird_internal:connection_count", "orders", {"connection_count": n}))
    sends_all(client, connection, stream)
    assert client.statistic("events_dropped") > 0
    all_consumed(client)
    lines = [
        next(iter(json.loads(line["data"]).values()))
        for line in client.everything()
        if line["record"] in ("event", "connection_count")
    ]
    assert lines == sorted(lines)
    assert numbers(client) == [n for n in range(700) for _ in range(n % 5)][-len(numbers(client)) :]


# Episodes


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["drop-oldest", "drop-newest"])
def test_each_episode_is_told_once(server: ScriptedServer, connect: StartClient, way: str, policy: str) -> None:
    client = connect(server, consume=way, overflow=policy, queue_records_max=50)
    connection = establish(server, client)
    for episode in range(1, 4):
        stop_consuming(client, connection, way)
        for _ in range(3):
            sends_all(client, connection, numbered(*range(200)))
        all_consumed(client)
        assert len(overflow_errors(client)) == episode
    assert client.statistic("read_pauses") == 0


# The reserved room


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", ["pause", "drop-oldest", "drop-newest"])
def test_reading_pauses_when_the_reserved_room_is_full(
    server: ScriptedServer, connect: StartClient, way: str, policy: str
) -> None:
    client = connect(server, consume=way, overflow=policy, queue_records_max=50)
    connection = establish(server, client)
    stop_consuming(client, connection, way)
    connection.send(text(event("bird_internal:connection_count", "orders", {"connection_count": 1})) * 3000)
    eventually(lambda: client.statistic("read_pauses") == 1, "a pause")
    assert client.statistic("queue_records") == 50 + (0 if policy == "pause" else RESERVED_RECORDS)
    client.do("resume")
    for _ in range(3000):
        client.wait_for("connection_count")
    all_consumed(client)
    connection.send(numbered(1))
    client.wait_for("event", data='{"n":1,"pad":""}')


def test_calls_that_promise_records_are_refused_when_the_reserved_room_is_full(
    server: ScriptedServer, connect: StartClient
) -> None:
    client = connect(server, queue_records_max=50)
    connection = establish(server, client)
    client.do("pause")
    accepted = 0
    while (refused := client.call("subscribe", "orders", accepted + 1))["status"] == "BIRD_OK":
        accepted += 1
        assert accepted <= 50 + RESERVED_RECORDS
    assert accepted == 50 + RESERVED_RECORDS
    assert (refused["status"], refused["field"], refused["retriable"]) == ("BIRD_ERR_FULL", "queue_records_max", 1)
    assert client.call("subscribe", "news", 9999)["status"] == "BIRD_ERR_FULL"
    assert client.call("connect")["status"] == "BIRD_ERR_FULL"
    client.do("subscribe", "orders", 0)  # promises nothing
    all_consumed(client)
    assert [record["tag"] for record in client.all("completion")] == list(range(1, accepted + 1))
    client.do("subscribe", "news", 9999)
    connection.join("news")
    client.wait_for("completion", tag=9999)


@pytest.mark.parametrize("way", WAYS)
def test_attempts_and_questions_wait_for_a_program_that_has_stopped(
    server: ScriptedServer, connect: StartClient, way: str
) -> None:
    """A server that comes and goes for months does not fill the memory of a program that consumes nothing."""
    client = connect(server, consume=way, queue_records_max=20, backoff_base_ms=1, backoff_max_ms=2)
    connection = establish(server, client)
    stop_consuming(client, connection, way)
    connection.close()
    dials = 0
    while not server.is_left_alone_for(0.5) or client.statistic("queue_records") < 20:  # it may be slow
        dials += 1
        assert dials < 60, "the client keeps trying"
    assert client.statistic("queue_records") < 30
    attempts = client.statistic("attempts")
    all_consumed(client)
    server.accept().establish("3.3")
    client.wait_for("state", connection_id="3.3")
    assert client.statistic("attempts") > attempts


def test_authorizer_is_not_asked_again_and_again(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, authorizer=1, auth_timeout_ms=20, queue_records_max=20)
    connection = establish(server, client)
    client.do("pause")
    for n in range(8):
        client.do("subscribe", f"private-{n}", 0)
    eventually(lambda: client.statistic("queue_records") >= 20, "a full queue")
    asked = client.statistic("authorizations")
    assert connection.is_silent_for(0.5)
    assert client.statistic("authorizations") - asked <= 8
    all_consumed(client)
    eventually(lambda: client.statistic("authorizations") > asked + 8, "to be asked again")


# Paused, and the connection


def fills(client: ScriptClient, connection: Connection, count: int = 30) -> None:
    """Sends events, of which the client can keep but a few: the others wait inside it, and none in the socket."""
    sends_all(client, connection, numbered(*range(count)))
    eventually(lambda: client.statistic("read_pauses") == 1, "a pause")


@pytest.fixture
def edge(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[ScriptedServer, dict[str, str | int]]]:
    """A server, and the options for it."""
    if request.param == "plain":
        with ScriptedServer() as server:
            yield server, {}
    else:
        authority = Authority(tmp_path / "ca")
        with ScriptedServer(authority.server_context("IP:127.0.0.1")) as server:
            yield server, {"allow_insecure": 0, "ca_file": str(authority.file)}


Edge = tuple[ScriptedServer, dict[str, "str | int"]]
EDGES = pytest.mark.parametrize("edge", ["plain", "tls"], indirect=True)
# How records are consumed makes no difference to what the bytes came through.
EDGES_AND_WAYS = pytest.mark.parametrize(
    ("edge", "way"), [*(("plain", way) for way in WAYS), ("tls", "drain")], indirect=["edge"]
)
WATCHFUL = {"activity_timeout_ms": 300, "pong_timeout_ms": 1500, "queue_records_max": 10}


@EDGES_AND_WAYS
def test_dead_edge_is_found_while_paused(edge: Edge, connect: StartClient, way: str) -> None:
    server, options = edge
    client = connect(server, consume=way, **WATCHFUL, **options)
    connection = establish(server, client)
    stop_consuming(client, connection, way)
    fills(client, connection)
    connection.expect({"event": "bird:ping"})
    connection.expect_end()  # no pong, so it is given up
    assert server.is_left_alone_for(0.3)  # a new one would find no room
    client.do("resume")
    lost = client.wait_for("state", current="unavailable")
    assert (lost["reason"], lost["previous"]) == ("BIRD_ERR_TIMEOUT", "connected")
    client.wait_for("connection_lost")
    # What had come is there, before the loss.
    kinds = [line["record"] for line in client.everything()]
    assert numbers(client) == list(range(30))
    assert kinds.index("connection_lost") > len(kinds) - 1 - kinds[::-1].index("event")
    second = server.accept()
    second.establish("2.2")
    second.join("orders")
    again = client.wait_for("subscribed")
    assert again["is_resubscribe"] == 1
    assert again["interrupted_ms"] > 0
    all_consumed(client)


@EDGES_AND_WAYS
def test_edge_that_has_sent_is_alive_while_paused(edge: Edge, connect: StartClient, way: str) -> None:
    server, options = edge
    client = connect(server, consume=way, **WATCHFUL, **options)
    connection = establish(server, client)
    stop_consuming(client, connection, way)
    fills(client, connection)
    start = time.monotonic()
    for _ in range(5):  # each interval one ping, whether or not anybody reads the pongs
        connection.expect({"event": "bird:ping"})
        connection.send_text({"event": "bird:pong"})
    assert time.monotonic() - start > 1.0
    assert client.do("state")["state"] == "connected"
    client.do("resume")
    connection.send(numbered(30))
    client.wait_for("event", data='{"n":30,"pad":""}')
    assert numbers(client) == list(range(31))
    assert client.statistic("connects") == 1


def test_unread_bytes_suspend_the_pong_deadline(server: ScriptedServer, connect: StartClient) -> None:
    """An edge that is not read cannot answer; what it has sent says that it lives."""
    stream = numbered(*range(20_000), pad=500)
    client = connect(server, **WATCHFUL)
    connection = establish(server, client)
    client.do("pause")
    sent = connection.send_until_stalled(stream, stalled_for_s=0.2)
    assert sent < len(stream)
    for _ in range(4):
        connection.expect({"event": "bird:ping"})
    assert client.do("state")["state"] == "connected"
    client.do("resume")
    connection.send(stream[sent:])
    eventually(lambda: client.statistic("events_delivered") == 20_000, "all events")
    all_consumed(client)
    assert numbers(client) == list(range(20_000))
    assert client.statistic("connects") == 1


@EDGES
@pytest.mark.parametrize("end", ["close", "reset", "close frame"])
def test_edge_that_closes_a_slow_reader(edge: Edge, connect: StartClient, end: str) -> None:
    """What it sent before comes, then the loss, and the next success says how long events may have been missed."""
    server, options = edge
    client = connect(server, **WATCHFUL, **options)
    connection = establish(server, client)
    client.do("pause")
    fills(client, connection)
    connection.send(numbered(*range(30, 60)))
    if end == "close frame":
        connection.send_close(4200, "too slow")
    if end == "reset":
        connection.reset()
    else:
        connection.close()
    # Long enough for pings, which the system refuses to send.
    assert server.is_left_alone_for(0.8)
    assert client.do("state")["state"] == "connected"
    client.do("resume")
    lost = client.wait_for("state", current="unavailable")
    assert numbers(client) == list(range(60))
    assert lost["close_code"] == (4200 if end == "close frame" else 0)
    second = server.accept()
    second.establish("2.2")
    second.join("orders")
    again = client.wait_for("subscribed")
    assert again["is_resubscribe"] == 1
    assert again["interrupted_ms"] > 0


def test_answer_that_nobody_reads_is_not_missing(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, answer_timeout_ms=1000, queue_records_max=10)
    connection = establish(server, client)
    client.do("pause")
    fills(client, connection)
    client.do("subscribe", "news", 5)
    connection.join("news")
    assert connection.is_silent_for(2.0)  # no second subscribe
    client.do("resume")
    client.wait_for("subscribed", channel="news")
    client.wait_for("completion", tag=5, status="BIRD_OK")
    assert not client.all("subscription_error")


# Messages


def test_messages_over_the_limit_do_not_come_in_quick_succession(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, message_bytes_max=1024, flap_guard=1, backoff_base_ms=1)
    delays = []
    for _ in range(3):
        connection = server.accept()
        connection.establish()
        client.wait_for_state("connected")
        connection.send(frame(TEXT, b"x" * 2000))
        connection.expect_close(1009)
        delays.append(client.wait_for_state("unavailable")["delay_ms"])
    assert max(delays[:2]) <= 2
    assert 1000 <= delays[2] <= 2000
    assert all("1024" in error["message"] and error["error"] == "BIRD_ERR_SIZE" for error in client.all("error"))
    assert len(client.all("error")) == 3


def test_slow_sender_of_a_message_is_cut(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, message_timeout_ms=500)
    connection = establish(server, client)
    message = numbered(1, pad=5000)
    start = time.monotonic()
    with contextlib.suppress(ConnectionError):
        for at in range(len(message) - 1):
            connection.send(message[at : at + 1])  # each byte is a sign of life, the message does not come all the same
            if not connection.is_silent_for(0.01):
                break
    assert 0.4 < time.monotonic() - start < 20
    [error] = client.all("error") or [client.wait_for("error")]
    assert (error["error"], error["field"]) == ("BIRD_ERR_TIMEOUT", "message_timeout_ms")
    assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_TIMEOUT"


def test_pings_in_pieces_are_no_message_that_never_ends(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, message_timeout_ms=2000)
    connection = establish(server, client)
    ping = frame(PING, b"12345678")
    start = time.monotonic()
    while time.monotonic() - start < 3.0:
        connection.send(ping[:5])
        assert connection.is_silent_for(0.02)  # so that the client meets the pieces one by one
        connection.send(ping[5:])
        assert connection.read_frame().opcode == PONG
    assert not client.all("state", current="unavailable")
    assert client.statistic("connects") == 1


@pytest.mark.parametrize("shape", ["cut", "fragments"])
def test_time_while_paused_is_not_the_messages(server: ScriptedServer, connect: StartClient, shape: str) -> None:
    client = connect(server, message_timeout_ms=1500, queue_records_max=10)
    connection = establish(server, client)
    client.do("pause")
    whole = dump(event("tick", "orders", {"n": 30, "pad": ""}))
    late = frame(TEXT, whole)
    if shape == "fragments":
        late = frame(TEXT, whole[:10], fin=False) + frame(0, whole[10:])
    sends_all(client, connection, numbered(*range(30)) + late[:20])
    assert connection.is_silent_for(2.0)  # longer than its time
    client.do("resume")
    client.wait_for("event", data='{"n":29,"pad":""}')
    connection.send(late[20:])
    client.wait_for("event", data='{"n":30,"pad":""}')
    assert client.statistic("connects") == 1


def test_time_while_paused_is_not_that_of_the_message_that_waits(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, message_timeout_ms=1500, queue_records_max=10)
    connection = establish(server, client)
    client.do("pause")
    last = numbered(10)
    sends_all(client, connection, numbered(*range(10)) + last[:20])
    connection.send(last[20:])  # complete in time, and finds the queue full
    eventually(lambda: client.statistic("read_pauses") == 1, "a pause")
    assert connection.is_silent_for(2.0)
    client.do("resume")
    client.wait_for("event", data='{"n":10,"pad":""}')
    assert client.statistic("connects") == 1


def test_slow_sender_is_cut_after_a_pause_too(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, message_timeout_ms=400, queue_records_max=10)
    connection = establish(server, client)
    client.do("pause")
    sends_all(client, connection, numbered(*range(30)) + numbered(30)[:20])
    client.do("resume")
    assert client.wait_for_state("unavailable")["reason"] == "BIRD_ERR_TIMEOUT"
    connection.expect_end()
