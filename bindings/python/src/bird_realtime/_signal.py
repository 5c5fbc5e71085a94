"""Waiting for a change that another thread announces, and whose turn it is."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable


class Signal:
    """Wakes every thread that waits when a change is announced.

    It is no threading.Condition because it must not have a lock of its own: Ctrl-C or a garbage collection may come at
    any point of the calling thread, and what they leave held or try to take again would stop the delivering thread.
    """

    def __init__(self) -> None:
        self._tickets: deque[threading.Lock] = deque()

    def wait(self, is_done: Callable[[], bool], timeout: float = -1) -> None:
        """Returns at the next announcement, after timeout seconds (-1: never), or at once if it is done."""
        ticket = threading.Lock()
        ticket.acquire()
        self._tickets.append(ticket)
        try:
            # Checked only now: from here on no announcement is missed.
            if not is_done():
                ticket.acquire(timeout=timeout)
        finally:
            with contextlib.suppress(ValueError):  # announced meanwhile
                self._tickets.remove(ticket)

    def announce(self) -> None:
        for _ in range(len(self._tickets)):
            try:
                ticket = self._tickets.popleft()
            except IndexError:
                return
            ticket.release()


def is_owned(lock: threading.RLock) -> bool:
    """True if the calling thread has the lock: in what it runs with it or, if a signal handler asks, beneath that."""
    return bool(lock._is_owned())  # type: ignore[attr-defined]
