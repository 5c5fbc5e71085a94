"""Machines of a case's own, with a cable between them on which everything can vanish, and a name service."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from contextlib import ExitStack
from pathlib import Path

from certificates import Authority
from lab_edge import Fault, LabEdge
from namespaces import Namespace, connect
from scripted_server import ScriptedServer
from trial import Trial

NAME = "edge.test"
EDGE = "198.51.100.1"  # behind the default route
NEAR, GATEWAY = "192.0.2.2", "192.0.2.1"
NEAR6, GATEWAY6 = "2001:db8:1::2", "2001:db8:1::1"
DEFAULT = f"route add default via {GATEWAY} dev cable"
NOBODY = "02:00:00:00:00:99"  # what is sent there vanishes, and nothing tells of it


class Cable:
    """The client's machine, and that of the edge, which speaks TLS on the addresses of `edges`."""

    def __init__(self, trial: Trial, *edges: str) -> None:
        self._trial = trial
        self.near = trial.stack.enter_context(Namespace())
        self.far = trial.stack.enter_context(Namespace())
        connect(self.near, self.far, "cable")
        self.far.ip(
            f"addr add {GATEWAY}/24 dev cable",
            f"addr add {GATEWAY6}/64 dev cable nodad",
            *(f"addr add {address} dev lo" for address in edges if ":" not in address),
            *(f"addr add {address} dev lo nodad" for address in edges if ":" in address),
        )
        self.near.ip(
            f"addr add {NEAR}/24 dev cable",
            f"addr add {NEAR6}/64 dev cable nodad",
            DEFAULT,
            f"route add ::/0 via {GATEWAY6} dev cable",
        )
        self.authority = Authority(trial.directory / "ca")
        names = ",".join([f"DNS:{NAME}", *(f"IP:{address}" for address in edges)])
        self._context = self.authority.server_context(names)

    def edge(self, address: str, *faults: Fault, activity_timeout_s: int = 120) -> LabEdge:
        with self.far.inside():
            server = ScriptedServer(address=address)
        return self._trial.edge_on(server, self._context, *faults, activity_timeout_s=activity_timeout_s)

    def start(
        self,
        edge: LabEdge,
        host: str | None = None,
        command: list[str | Path] | None = None,
        *,
        is_broken: bool = False,
    ) -> None:
        command = self.near.command(*(command or []))
        self._trial.start(edge, host, command, is_broken=is_broken, ca_file=str(self.authority.file))

    def cut(self) -> None:
        """Everything vanishes in both directions; links stay up, and nobody is told."""
        self.near.ip(
            f"neigh replace {GATEWAY} lladdr {NOBODY} dev cable nud permanent",
            f"neigh replace {GATEWAY6} lladdr {NOBODY} dev cable nud permanent",
        )
        self.far.ip(
            f"neigh replace {NEAR} lladdr {NOBODY} dev cable nud permanent",
            f"neigh replace {NEAR6} lladdr {NOBODY} dev cable nud permanent",
        )

    def mend(self) -> None:
        self.near.ip(f"neigh del {GATEWAY} dev cable", f"neigh del {GATEWAY6} dev cable")
        self.far.ip(f"neigh del {NEAR} dev cable", f"neigh del {NEAR6} dev cable")

    def swallow(self, address: str) -> None:
        """What is sent to this address of the edge's vanishes."""
        hop = "2001:db8:1::99" if ":" in address else "192.0.2.99"
        self.near.ip(
            f"neigh replace {hop} lladdr {NOBODY} dev cable nud permanent",
            f"route add {address} via {hop} dev cable",
        )

    def release(self, address: str) -> None:
        self.near.ip(f"route del {address}")


NOERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5
A, AAAA = 1, 28


class Resolver:
    """A name server on the client's machine that knows one name; `code` is what it answers, None is nothing at all."""

    def __init__(self, trial: Trial, machine: Namespace, *addresses: str) -> None:
        self.code: int | None = NOERROR
        self.lost = 0  # so many of the next questions are not answered
        self._addresses = addresses
        self._machine = machine
        self._stack = ExitStack()
        trial.stack.enter_context(self._stack)
        configuration = trial.directory / "resolv.conf"
        configuration.write_text("nameserver 127.0.0.1\n")
        hosts = trial.directory / "hosts"
        hosts.touch()
        # For a program whose /etc/resolv.conf it shall be.
        mounts = f"mount --bind {configuration} /etc/resolv.conf && mount --bind {hosts} /etc/hosts"
        self.command: list[str | Path] = ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"]

    def come_up(self) -> None:
        with self._machine.inside():
            sock = self._stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        sock.bind(("127.0.0.1", 53))
        threading.Thread(target=self._serve, args=[sock], daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                question, client = sock.recvfrom(512)
                if self.lost > 0:
                    self.lost -= 1
                elif self.code is not None:
                    sock.sendto(self._answer(question, self.code), client)

    def _answer(self, question: bytes, code: int) -> bytes:
        """RFC 1035 §4.1; every name has the same addresses."""
        end = question.index(b"\0", 12) + 5
        (kind,) = struct.unpack_from(">H", question, end - 4)
        wanted = {A: socket.AF_INET, AAAA: socket.AF_INET6}.get(kind)
        found = [
            socket.inet_pton(wanted, address)
            for address in self._addresses
            if wanted is not None and (":" in address) == (kind == AAAA) and code == NOERROR
        ]
        head = question[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(found), 0, 0)
        records = b"".join(struct.pack(">HHHIH", 0xC00C, kind, 1, 0, len(data)) + data for data in found)
        return head + question[12:end] + records
