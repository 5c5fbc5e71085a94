"""What happened on the edge, in order, for tests to look at and to wait on."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

LIMIT_ENTRIES = 10_000
LIMIT_CHARS = 32 * 1024 * 1024


@dataclass(frozen=True)
class Entry:
    """One happening. `at_s` is a reading of the monotonic clock.

    | kind | connection_id | text |
    | --- | --- | --- |
    | `upgrade` | - | path and query of an upgrade request, accepted or not |
    | `refused` | - | close code and reason of an upgrade, or 403 and why a request was not served |
    | `opened` | yes | path and query |
    | `received` | yes | a text message of the client |
    | `closed` | yes | close code, 1006 when there was none |
    | `auth`, `member_auth` | - | JSON body of a request to the auth backend |
    | `rest` | - | method and path of a request to the REST API |
    | `changed` | - | a test control that was used |
    """

    at_s: float
    kind: str
    connection_id: str | None
    text: str


class Journal:
    """The last entries, bounded in number and in text. Written on the edge's thread, read and waited on from any."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._chars = 0
        self._changed = threading.Condition()
        self._version = 0

    def add(self, kind: str, connection_id: str | None = None, text: str = "") -> None:
        with self._changed:
            self._entries.append(Entry(time.monotonic(), kind, connection_id, text))
            self._chars += len(text)
            while len(self._entries) > LIMIT_ENTRIES or self._chars > LIMIT_CHARS:
                self._chars -= len(self._entries.popleft().text)
            self._version += 1
            self._changed.notify_all()

    def entries(self) -> list[Entry]:
        with self._changed:
            return list(self._entries)

    @property
    def version(self) -> int:
        """Grows with every entry."""
        with self._changed:
            return self._version

    def wait_beyond(self, version: int, timeout_s: float) -> bool:
        """Waits until there is an entry newer than `version`; False when `timeout_s` passed first."""
        with self._changed:
            return self._changed.wait_for(lambda: self._version > version, timeout_s)
