"""The edge for the cases of the C harness: it grants every signature and obeys client events on `private-control`.

client-emit   data is a text message, or a list of them: sent back byte for byte, in one write
client-drop   ends the connection without a close frame
client-reset  the same with RST
client-close  data is the close code, or an array of it and the reason
client-deaf   stops reading
client-stream numbered events, many thousands a second, until client-stream-end; then their total
others        ignored

It is also an authorizer endpoint, which grants what is POSTed with `X-Token: open` and denies the rest.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
from types import TracebackType

from scripted_server import (
    CLOSE,
    PING,
    PONG,
    TEXT,
    Connection,
    Frame,
    ScriptedServer,
    dump,
    event,
    frame,
    handshake,
    succeeded,
    text,
)

RECEIVE_BUFFER_BYTES = 64 * 1024
PATIENCE_S = 3600.0  # a client that says nothing is welcome
STREAM_EVENTS = 50  # in one write of a stream
STREAM_PAUSE_S = 0.0005  # in which the edge serves its other clients


class CommandEdge:
    def __init__(self) -> None:
        self.server = ScriptedServer()
        # A command must not stand behind megabytes of frames that a storm of calls has sent before.
        self.server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._ids = itertools.count(1)
        self._stopped = threading.Event()
        self._connections: set[Connection] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self) -> str:
        return self.server.host

    def __enter__(self) -> CommandEdge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopped.set()
        self.server.close()
        for connection in list(self._connections):
            connection.close()

    def _accept(self) -> None:
        self.server.listener.settimeout(None)
        while True:
            try:
                sock, _ = self.server.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(Connection(sock, PATIENCE_S),), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        self._connections.add(connection)
        # However a client goes away, or what it says, is none of the edge's business: the harness is the judge.
        with connection, contextlib.suppress(OSError, ValueError, AssertionError, TypeError, KeyError):
            if connection.read_request().startswith(b"POST "):
                _authorize(connection)
                return
            number = next(self._ids)
            connection.send(connection.switching_protocols() + text(handshake(f"{number}.{number * 7919}")))
            while self._answer(connection, connection.read_frame()):
                pass
        self._connections.discard(connection)

    def _answer(self, connection: Connection, received: Frame) -> bool:
        """False: the connection is over."""
        if received.opcode == CLOSE:
            connection.send(frame(CLOSE, received.payload[:2]))
            return False
        if received.opcode == PING:
            connection.send(frame(PONG, received.payload))
            return True
        if received.opcode != TEXT:
            return True
        message = received.json
        name, data = message["event"], message.get("data")
        if name == "bird:ping":
            connection.send_text({"event": "bird:pong"})
        elif name == "bird:subscribe":
            connection.send_text(succeeded(data["channel"], _roster(data.get("member_data"))))
        elif name == "bird:signin":
            answer = dump({"member_data": data["member_data"]}).decode()
            connection.send_text({"event": "bird:signin_success", "data": answer})
        elif name == "client-emit":
            messages = data if isinstance(data, list) else [data]
            connection.send(b"".join(frame(TEXT, message.encode()) for message in messages))
        elif name == "client-close":
            connection.send_close(*(data if isinstance(data, list) else [data]))
        elif name == "client-deaf":
            self._stopped.wait()
        elif name == "client-stream":
            _stream(connection)
        elif name == "client-reset":
            connection.reset()
        return name not in ("client-drop", "client-reset", "client-deaf")


def _authorize(connection: Connection) -> None:
    connection.read_body()
    is_granted = b"\r\nx-token: open\r\n" in connection.request.lower()
    connection.respond(200 if is_granted else 403, dump({"auth": "key:signature"}))


def _stream(connection: Connection) -> None:
    for first in itertools.count(step=STREAM_EVENTS):
        numbers = range(first, first + STREAM_EVENTS)
        connection.send(b"".join(text(event("number", "private-control", number)) for number in numbers))
        if connection.has_input(STREAM_PAUSE_S) and connection.read_frame().opcode == TEXT:
            connection.send_text(event("total", "private-control", first + STREAM_EVENTS))
            return


def _roster(member_data: str | None) -> dict[str, object]:
    if member_data is None:
        return {}
    member = json.loads(member_data)
    roster = {member["member_id"]: member.get("member_info")}
    return {"presence": {"ids": list(roster), "hash": roster, "count": len(roster)}}


if (
    __name__ == "__main__"
):  # for a debugger, valgrind or a case by hand: prints HOST:PORT and serves until its stdin ends
    import sys

    with CommandEdge() as edge:
        print(edge.host, flush=True)
        sys.stdin.read()
