"""A WebSocket server whose every byte is decided by the test: a listening socket, connections, and no thread.

The test accepts a connection, reads what the client sent (masking, lengths and UTF-8 are checked), and answers, cuts,
splits or corrupts as it likes. Connections wait in the listen queue until the test accepts them.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import select
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

# Only ever reached by a test that fails. Under valgrind everything takes longer.
DEADLINE_S = 30.0 * float(os.environ.get("BIRDREALTIME_SLOWNESS", "1"))
ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
REQUEST_BYTES_MAX = 16 * 1024

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
CONTINUATION = 0


@dataclass(frozen=True)
class Frame:
    opcode: int
    payload: bytes

    @property
    def json(self) -> Any:
        assert self.opcode == TEXT, self
        return json.loads(self.payload)

    @property
    def close_code(self) -> int:
        assert self.opcode == CLOSE, self
        return int.from_bytes(self.payload[:2], "big")


def frame(opcode: int, payload: bytes, *, fin: bool = True) -> bytes:
    """A server's frame: not masked, with the shortest length."""
    first = bytes([(0x80 if fin else 0) | opcode])
    if len(payload) < 126:
        return first + bytes([len(payload)]) + payload
    if len(payload) < 65536:
        return first + b"\x7e" + struct.pack(">H", len(payload)) + payload
    return first + b"\x7f" + struct.pack(">Q", len(payload)) + payload


def text(message: object) -> bytes:
    """A text frame with this JSON value."""
    return frame(TEXT, dump(message))


def dump(message: object) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def event(name: str, channel: str, data: object) -> dict[str, object]:
    """An event as the edge sends it: data is a string that contains JSON (Bird protocol §3.1)."""
    return {"event": name, "channel": channel, "data": dump(data).decode()}


def handshake(connection_id: str = "1.1", activity_timeout: int = 120) -> dict[str, object]:
    data = {"connection_id": connection_id, "activity_timeout": activity_timeout}
    return {"event": "bird:connection_established", "data": dump(data).decode()}


def succeeded(channel: str, data: object = None) -> dict[str, object]:
    return event("bird_internal:subscription_succeeded", channel, data or {})


