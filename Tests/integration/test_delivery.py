"""What reaches the program, however the bytes come."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import StartClient
from script_client import ScriptClient
from scripted_server import (
    BINARY,
    CONTINUATION,
    PING,
    PONG,
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


def joined(server: ScriptedServer, client: ScriptClient) -> Connection:
    """A connection on which `orders` is subscribed."""
    client.do("subscribe", "orders", 0)
    connection = server.accept()
    connection.establish()
    connection.join("orders")
    client.wait_for("subscribed", channel="orders")
    return connection


def test_bytes_behind_the_101_are_not_lost(server: ScriptedServer, connect: StartClient) -> None:
    """In one write with the 101, on 500 connections, cut at a different byte each time."""
    client = connect(server, backoff_base_ms=1)
    client.do("subscribe", "orders", 0)
    for number in range(1, 501):
        first = text(handshake(f"{number}.1"))
        cut = number % (len(first) + 1)
        with server.accept() as connection:
            connection.upgrade(first[:cut])
            connection.send(first[cut:] + frame(PING, b"%d" % number))
            answers = [connection.read_frame(), connection.read_frame()]
            assert sorted(answer.opcode for answer in answers) == [TEXT, PONG]
            assert b"%d" % number in [answer.payload for answer in answers]
        assert client.wait_for_state("connected")["connection_id"] == f"{number}.1"


def test_byte_by_byte(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    client.do("subscribe", "orders", 0)
    connection = server.accept()
    connection.read_request()
    connection.send_bytewise(connection.switching_protocols() + text(handshake()))
    connection.expect_subscribe("orders")
    data = {"text": "é\U0001f426 " * 40}
    connection.send_bytewise(text(succeeded("orders")) + frame(PING, b"now") + text(event("tick", "orders", data)))
    assert connection.read_frame().payload == b"now"
    assert json.loads(client.wait_for("event")["data"]) == data


def test_fragments_with_pings_between(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = joined(server, client)
    whole = dump(event("tick", "orders", {"text": "é\U0001f426\U0001f426é"}))
    for size in (1, 2, 3, 7, len(whole)):
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        stream = frame(TEXT, pieces[0], fin=False) + frame(PING, b"a")
        for piece in pieces[1:]:
            stream += frame(CONTINUATION, piece, fin=False) + frame(PING, b"") + frame(PONG, b"")
        connection.send(stream + frame(CONTINUATION, b""))  # an empty end counts too
        assert connection.read_frame().payload == b"a"
        for _ in pieces[1:]:
            assert connection.read_frame().opcode == PONG
        assert json.loads(client.wait_for("event")["data"]) == {"text": "é\U0001f426\U0001f426é"}


@pytest.mark.parametrize("size", [125, 126, 15 << 10, (16 << 10) + 1, 65535, 65536, 65537, 1 << 20, 8 << 20])
def test_size_of_a_message(server: ScriptedServer, connect: StartClient, size: int) -> None:
    client = connect(server)
    connection = joined(server, client)
    shell = len(dump(event("tick", "orders", "")))
    data = "".join(chr(97 + index * index % 26) for index in range(997)) * (size // 997 + 1)
    data = data[: size - shell]
    message = dump(event("tick", "orders", data))
    assert len(message) == size
    connection.send(frame(TEXT, message) + text(event("tock", "orders", 1)))
    assert client.wait_for("event", event="tick")["data"] == json.dumps(data)
    client.wait_for("event", event="tock")


@pytest.mark.parametrize("seed", range(4))
def test_many_events_in_odd_pieces(server: ScriptedServer, connect: StartClient, seed: int) -> None:
    client = connect(server)
    connection = joined(server, client)
    stream = b"".join(text(event("tick", "orders", {"n": n, "pad": "x" * (n * 37 % 500)})) for n in range(2000))
    at, step = 0, seed
    while at < len(stream):
        step = (step * 1103515245 + 12345) % 2**31
        size = 1 + step % 4096
        connection.send(stream[at : at + size])
        at += size
    for n in range(2000):
        assert json.loads(client.wait_for("event")["data"])["n"] == n


@pytest.mark.c_only("what is decided in the engine alone")
@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{",
        b"[]",
        b'"tick"',
        b"{}",
        b'{"event":5}',
        b'{"channel":"orders"}',
        b'{"event":"tick","channel":"orders"}}',
        b'{"event":"tick"}{"event":"tick"}',
        b'{"event":"\\ud800","channel":"orders"}',
        b'{"event":"tick","channel":"orders","data":"\\udfff"}',
        b"[" * 600,
        b"[" * 65536,
        b"null",
        b"[1,2]",
    ],
    ids=lambda message: message[:40].decode(),
)
def test_malformed_messages_are_counted_and_nothing_more(
    server: ScriptedServer, connect: StartClient, message: bytes
) -> None:
    client = connect(server)
    connection = joined(server, client)
    connection.send(frame(TEXT, message) + text(event("tock", "orders", 1)))
    client.wait_for("event", event="tock")
    assert client.statistic("frames_malformed") == 1
    assert len(client.all("event")) == 1


@pytest.mark.parametrize(
    ("message", "name", "data"),
    [
        (b'{"event":"a","channel":"x","data":1,"event":"tick","channel":"orders","data":2}', "tick", "2"),
        (b' {\n"data" : {"event":"no"} ,\t"channel":"orders","event":"tick" } ', "tick", '{"event":"no"}'),
        (b'{"\\u0065vent":"tick","ch\\u0061nnel":"\\u006frders","d\\u0061ta":[1, 2]}', "tick", "[1, 2]"),
        (b'{"event":"tick","channel":"orders","data":1.10,"user_id":"m_1","x":{"y":[null]}}', "tick", "1.10"),
        (b'{"event":"","channel":"orders","data":0}', "", "0"),
        ('{"event":"é\\n","channel":"orders","data":"\\"a\\""}'.encode(), "é\n", '"a"'),
        (b'{"event":"bird:cache_miss","channel":"orders"}', "bird:cache_miss", ""),
    ],
)
def test_unusual_messages_are_understood(
    server: ScriptedServer, connect: StartClient, message: bytes, name: str, data: str
) -> None:
    client = connect(server)
    connection = joined(server, client)
    connection.send(frame(TEXT, message))
    found = client.wait_for("event")
    assert (found["event"], found["data"]) == (name, data)
    assert client.statistic("frames_malformed") == 0


def test_a_binary_message_is_read_as_text(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = joined(server, client)
    connection.send(frame(BINARY, dump(event("tick", "orders", 1))) + frame(BINARY, b"no JSON"))
    assert client.wait_for("event", event="tick")["data"] == "1"
    connection.send_text(event("tock", "orders", 2))
    client.wait_for("event", event="tock")
    assert client.statistic("frames_malformed") == 1


def test_events_of_other_channels_are_not_delivered(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server)
    connection = joined(server, client)
    connection.send_text(
        event("tick", "order", 1),
        event("tick", "ORDERS", 1),
        event("tick", "#server-to-user-m_7", 1),
        {"event": "tick"},
        {"event": "bird_internal:whatever", "channel": "orders"},
        event("tock", "orders", 1),
    )
    client.wait_for("event", event="tock")
    assert len(client.all("event")) == 1
    assert client.statistic("frames_unroutable") >= 3


@pytest.mark.c_only("the program decides when the queue is drained")
def test_slow_consumer_pauses_reading_and_loses_nothing(server: ScriptedServer, connect: StartClient) -> None:
    bound_bytes = 256 * 1024
    client = connect(server, queue_bytes_max=bound_bytes)
    connection = joined(server, client)
    client.do("pause")
    pad = "x" * 1000
    stream = b"".join(text(event("tick", "orders", {"n": n, "pad": pad})) for n in range(20_000))
    sent = connection.send_until_stalled(stream, stalled_for_s=1.0)
    assert sent < len(stream), "the client never stopped reading"
    statistics = client.do("statistics")
    assert statistics["read_pauses"] >= 1
    assert statistics["queue_bytes"] <= bound_bytes + 64 * 1024
    client.do("resume")
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(connection.send, stream[sent:])
        for n in range(20_000):
            assert json.loads(client.wait_for("event")["data"])["n"] == n
        rest.result()
    client.wait_for_statistic("events_delivered", lambda value: value == 20_000)
    assert not client.all("state", current="unavailable")


@pytest.mark.c_only("the program decides when the queue is drained")
def test_record_bound_pauses_reading_too(server: ScriptedServer, connect: StartClient) -> None:
    client = connect(server, queue_records_max=100)
    connection = joined(server, client)
    client.do("pause")
    stream = b"".join(text(event("tick", "orders", n)) for n in range(200_000))
    sent = connection.send_until_stalled(stream, stalled_for_s=1.0)
    assert sent < len(stream), "the client never stopped reading"
    assert client.statistic("queue_records") <= 200
    client.do("resume")
    connection.send(stream[sent:])
    client.wait_for("event", data="199999")
    assert [int(record["data"]) for record in client.all("event")] == list(range(200_000))


@pytest.mark.c_only("the program decides when the queue is drained")
def test_paused_consumer_still_answers_pings(server: ScriptedServer, connect: StartClient) -> None:
    """A program that does not drain is not a dead connection."""
    client = connect(server)
    connection = joined(server, client)
    client.do("pause")
    connection.send_text(*(event("tick", "orders", n) for n in range(1000)))
    connection.send_text({"event": "bird:ping"})
    connection.expect({"event": "bird:pong"})
    client.do("resume")
    client.wait_for("event", data="999")
