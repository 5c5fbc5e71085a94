"""Proxies of the tests': tinyproxy, a SOCKS5 server, and servers that do not do what a proxy should."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from scripted_server import DEADLINE_S, Connection, ScriptedServer

if TYPE_CHECKING:
    from typing_extensions import Self

# Debian's package for servers without a service of its own.
TINYPROXY = "tinyproxy"

CONFIGURATION = """\
Listen 127.0.0.1
Port {port}
Timeout 60
LogFile "{directory}/log"
LogLevel Connect
MaxClients 50
Allow 127.0.0.1
DisableViaHeader Yes
{directives}
"""


class Tinyproxy:
    """`directives` are further lines of its configuration, such as `BasicAuth USER PASSWORD`."""

    def __init__(self, directory: Path, directives: str = "") -> None:
        directory.mkdir()
        self._log = directory / "log"
        # It cannot choose a port itself. Nobody else gets this one: it is bound, and never listening.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port = int(self._reserved.getsockname()[1])
        configuration = directory / "tinyproxy.conf"
        configuration.write_text(CONFIGURATION.format(port=self.port, directory=directory, directives=directives))
        self._process = subprocess.Popen([TINYPROXY, "-d", "-c", configuration], env=dict(os.environ))
        deadline = time.monotonic() + DEADLINE_S
        while not self._is_listening():
            assert self._process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.01)

    def _is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def __enter__(self) -> Tinyproxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(DEADLINE_S)
        self._reserved.close()


class Misbehaving:
    """Does the same to everybody who connects."""

    def __init__(self, act: Callable[[Connection], None]) -> None:
        self.server = ScriptedServer()
        self._act = act
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def host(self) -> str:
        return self.server.host

    def _serve(self) -> None:
        self.server.listener.settimeout(None)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            while True:
                sock, _ = self.server.listener.accept()
                connection = stack.enter_context(Connection(sock))
                with contextlib.suppress(OSError):
                    self._act(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.server.close()


@dataclass(frozen=True)
class SocksRequest:
    """What a client asked for; `host` is a name only when the proxy is to resolve it."""

    methods: bytes
    credentials: tuple[str, str] | None
    host: str
    port: int


class SocksProxy(Misbehaving):
    """SOCKS5 (RFC 1928), with user and password (RFC 1929) when it has `credentials`; `reply` 0 is success.

    Names are not resolved: whatever a client asks for is the server on 127.0.0.1 at that port.
    """

    def __init__(self, reply: int = 0, credentials: tuple[str, str] | None = None) -> None:
        self.requests: list[SocksRequest] = []
        self.reply = reply
        self._credentials = credentials
        super().__init__(self._take)

    def _take(self, connection: Connection) -> None:
        threading.Thread(target=self._talk, args=[connection.socket], daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            client.settimeout(DEADLINE_S)
            take = partial(_exactly, client.makefile("rb"))
            methods = take(take(2)[1])
            method = 0 if self._credentials is None else 2
            if method not in methods:
                client.sendall(b"\x05\xff")
                client.close()
                return
            client.sendall(bytes([5, method]))
            given = None
            if method == 2:
                user = take(take(2)[1])
                given = (user.decode(), take(take(1)[0]).decode())
                client.sendall(b"\x01\x00" if given == self._credentials else b"\x01\x01")
                if given != self._credentials:
                    client.close()
                    return
            kind = take(4)[3]
            host = take(take(1)[0]).decode() if kind == 3 else str(ipaddress.ip_address(take(4 if kind == 1 else 16)))
            port = int.from_bytes(take(2), "big")
            self.requests.append(SocksRequest(methods, given, host, port))
            client.sendall(bytes([5, self.reply, 0, 1, 0, 0, 0, 0, 0, 0]))
            if self.reply:
                client.close()
                return
            with socket.create_connection(("127.0.0.1", port)) as server:
                threading.Thread(target=_pump, args=[server, client], daemon=True).start()
                _pump(client, server)


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise ConnectionResetError("the client has gone")
    return data


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        source.settimeout(None)
        while data := source.recv(65536):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
