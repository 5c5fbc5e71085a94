"""The operating system, or libcurl's memory, fails once: at the first call of a function, at the second, and so on.

The program is told by a status or an error record, the client is connected again as soon as it can be, and nothing is
left of it.
"""

from __future__ import annotations

import errno
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from certificates import Authority
from command_edge import CommandEdge
from name_server import NameServer
from paths import HARNESS, PROGRAMS
from scripted_server import DEADLINE_S
from tls_front import TlsFront

FIGURES = re.compile(r"lives: (\d+), calls refused: (\d+), error records: (\d+)\n")

#: function, what it fails with, and whether a call of the program's may be refused
FAULTS = [
    ("socket", errno.EMFILE),
    ("eventfd", errno.EMFILE),
    ("epoll_create1", errno.ENFILE),
    ("epoll_ctl", errno.ENOMEM),
    ("timerfd_create", errno.ENOMEM),
    ("pthread_create", errno.EAGAIN),
    ("send", errno.ENOBUFS),
    ("recv", errno.ENOMEM),
]
IN_A_CALL = {"eventfd", "epoll_create1", "epoll_ctl", "timerfd_create", "pthread_create"}


@contextmanager
def answering_names(place: Path) -> Iterator[NameServer]:
    """Every name is 127.0.0.1."""
    is_over = threading.Event()
    with NameServer(place) as names:

        def answer() -> None:
            while not is_over.is_set():
                if question := names.next_within(0.05):
                    question.answer("127.0.0.1")

        answering = threading.Thread(target=answer)
        answering.start()
        try:
            yield names
        finally:
            is_over.set()
            answering.join()


def live(
    host: str, mode: str, function: str, code: int, step: int, *options: str, names: NameServer | None = None
) -> tuple[int, int, int]:
    """How many lives had a fault, how many calls were refused, and how many error records came."""
    preloads = [PROGRAMS / "faults.so"] if names is None else [PROGRAMS / "faults.so", PROGRAMS / "names.so"]
    command: list[str | Path] = [
        *(["env"] if names is None else names.prefix),
        f"LD_PRELOAD={':'.join(map(str, preloads))}",
        HARNESS,
        "life_with_one_fault",
        host,
        mode,
        function,
        str(code),
        str(step),
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=6 * DEADLINE_S, check=False)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    figures = FIGURES.fullmatch(done.stdout)
    assert figures is not None, done.stdout
    lives, refused, told = map(int, figures.groups())
    return lives, refused, told


@pytest.mark.parametrize(("function", "code"), FAULTS, ids=[function for function, _ in FAULTS])
def test_one_fault(function: str, code: int, command_edge: CommandEdge) -> None:
    lives, refused, _ = live(command_edge.host, "thread", function, code, 8)
    assert lives > 0
    assert (refused > 0) == (function in IN_A_CALL)


@pytest.mark.parametrize("mode", ["queue", "loop", "host"])
def test_one_fault_in_another_mode(mode: str, command_edge: CommandEdge) -> None:
    lives, refused, _ = live(command_edge.host, mode, "eventfd", errno.EMFILE, 8)
    assert lives >= refused > 0


def test_libcurl_without_memory(command_edge: CommandEdge) -> None:
    """A POST that would lack a header, or more, does not begin."""
    lives, refused, _ = live(command_edge.host, "thread", "memory", errno.ENOMEM, 4)
    assert lives > 5  # the moments differ from run to run
    assert refused == 0


def test_libcurl_without_memory_for_tls(command_edge: CommandEdge, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    with TlsFront(authority.server_context("IP:127.0.0.1"), command_edge.server.port) as front:
        options = ("allow_insecure=0", f"ca_file={authority.file}", f"auth_endpoint=https://{front.host}/")
        lives, refused, _ = live(front.host, "thread", "memory", errno.ENOMEM, 4, *options)
        assert lives > 5
        assert refused == 0


def test_names_and_threads(command_edge: CommandEdge, tmp_path: Path) -> None:
    """The host has a name, which a thread of its own resolves."""
    authority = Authority(tmp_path / "ca")
    context = authority.server_context("DNS:edge.test")
    with answering_names(tmp_path) as names, TlsFront(context, command_edge.server.port) as front:
        place = f"edge.test:{front.port}"
        options = (
            f"ws_host={place}",
            "allow_insecure=0",
            f"ca_file={authority.file}",
            f"auth_endpoint=https://{place}/",
        )
        for function, code in [("getaddrinfo", errno.EMFILE), ("pthread_create", errno.EAGAIN)]:
            lives, _, told = live(command_edge.host, "thread", function, code, 8, *options, names=names)
            assert lives > 0
            assert told > 0, function


@pytest.mark.parametrize("mode", ["thread", "queue", "loop", "host"])
def test_constructors_undo_their_steps(mode: str, command_edge: CommandEdge, tmp_path: Path) -> None:
    """Each call to the system of a queue's, a loop's, a client's and a connection's making fails once."""
    command: list[str | Path] = [
        "env",
        f"LD_PRELOAD={PROGRAMS / 'faults.so'}",
        HARNESS,
        "constructors_undo_their_steps",
    ]
    command += [command_edge.host, mode, f"log_file={tmp_path / 'log'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"
