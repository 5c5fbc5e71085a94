"""The calls of Bird's own documentation for Swift do against the local edge, and print, what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from paths import HEADER, ROOT, SWIFT_PROGRAMS
from program import Program

from bird_realtime.testing import App, EdgeConfig, EdgeServer

NOT_IN_SWIFT = {
    "BIRD_ERR_HANDLE": "there are no handles",
    "BIRD_ERR_BUSY": "nobody else drains the queue",
    "BIRD_ERR_WOKEN": "nobody waits on the queue but the library",
    "BIRD_ERR_SPACE": "there are no buffers",
    "BIRD_ERR_ANSWERED": "an answer is what a closure returns",
    "BIRD_RECORD_EVENT": "every other event",
    "BIRD_RECORD_CONNECTION_COUNT": "an event with data of its own",
    "BIRD_RECORD_DECRYPTION_ERROR": "an event with data of its own",
    "BIRD_RECORD_LOG": "a client with a handler has no such records",
}


@pytest.fixture
def edge() -> Iterator[EdgeServer]:
    members = {"m_7": {"name": "Noor"}, "m_8": None}
    with EdgeServer(EdgeConfig(app_key="your-app-key", app=App(client_events=True), members=members)) as running:
        yield running


@pytest.fixture
def usage(edge: EdgeServer, swift_programs: None) -> Iterator[Program]:
    arguments = [edge.ws_host, edge.auth_endpoint, edge.member_auth_endpoint]
    # It prints as the documentation does, which leaves lines in a buffer.
    program = Program(["stdbuf", "-oL", SWIFT_PROGRAMS / "swift-usage", *arguments])
    yield program
    program.close()


def test_the_guide_is_compiled() -> None:
    """Each line of its code stands in Guide.swift, which is compiled with the rest."""
    compiled = {line.strip() for line in (ROOT / "Tests/SwiftUsage/Guide.swift").read_text().splitlines()}
    blocks = re.findall(r"^```swift\n(.*?)^```$", (ROOT / "docs/swift.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    assert len(lines) > 50
    assert [line for line in lines if line not in compiled] == []


def test_the_face_knows_all_of_the_header() -> None:
    """Kinds of errors, records and requests, logs and statistics: what C programs see, programs in Swift see."""
    header = HEADER.read_text()
    statistics = re.search(r"typedef struct bird_statistics \{(.*?)\}", header, re.DOTALL)
    assert statistics is not None
    names = re.findall(r"^#define (BIRD_(?:ERR|RECORD|REQUEST|LOG_AREA)_\w+)", header, re.MULTILINE)
    counters = re.findall(r"uint64_t (\w+);", statistics[1])
    assert len(names) > 50
    assert len(counters) > 15
    face = "".join(path.read_text() for path in (ROOT / "Sources/BirdRealtime").glob("*.swift"))
    known = set(re.findall(r"\bBIRD_\w+", face)) | NOT_IN_SWIFT.keys()
    assert [name for name in names if name not in known] == []
    assert [name for name in counters if f"core.{name}" not in face] == []


def test_subscribe(edge: EdgeServer, usage: Program) -> None:
    usage.write("subscribe")
    edge.wait_for_subscription("orders")
    edge.publish("order-updated", ["orders"], {"order": "A-19", "left": 4})
    usage.wait_for(r'order changed: \{"order": ?"A-19", ?"left": ?4\}')
    edge.publish("order-updated", ["orders"], "shipped")
    usage.wait_for("order changed: shipped")
    edge.publish("order-updated", ["orders"])
    usage.wait_for("order changed: (null|)")


def test_presence_and_client_events(edge: EdgeServer, usage: Program, run_swift: Callable[..., Program]) -> None:
    usage.write("join")
    usage.wait_for(r'me: m_7 members: \["m_7"\]')
    other = run_swift("swift-script", edge.app_key, edge.ws_host, f"auth={edge.auth_endpoint}", "headers=1")
    other.write("subscribe presence-room-42")
    other.wait_for("asked headers .*")
    other.write("grant headers m_8")
    usage.wait_for(r'joined: \{"member_id":"m_8","member_info":null\}')
    other.wait_for("presence-room-42 bird:subscription_succeeded .*")
    usage.write("type")
    other.wait_for(r'presence-room-42 client-typing \{"on": ?true\}')
    usage.write("render")
    edge.wait_for_subscription("presence-room-1")
    usage.wait_for(r'here: \["m_7"\]')


def test_a_refused_subscription(edge: EdgeServer, usage: Program) -> None:
    edge.deny_channel("presence-room-42")
    usage.write("join")
    error = json.loads(usage.wait_for(r"could not join: (\{.*\})")[1])
    assert error["status"] == 403
    assert error["will_retry"] is False
    assert "presence-room-42" in error["error"]


def test_signin(edge: EdgeServer, usage: Program) -> None:
    usage.write("identify")
    usage.wait_for("signed in as m_7")
    edge.wait_for_subscription("#server-to-user-m_7")
    edge.send_to_member("m_7", "order.shipped", {"parcel": "P-55"})
    usage.wait_for(r'addressed to me: \{"parcel": ?"P-55"\}')
    usage.write("watch")
    edge.fail_http("member_auth", status=403)
    edge.drop_connections()
    usage.wait_for("connection has no identity: .*403.*")


def test_life_cycle(edge: EdgeServer, usage: Program) -> None:
    usage.write("subscribe")
    edge.wait_for_subscription("orders")
    usage.write("watch")
    usage.write("stop")
    usage.wait_for("connected -> disconnected")
    usage.wait_for("connection: connected → disconnected")
    edge.wait_for_connections(0)
    usage.write("start")
    usage.wait_for("connecting -> connected")
    usage.wait_for("banner off")
    edge.wait_for_subscription("orders")
    edge.drop_connections()
    usage.wait_for("connected -> unavailable")
    usage.wait_for("banner on")
    usage.wait_for("connecting -> connected")
    edge.close_connections(4009, "signed in elsewhere")
    usage.wait_for("4009 signed in elsewhere")
    usage.wait_for("signed out")
    usage.wait_for("session ended elsewhere")
    usage.wait_for("connected -> failed")
