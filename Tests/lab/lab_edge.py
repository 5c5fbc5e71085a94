"""An edge that publishes twenty numbers a second, remembers who was sent which, and breaks as a case orders it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType

from scripted_server import (
    CLOSE,
    PING,
    PONG,
    TEXT,
    Connection,
    Frame,
    ScriptedServer,
    event,
    frame,
    succeeded,
)

CHANNEL = "orders"
INTERVAL_S = 0.05
PATIENCE_S = 3600.0  # with a client that says nothing
SEND_BUFFER_BYTES = 4 * 1024 * 1024  # what nobody takes for minutes must not stop the edge

REFUSED = {"event": "bird:error", "data": {"code": None, "message": "the signature is wrong"}}

Fault = Callable[[Connection], None]


class Session:
    """A connection that is served well until it ends or is given an order, on a thread of its own."""

    def __init__(self, edge: LabEdge, connection: Connection) -> None:
        self.sent: list[tuple[int, float]] = []  # numbers, and when
        self.joined_at: float | None = None
        self.is_over = False  # the edge serves it no more, whatever the client knows
        self._next: int | None = None  # the one that is due now, when it is not known
        self._edge = edge
        self._connection = connection
        self._order: Fault | None = None
        self._is_last_order = True

    def order(self, fault: Fault, is_last: bool) -> None:
        """The session's thread does this between two events, and serves no more if it is the last thing to do."""
        self._is_last_order = is_last
        self._order = fault

    def serve(self, number: int) -> None:
        self._connection.establish(f"{number}.{number}", self._edge.activity_timeout_s)
        while True:
            if self._order is not None:
                order, self._order = self._order, None
                self.is_over = self._is_last_order
                self._edge.carry_out(order, self._connection)
                if self.is_over:
                    return
            if self._connection.has_input(self._wait_s()):
                if not self._answer(self._connection.read_frame()):
                    return
            elif self.joined_at is not None:
                self._publish()

    def skip(self) -> None:
        """What was due so far is not sent any more."""
        self._next = None

    def _wait_s(self) -> float:
        """Until the next number is due; the first comes right behind the confirmation."""
        if self.joined_at is None or self._edge.is_quiet:
            return INTERVAL_S
        return 0.0 if self._next is None else max(0.0, self._edge.due_at(self._next) - time.monotonic())

    def _publish(self) -> None:
        with self._edge.publishing:
            if self._edge.is_quiet:
                return
            number = self._edge.number_now() + 1 if self._next is None else self._next
            self._next = number + 1
            self.sent.append((number, time.monotonic()))
        self._connection.send_text(event("tick", self._edge.channel, number))

    def _answer(self, received: Frame) -> bool:
        """False: the connection is over."""
        if received.opcode == CLOSE:
            self._connection.send(frame(CLOSE, received.payload[:2]))
            return False
        if received.opcode == PING:
            self._connection.send(frame(PONG, received.payload))
        elif received.opcode == TEXT:
            name, data = received.json["event"], received.json.get("data")
            if name == "bird:ping":
                self._edge.on_ping()
                self._connection.send_text({"event": "bird:pong"})
            elif name == "bird:subscribe":
                is_admitted = self._edge.admits(data)
                self._connection.send_text(succeeded(data["channel"]) if is_admitted else REFUSED)
                if is_admitted and data["channel"] == self._edge.channel:
                    self.joined_at = time.monotonic()
        return True


class LabEdge:
    """`context` for TLS. The next connections meet the faults, one each; those behind them are served well."""

    def __init__(
        self,
        server: ScriptedServer,
        context: ssl.SSLContext | None = None,
        faults: list[Fault] | None = None,
        activity_timeout_s: int = 120,
        on_fault: Callable[[], None] = lambda: None,
        channel: str = CHANNEL,
    ) -> None:
        self.server = server
        self.context = context
        self.faults = deque(faults or [])
        self.channel = channel
        self.activity_timeout_s = activity_timeout_s
        self.sessions: list[Session] = []
        self.accepted = 0
        self.is_quiet = False
        self.on_ping: Callable[[], None] = lambda: None
        self.publishing = threading.Lock()
        self._on_fault = on_fault
        self.host, self.port = server.host, server.port
        self._began = time.monotonic()
        self._connections: list[Connection] = []
        self._acceptor = self._start_accepting()

    def number_now(self) -> int:
        return int((time.monotonic() - self._began) / INTERVAL_S)

    def due_at(self, number: int) -> float:
        return self._began + number * INTERVAL_S

    def fall_silent(self) -> None:
        """Nothing is published from now on."""
        with self.publishing:
            self.is_quiet = True

    def admits(self, _subscribe: Mapping[str, str]) -> bool:
        """Whether the data of a subscribe is in order."""
        return True

    def speak(self) -> None:
        """The numbers that are due from now on are published again."""
        with self.publishing:
            for session in self.sessions:
                session.skip()
            self.is_quiet = False

    def go_down(self) -> None:
        """Refuses new connections, and ends with RST those that there are."""
        self.server.close()
        self._acceptor.join()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.reset()

    def come_up(self) -> None:
        """Listens again, on the same port, which somebody must have reserved."""
        self.server = ScriptedServer(address=self.server.address, port=self.port)
        self._acceptor = self._start_accepting()

    def carry_out(self, fault: Fault, connection: Connection) -> None:
        self._on_fault()
        fault(connection)

    def _start_accepting(self) -> threading.Thread:
        thread = threading.Thread(target=self._accept, daemon=True)
        thread.start()
        return thread

    def _accept(self) -> None:
        self.server.listener.settimeout(None)
        while True:
            try:
                sock, _ = self.server.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
            self.accepted += 1
            connection = Connection(sock, PATIENCE_S)
            self._connections.append(connection)
            fault = self.faults.popleft() if self.faults else None
            threading.Thread(target=self._serve, args=[connection, self.accepted, fault], daemon=True).start()

    def _serve(self, connection: Connection, number: int, fault: Fault | None) -> None:
        # However a client goes away is none of the edge's business. Who has met a fault may wait for ever.
        with contextlib.suppress(OSError, ValueError, AssertionError):
            if fault is not None:
                self.carry_out(fault, connection)
                return
            if self.context is not None:
                connection.start_tls(self.context)
            session = Session(self, connection)
            self.sessions.append(session)
            session.serve(number)

    def close(self) -> None:
        self.server.close()
        for connection in self._connections:
            connection.close()

    def __enter__(self) -> LabEdge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
