"""Stands in for the name service of a program: each look-up waits until the test answers it (see preload/names.c)."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from pathlib import Path
from types import TracebackType

from paths import PROGRAMS
from scripted_server import DEADLINE_S

EAI_NONAME, EAI_AGAIN, EAI_SYSTEM = -2, -3, -11


class Question:
    """A look-up that hangs until it is answered."""

    def __init__(self, sock: socket.socket, server: NameServer) -> None:
        self._socket = sock
        self._server = server
        thread, self.name, family = sock.makefile(encoding="utf-8").readline().split()
        self.thread = int(thread)
        self.family = socket.AddressFamily(int(family))

    def answer(self, *addresses: str) -> None:
        self._end(" ".join(addresses))

    def fail(self, code: int) -> None:
        self._end(str(code))

    def _end(self, answer: str) -> None:
        self._server.ended(self)
        with self._socket, contextlib.suppress(OSError):  # the program may be gone
            self._socket.sendall(answer.encode() + b"\n")


class NameServer:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "names"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(16)
        self._questions: queue.Queue[Question] = queue.Queue()
        self._lock = threading.Lock()
        self._open: list[Question] = []
        self.open_max = 0
        self.count = 0
        # Names of which all addresses were asked for, and those of which IPv4 alone, behind a look-up that takes long.
        self.whole: list[str] = []
        self.hurried: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def prefix(self) -> list[str | Path]:
        """Before the command of a program that shall ask here."""
        return ["env", f"LD_PRELOAD={PROGRAMS / 'names.so'}", f"BIRD_TEST_NAMES={self.path}"]

    def next(self) -> Question:
        try:
            return self._questions.get(timeout=DEADLINE_S)
        except queue.Empty:
            raise AssertionError("nobody asks for a name") from None

    def next_within(self, seconds: float) -> Question | None:
        """For questions that may or must not come."""
        with contextlib.suppress(queue.Empty):
            return self._questions.get(timeout=seconds)
        return None

    def ended(self, question: Question) -> None:
        with self._lock:
            self._open.remove(question)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                question = Question(sock, self)
                with self._lock:
                    self.count += 1
                    asked = self.whole if question.family == socket.AF_UNSPEC else self.hurried
                    asked.append(question.name)
                    self._open.append(question)
                    self.open_max = max(self.open_max, len(self._open))
                self._questions.put(question)

    def __enter__(self) -> NameServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that is accepting
        self._listener.close()
        with self._lock:
            hanging = list(self._open)
        for question in hanging:
            question.fail(EAI_AGAIN)
