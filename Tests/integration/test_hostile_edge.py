"""An edge that does its worst, to a client that shares its reactor with an innocent one: memory, and the other's turn.

Each attack ends with a ping of the protocol, whose pong says that all before it has been dealt with, or with the end of
the connection. The reactor's turns are measured in its own CPU time, which does not count what else the machine does.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from paths import PROGRAMS
from scripted_server import DEADLINE_S, PING, TEXT, Connection, ScriptedServer, dump, frame, succeeded, text

MEMORY_KIB_MAX = 32 * 1024
# 100 ms are the bound. Beside other programs, caches and hyperthreads cost as much again.
TURN_US_MAX = 200_000
MB = 1_000_000
MEMBERS_MAX = 100_000
PRESENCE = "presence-room"
GRANT = json.dumps({"auth": "k:s", "member_data": '{"member_id":"me"}'})
Report = dict[str, Any]
# BIRD_RECORD_*
EVENT, SUBSCRIBED, REFUSED, STATE, ERROR, WATCHLIST = "1", "2", "3", "7", "8", "16"


class Innocent:
    """An edge that sends a tick every few milliseconds."""

    def __init__(self) -> None:
        self.server = ScriptedServer()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            connection = self.server.accept()
            connection.establish()
            connection.join("ticks")
            while not self._is_over.wait(0.005):
                connection.send(text({"event": "tick", "channel": "ticks", "data": "1"}))

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(DEADLINE_S)
        self.server.close()


class Host:
    """The program with the two clients, and the hostile one's server."""

    def __init__(self, server: ScriptedServer, innocent: Innocent, delivery: str) -> None:
        self.server = server
        self.delivery = delivery
        self.process = subprocess.Popen(
            [PROGRAMS / "hostile_host", innocent.server.host],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        innocent.start()
        self.wait(lambda report: report["ticks"] > 20)

    def do(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()

    def ask(self, *words: object) -> Report:
        assert self.process.stdout is not None
        self.do(*words)
        answer: Report = json.loads(self.process.stdout.readline())
        return answer

    def wait(self, condition: Callable[[Report], bool]) -> Report:
        deadline = time.monotonic() + DEADLINE_S
        while not condition(report := self.ask("report")):
            assert time.monotonic() < deadline, report
            time.sleep(0.02)
        return report

    def connect(self, *options: str) -> Connection:
        """The hostile client is connected."""
        self.do("start", self.server.host, self.delivery, *options)
        connection = self.server.accept()
        connection.establish()
        self.wait(lambda report: report["kinds"][STATE] >= 2)
        return connection

    def join_presence(self, connection: Connection, auth: ScriptedServer) -> None:
        """The subscribe of a presence channel has come, and waits for its answer."""
        self.do("subscribe", PRESENCE)
        asked = auth.accept()
        asked.read_post()
        asked.respond(200, GRANT)
        connection.read_frame()

    def settled(self, connection: Connection) -> Report:
        """All that was sent has been dealt with, and delivered."""
        connection.send_text({"event": "bird:ping"})
        while connection.read_frame().json["event"] != "bird:pong":
            pass
        ticks = self.ask("report")["ticks"]
        return self.wait(lambda report: report["ticks"] > ticks + 5 and report["queued"] == 0)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            assert self.process.wait(DEADLINE_S) == 0
        finally:
            self.process.kill()
            self.process.stdout.close()


@pytest.fixture(params=["loop", "thread"])
def host(request: pytest.FixtureRequest, server: ScriptedServer) -> Iterator[Host]:
    innocent = Innocent()
    running = Host(server, innocent, request.param)
    yield running
    innocent.close()
    running.close()


def check(report: Report, kib_max: int = MEMORY_KIB_MAX) -> None:
    assert report["peak_kib"] - report["start_kib"] <= kib_max, report
    assert report["turn_us"] <= TURN_US_MAX, report


def sent_until_it_ends(connection: Connection, data: bytes, times: int) -> None:
    """Never reads; the client may end the connection."""
    with contextlib.suppress(OSError, TimeoutError):
        for _ in range(times):
            connection.socket.settimeout(2)
            connection.socket.sendall(data)


def test_successes_that_nobody_asked_for(host: Host) -> None:
    connection = host.connect()
    flood = b"".join(text(succeeded(f"{'c' * 140}{number}")) for number in range(20_000))
    sent_until_it_ends(connection, flood, 12)
    check(host.ask("report"))


def test_successes_of_a_channel_that_nobody_wants_any_more(host: Host) -> None:
    connection = host.connect()
    host.do("subscribe", "held")
    connection.join("held")
    flood = b"".join(text(succeeded(name)) for _ in range(10_000) for name in ("held", "other"))
    sent_until_it_ends(connection, flood, 12)
    check(host.ask("report"))


def test_pings_whose_answers_are_not_read(host: Host) -> None:
    connection = host.connect()
    flood = (frame(PING, b"x" * 125) + text({"event": "bird:ping"})) * 20_000
    sent_until_it_ends(connection, flood, 12)
    check(host.ask("report"))


@pytest.mark.parametrize("bytes_sent", [MB, 4 * MB, 8 * MB, 15 * MB])
def test_a_roster_of_millions(host: Host, auth: ScriptedServer, bytes_sent: int) -> None:
    connection = host.connect(f"auth_endpoint=http://{auth.host}/auth")
    host.join_presence(connection, auth)
    ids = ",".join(f'"{number:x}"' for number in range(bytes_sent // 8))
    message = (
        '{"event":"bird_internal:subscription_succeeded","channel":"%s","data":{"presence":{"ids":[%s],"hash":{}}}}'
    )
    connection.send(frame(TEXT, (message % (PRESENCE, ids)).encode()))
    report = host.settled(connection)
    check(report)
    assert report["kinds"][SUBSCRIBED] == 1
    is_read = bytes_sent <= 8 * MB
    assert report["roster"] == min(MEMBERS_MAX, bytes_sent // 8) * is_read
    assert report["kinds"][ERROR] == (bytes_sent // 8 > MEMBERS_MAX)


def test_a_roster_of_long_infos(host: Host, auth: ScriptedServer) -> None:
    connection = host.connect(f"auth_endpoint=http://{auth.host}/auth")
    host.join_presence(connection, auth)
    ids = [f"member-{number:08}-abcdefgh" for number in range(60_000)]
    data = {"presence": {"ids": ids, "hash": {member: {"name": "x" * 60} for member in ids}, "count": len(ids)}}
    message = {"event": "bird_internal:subscription_succeeded", "channel": PRESENCE, "data": data}
    connection.send_text(message)
    report = host.settled(connection)
    check(report)
    assert report["roster"] == len(ids)
    assert report["kinds"][ERROR] == 1


def test_members_come_without_end(host: Host, auth: ScriptedServer) -> None:
    connection = host.connect(f"auth_endpoint=http://{auth.host}/auth")
    host.join_presence(connection, auth)
    connection.send_text(succeeded(PRESENCE, {"presence": {"ids": [], "hash": {}}}))
    for start in range(0, MEMBERS_MAX + 20_000, 10_000):
        connection.send(members("added", range(start, start + 10_000)))
    report = host.settled(connection)
    check(report)
    assert report["roster"] == MEMBERS_MAX
    for start in range(0, MEMBERS_MAX, 10_000):
        connection.send(members("removed", range(start, start + 10_000)))
    report = host.settled(connection)
    check(report)
    assert report["roster"] == 0


def members(change: str, numbers: range) -> bytes:
    name = f"bird_internal:member_{change}"
    return b"".join(
        text({"event": name, "channel": PRESENCE, "data": json.dumps({"member_id": f"{number:x}"})})
        for number in numbers
    )


def test_texts_of_errors(host: Host) -> None:
    connection = host.connect()
    for number in range(6):
        connection.send_text({"event": "bird:error", "data": {"code": 4999, "message": f"E{number} " + "x" * 15 * MB}})
        connection.send_text(
            {"event": "bird:error", "data": {"code": 4999, "message": f"E{number} " + "\x1f\u00e9" * 100_000}}
        )
    report = host.settled(connection)
    check(report)
    assert report["kinds"][ERROR] >= 12
    assert 0 < report["error_bytes"] <= 2_048 + 200
    assert report["dump_bytes"] <= 2_097_152


def test_texts_of_refusals(host: Host) -> None:
    connection = host.connect()
    for number in range(8):
        host.do("subscribe", f"c{number}")
        connection.read_frame()
        refusal = {
            "event": "bird_internal:subscription_error",
            "channel": f"c{number}",
            "data": {"message": "x" * 15 * MB},
        }
        connection.send_text(refusal)
    report = host.settled(connection)
    check(report)
    assert report["kinds"][REFUSED] == 8
    assert report["dump_bytes"] <= 2_097_152


@pytest.mark.parametrize("bytes_sent", [2 * MB, 7 * MB])
def test_payloads_of_successes(host: Host, bytes_sent: int) -> None:
    connection = host.connect()
    for number in range(24):
        host.do("subscribe", f"c{number}")
        connection.read_frame()
        connection.send_text({**succeeded(f"c{number}"), "data": {"what": "x" * bytes_sent}})
    report = host.settled(connection)
    check(report)
    assert report["kinds"][SUBSCRIBED] == 24


@pytest.mark.parametrize(
    "entries",
    [
        [{"name": "online", "member_ids": ["a"]}] * 400_000,
        [{"name": "online", "member_ids": ["a"]}] * 20_000,
        [{"name": "online", "member_ids": [f"{number:x}" for number in range(100_000)]}],
        [{"name": "online", "member_ids": [f"{number:x}" for number in range(1_500_000)]}],
        [1] * 500_000,
    ],
    ids=["large", "entries", "ids", "large-ids", "malformed"],
)
def test_watchlists(host: Host, entries: list[Any]) -> None:
    connection = host.connect()
    connection.send_text({"event": "bird_internal:watchlist_events", "data": {"events": entries}})
    report = host.settled(connection)
    check(report)
    assert report["kinds"][WATCHLIST] <= 1_024
    assert report["malformed"] > 0


@pytest.mark.parametrize("length", [2_000, 15 * MB])
def test_an_id_of_the_connection_that_is_too_long(host: Host, length: int) -> None:
    host.do("start", host.server.host, host.delivery)
    connection = host.server.accept()
    connection.upgrade()
    connection.send_text(
        {"event": "bird:connection_established", "data": dump({"connection_id": "1" * length}).decode()}
    )
    connection.expect_close(4001)
    report = host.wait(lambda report: report["kinds"][ERROR] >= 1)
    check(report)


def test_a_message_in_millions_of_fragments(host: Host) -> None:
    connection = host.connect()
    connection.send(frame(TEXT, b'{"event":"x","data":"', fin=False))
    for _ in range(24):
        connection.send(frame(0, b"a", fin=False) * 50_000)
    connection.send(frame(0, b'"}'))
    check(host.settled(connection))


def test_a_message_of_names_with_escapes(host: Host) -> None:
    connection = host.connect()
    host.do("subscribe", "held")
    connection.join("held")
    connection.send(
        frame(TEXT, b'{"event":"\\u0078","channel":"h\\u0065ld","data":"%s"}' % (b"x" * 7 * MB)),
    )
    report = host.settled(connection)
    check(report)
    assert report["kinds"][EVENT] == 1


def test_a_program_that_joins_and_leaves_while_the_edge_does_not_read(host: Host) -> None:
    connection = host.connect()
    full = host.ask("churn", 100_000, "one")["full"]
    assert full > 10_000
    report = host.ask("report")
    check(report)
    written = 0
    while written < 2 * (100_000 - full) + 1:
        before = written
        while connection.has_input(0.5):
            connection.read_frame()
            written += 1
        if written == before:
            break
    report = host.settled(connection)
    # The pong is one, too.
    assert report["messages_sent"] == written + 1
