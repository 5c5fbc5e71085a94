"""Network namespaces: machines of the tests' own, with cables that can be cut. They need root and iproute2."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from scripted_server import DEADLINE_S

CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network without anything but its own loopback, for as long as the context lasts."""

    def __init__(self) -> None:
        # The namespace and all that is in it go with this process, which ends with its input, however this one ends.
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready; exec cat"],  # noqa: S607
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        assert self._holder.stderr is not None
        if self._holder.stdout.readline() != "ready\n":
            problem = self._holder.stderr.read().strip()
            raise AssertionError(f"the tests of the network need root, to make network namespaces: {problem}")
        self.ip("link set lo up")

    @property
    def _path(self) -> str:
        return f"/proc/{self._holder.pid}/ns/net"

    def command(self, *words: str | Path) -> list[str | Path]:
        """These words as a command that runs in the namespace."""
        return ["nsenter", f"--net={self._path}", *words]

    def ip(self, *commands: str) -> None:
        """Carries out commands of ip(8), one after the other."""
        done = subprocess.run(
            self.command("ip", "-batch", "-"),
            input="\n".join(commands),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, f"ip: {done.stderr}"

    def take(self, interface: str) -> None:
        """Moves an interface of this process's own namespace, or of another one by `inside`, to this one."""
        subprocess.run(
            ["ip", "link", "set", interface, "netns", str(self._holder.pid)],  # noqa: S607
            check=True,
        )

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Sockets that the calling thread makes meanwhile are the namespace's."""
        with open("/proc/self/ns/net", "rb") as home, open(self._path, "rb") as away:
            _set_namespace(away.fileno())
            try:
                yield
            finally:
                _set_namespace(home.fileno())

    def __enter__(self) -> Namespace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._holder.communicate(timeout=DEADLINE_S)


def _set_namespace(fd: int) -> None:
    if _libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns: " + os.strerror(ctypes.get_errno()))


def connect(one: Namespace, other: Namespace, interface: str) -> None:
    """A cable: an interface of this name at each end."""
    with one.inside():
        subprocess.run(
            ["ip", "link", "add", interface, "type", "veth", "peer", "name", f"{interface}-far"],  # noqa: S607
            check=True,
        )
        other.take(f"{interface}-far")
    other.ip(f"link set {interface}-far name {interface}", f"link set {interface} up")
    one.ip(f"link set {interface} up")
