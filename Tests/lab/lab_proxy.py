"""An HTTP proxy whose tunnels break as a case orders it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType

from lab_edge import Fault
from scripted_server import Connection, ScriptedServer

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
CHUNK_BYTES = 65536


class LabProxy:
    """The next tunnels meet the faults, one each; all others lead to the edge."""

    def __init__(
        self, edge_port: int, on_fault: Callable[[], None], faults: Sequence[Fault] = (), port: int = 0
    ) -> None:
        self._server = ScriptedServer(port=port)
        self._edge_port = edge_port
        self._on_fault = on_fault
        self._faults = deque(faults)
        self._ends: list[Connection] = []
        self._swallowed: set[Connection] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self) -> str:
        return self._server.host

    def reset_tunnels(self) -> None:
        """Those that there are."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.socket.shutdown(socket.SHUT_RDWR)  # wakes whoever reads
                end.reset()
        self._ends = []

    def swallow_tunnels(self) -> None:
        """Nothing that is read in those that there are comes out at the other end."""
        self._swallowed.update(self._ends)

    def _accept(self) -> None:
        self._server.listener.settimeout(None)
        while True:
            try:
                sock, _ = self._server.listener.accept()
            except OSError:
                return
            client = Connection(sock)
            self._ends.append(client)
            fault = self._faults.popleft() if self._faults else None
            threading.Thread(target=self._serve, args=[client, fault], daemon=True).start()

    def _serve(self, client: Connection, fault: Fault | None) -> None:
        with contextlib.suppress(OSError):
            client.read_request()
            if fault is not None:
                self._on_fault()
                fault(client)
                return
            edge = Connection(socket.create_connection(("127.0.0.1", self._edge_port)))
            self._ends.append(edge)
            client.send(ESTABLISHED)
            client.socket.settimeout(None)
            edge.socket.settimeout(None)
            threading.Thread(target=self._pump, args=[edge, client], daemon=True).start()
            self._pump(client, edge)

    def _pump(self, source: Connection, sink: Connection) -> None:
        with contextlib.suppress(OSError):
            while data := source.socket.recv(CHUNK_BYTES):
                if source not in self._swallowed:
                    sink.socket.sendall(data)
        if source not in self._swallowed:
            with contextlib.suppress(OSError):
                sink.socket.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> LabProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for end in self._ends:
            end.close()
