"""Clients end in every phase of a connection, whatever the server does or does not do."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from paths import HARNESS
from program import Program
from scripted_server import Connection, ScriptedServer, event, refusing_port, succeeded, text

MODES = ("thread", "queue", "loop", "host")
WAYS = ("destroy", "destroy-while-closing", "close", "callback")
CHANNEL = "private-orders"


@dataclass
class Scene:
    """What a phase needs, for each of the ways to end it."""

    host: str
    options: list[str] = field(default_factory=list)
    enter: Callable[[], object] = lambda: None
    """Returns when the client is in the phase, or can come there by itself."""


def accept_tls(server: ScriptedServer) -> None:
    assert server.accept().read_byte() == 0x16  # a TLS record: the client's hello


def establish(server: ScriptedServer) -> Connection:
    connection = server.accept()
    connection.establish()
    return connection


@contextlib.contextmanager
def full_listener() -> Iterator[str]:
    """A port that answers no SYN: the kernel drops them as long as the queue of connections is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def post(server: ScriptedServer, auth: ScriptedServer) -> None:
    establish(server)
    auth.accept().read_post()


def flood(server: ScriptedServer) -> None:
    connection = establish(server)
    connection.read_frame()  # the subscribe
    connection.send_text(succeeded(CHANNEL))
    ticks = text(event("tick", CHANNEL, 1)) * 500

    def send() -> None:
        # Until the client goes, or closes and leaves the bytes unread.
        with contextlib.suppress(OSError):
            while True:
                connection.send(ticks)

    threading.Thread(target=send, daemon=True).start()


@contextlib.contextmanager
def scene(phase: str) -> Iterator[Scene]:
    with ScriptedServer() as server, ScriptedServer() as auth, contextlib.ExitStack() as stack:
        yield {
            "resolve": lambda: Scene("silent.test:1"),
            "connect": lambda: Scene(stack.enter_context(full_listener())),
            "tls": lambda: Scene(server.host, ["allow_insecure=0"], lambda: accept_tls(server)),
            "upgrade": lambda: Scene(server.host, [], lambda: server.accept().read_request()),
            "handshake": lambda: Scene(server.host, [], lambda: server.accept().upgrade()),
            "post": lambda: Scene(
                server.host,
                ["authorizer=0", f"auth_endpoint=http://{auth.host}/"],
                lambda: post(server, auth),
            ),
            "request": lambda: Scene(server.host, [], lambda: establish(server)),
            "backoff": lambda: Scene(f"127.0.0.1:{stack.enter_context(refusing_port())}", ["backoff_base_ms=86400000"]),
            "flood": lambda: Scene(server.host, ["queue_records_max=5000"], lambda: flood(server)),
        }[phase]()


PHASES = ("resolve", "connect", "tls", "upgrade", "handshake", "post", "request", "backoff", "flood")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("phase", PHASES)
def test_client_ends(phase: str, mode: str) -> None:
    with scene(phase) as setting:
        program = Program([HARNESS, "client_ends_in_a_phase", setting.host, mode, phase, *setting.options])
        try:
            for way in WAYS:
                program.wait_for(f"at {way}")
                setting.enter()
                program.write("go")
            program.wait_for("over")
            assert program.wait() == 0
        finally:
            program.close()
