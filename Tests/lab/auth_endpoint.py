"""An authorizer's endpoint that breaks as a case orders it, and an edge that only admits what it has granted."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from lab_edge import Fault, LabEdge
from scripted_server import Connection, ScriptedServer, dump

CHANNEL = "private-orders"
SIGNATURE = "pk_lab:signature"
GRANTED = dump({"auth": SIGNATURE})


class PrivateEdge(LabEdge):
    def __init__(self, on_fault: Callable[[], None]) -> None:
        super().__init__(ScriptedServer(), on_fault=on_fault, channel=CHANNEL)

    def admits(self, subscribe: Mapping[str, str]) -> bool:
        return subscribe.get("auth") == SIGNATURE


class AuthEndpoint:
    """The first connections meet these faults, one each; with `lasting` all others meet that one until it is healed.

    `serves` is what all others meet: a grant, in plaintext, unless it is given.
    """

    def __init__(
        self,
        server: ScriptedServer,
        on_fault: Callable[[], None],
        faults: Sequence[Fault] = (),
        lasting: Fault | None = None,
        serves: Fault | None = None,
    ) -> None:
        self._server = server
        self._serves = serves or grants
        self._on_fault = on_fault
        self._faults = deque(faults)
        self._lasting = lasting
        self._connections: list[Connection] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def url(self) -> str:
        return f"http://{self._server.host}/bird/auth"

    def heal(self) -> None:
        self._lasting = None

    def _accept(self) -> None:
        self._server.listener.settimeout(None)
        while True:
            try:
                sock, _ = self._server.listener.accept()
            except OSError:
                return
            connection = Connection(sock)
            self._connections.append(connection)
            fault = self._faults.popleft() if self._faults else self._lasting
            threading.Thread(target=self._serve, args=[connection, fault], daemon=True).start()

    def _serve(self, connection: Connection, fault: Fault | None) -> None:
        with contextlib.suppress(OSError):  # the client has given it up
            if fault is not None:
                self._on_fault()
                fault(connection)
            else:
                self._serves(connection)

    def __enter__(self) -> AuthEndpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for connection in self._connections:
            connection.close()


def grants(connection: Connection) -> None:
    connection.read_post()
    connection.respond(200, GRANTED, Content_Type="application/json")


def answers(status: int, body: bytes = b"", **headers: str) -> Fault:
    def fault(connection: Connection) -> None:
        connection.read_post()
        connection.respond(status, body, **headers)

    return fault