class Connection:
    """One accepted connection. Every read has a deadline; a read that meets it fails the test."""

    def __init__(self, sock: socket.socket, patience_s: float = DEADLINE_S) -> None:
        self.socket = sock
        self.patience_s = patience_s
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request = b""
        self._received = b""

    # The upgrade

    def read_request(self) -> bytes:
        """The whole request, up to and with its empty line."""
        deadline = time.monotonic() + self.patience_s
        while b"\r\n\r\n" not in self._received:
            assert len(self._received) < REQUEST_BYTES_MAX
            self._receive(deadline)
        self.request, _, self._received = self._received.partition(b"\r\n\r\n")
        self.request += b"\r\n\r\n"
        return self.request

    @property
    def websocket_key(self) -> str:
        found = re.search(rb"\r\nSec-WebSocket-Key: ([A-Za-z0-9+/]{22}==)\r\n", self.request)
        assert found, self.request
        return found[1].decode()

    def switching_protocols(self) -> bytes:
        """The 101 that accepts the request which was read."""
        digest = hashlib.sha1((self.websocket_key + ACCEPT_GUID).encode(), usedforsecurity=False).digest()
        return (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n\r\n"
        )

    def upgrade(self, behind: bytes = b"") -> None:
        """Reads the request and accepts it; `behind` goes out in the same write."""
        self.read_request()
        self.send(self.switching_protocols() + behind)

    def establish(self, connection_id: str = "1.1", activity_timeout: int = 120) -> None:
        """Accepts the upgrade and sends the handshake."""
        self.upgrade(text(handshake(connection_id, activity_timeout)))

    def start_tls(self, context: ssl.SSLContext) -> None:
        """Behind what a proxy has said."""
        assert not self._received
        self.socket = context.wrap_socket(self.socket, server_side=True)

    # Sending

    def send(self, data: bytes) -> None:
        self.socket.settimeout(DEADLINE_S)
        self.socket.sendall(data)

    def send_text(self, *messages: object) -> None:
        self.send(b"".join(text(message) for message in messages))

    def send_bytewise(self, data: bytes) -> None:
        """One write, and with TCP_NODELAY one segment, for each byte."""
        for index in range(len(data)):
            self.send(data[index : index + 1])

    def send_close(self, code: int, reason: str = "") -> None:
        self.send(frame(CLOSE, code.to_bytes(2, "big") + reason.encode()))

    # HTTP

    def read_post(self) -> tuple[str, Any]:
        """A whole POST: its head, and its body as JSON."""
        head = self.read_request().decode()
        return head, self.read_body()

    def read_body(self) -> Any:
        """What follows the request's head, as JSON."""
        return json.loads(self.read_raw_body())

    def read_raw_body(self) -> bytes:
        """The same, byte for byte."""
        length = re.search(rb"\r\nContent-Length: (\d+)\r\n", self.request, re.IGNORECASE)
        assert length, self.request
        return self._take(int(length[1]), time.monotonic() + self.patience_s)

    def respond(self, status: int, body: str | bytes = b"", **headers: str) -> None:
        """A whole HTTP response, and the end of the connection. An underscore in a header name stands for a hyphen."""
        content = body.encode() if isinstance(body, str) else body
        lines = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(content)}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join([*lines, "", ""]).encode() + content)
        self.close()

    # Receiving

    def read_frame(self) -> Frame:
        """The next frame, checked against RFC 6455: whole, masked, no reserved bits, shortest length."""
        deadline = time.monotonic() + self.patience_s
        first, second = self._take(2, deadline)
        assert first & 0x80, "the client sent a fragment"
        assert not first & 0x70, "a reserved bit is set"
        assert second & 0x80, "the client did not mask"
        length = second & 0x7F
        if length == 126:
            length = int.from_bytes(self._take(2, deadline), "big")
            assert length > 125, "not the shortest length"
        elif length == 127:
            length = int.from_bytes(self._take(8, deadline), "big")
            assert length > 65535, "not the shortest length"
        mask = self._take(4, deadline)
        masked = self._take(length, deadline)
        key = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
        payload = (int.from_bytes(masked, "big") ^ key).to_bytes(length, "big")
        opcode = first & 0x0F
        assert opcode in (TEXT, CLOSE, PING, PONG), f"unexpected opcode {opcode}"
        if opcode == TEXT:
            payload.decode()
        return Frame(opcode, payload)

    def has_input(self, within_s: float) -> bool:
        """Whether something to read comes so soon."""
        held = isinstance(self.socket, ssl.SSLSocket) and self.socket.pending()
        return bool(self._received or held or select.select([self.socket], [], [], within_s)[0])

    def read_byte(self) -> int:
        """The next byte of a client that may not be speaking WebSocket."""
        return self._take(1, time.monotonic() + self.patience_s)[0]

    def expect(self, message: object) -> None:
        """The next frame is a text with exactly this JSON value."""
        found = self.read_frame()
        assert found.opcode == TEXT, found
        assert found.json == message

    def expect_subscribe(self, channel: str, **fields: str) -> None:
        self.expect({"event": "bird:subscribe", "data": {"channel": channel, **fields}})

    def join(self, channel: str, data: object = None, **fields: str) -> None:
        """Expects the subscribe and confirms it."""
        self.expect_subscribe(channel, **fields)
        self.send_text(succeeded(channel, data))

    def expect_close(self, code: int) -> None:
        """The next frame is a close with this code; answers it and ends the connection."""
        found = self.read_frame()
        assert found.opcode == CLOSE, found
        assert found.close_code == code, found
        with contextlib.suppress(OSError):
            self.send(frame(CLOSE, found.payload[:2]))
        self.close()

    def expect_end(self) -> bytes:
        """The client ends the connection; gives what it sent before."""
        deadline = time.monotonic() + self.patience_s
        with contextlib.suppress(ConnectionError):
            while True:
                self._receive(deadline)
        left, self._received = self._received, b""
        return left

    def is_silent_for(self, seconds: float) -> bool:
        """Whether nothing arrives for so long: for things that must not happen, there is nothing to wait for."""
        if self._received:
            return False
        self.socket.settimeout(seconds)
        try:
            self._received = self.socket.recv(65536)
        except TimeoutError:
            return True
        return False

    def send_until_stalled(self, data: bytes, stalled_for_s: float) -> int:
        """Sends until all has left or the client has taken nothing for so long; gives the bytes that left."""
        self.socket.settimeout(stalled_for_s)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < len(data):
                sent += self.socket.send(memoryview(data)[sent : sent + 65536])
        return sent

    # Ending

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Ends with RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def _take(self, count: int, deadline: float) -> bytes:
        while len(self._received) < count:
            self._receive(deadline)
        taken, self._received = self._received[:count], self._received[count:]
        return taken

    def _receive(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        assert left > 0, f"the client sent nothing more; so far {self._received!r}"
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(1024 * 1024)
        except TimeoutError:
            raise AssertionError(f"the client sent nothing more; so far {self._received!r}") from None
        if not data:
            raise ConnectionResetError("the client ended the connection")
        self._received += data

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class ScriptedServer:
    """Listens on a free port of 127.0.0.1 or another address, with TLS when a context is given."""

    def __init__(
        self, tls: ssl.SSLContext | None = None, backlog: int = 128, address: str = "127.0.0.1", port: int = 0
    ) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.create_server((address, port), family=family, backlog=backlog)
        self.address = address
        self.tls = tls
        self._accepted: list[Connection] = []  # a test that forgets a connection does not end it

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def host(self) -> str:
        """For the option ws_host."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    def accept(self) -> Connection:
        self.listener.settimeout(DEADLINE_S)
        try:
            sock, _ = self.listener.accept()
        except TimeoutError:
            raise AssertionError("no connection came") from None
        sock.settimeout(DEADLINE_S)
        self._accepted.append(Connection(self.tls.wrap_socket(sock, server_side=True) if self.tls else sock))
        return self._accepted[-1]

    def answer_posts_until(self, connection: Connection, body: str) -> None:
        """Grants what is asked here until the connection has something to read.

        One that is answered too late, on a busy machine, is asked again.
        """
        while True:
            ready, _, _ = select.select([self.listener, connection.socket], [], [], DEADLINE_S)
            assert ready, "no request came, and nothing on the connection"
            if connection.socket in ready:
                return
            with contextlib.suppress(ConnectionError):
                post = self.accept()
                post.read_post()
                post.respond(200, body)

    def is_left_alone_for(self, seconds: float) -> bool:
        """Whether nobody connects for so long: for dials that must not happen, there is nothing to wait for."""
        self.listener.settimeout(seconds)
        try:
            sock, _ = self.listener.accept()
        except TimeoutError:
            return True
        sock.close()
        return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes a thread that is accepting
        self.listener.close()
        for connection in self._accepted:
            connection.close()

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@contextlib.contextmanager
def refusing_port() -> Iterator[int]:
    """A port on which connections are refused, for as long as the context lasts."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound, and never listening
        yield int(bound.getsockname()[1])
