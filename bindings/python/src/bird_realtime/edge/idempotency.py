"""Replay of REST responses by idempotency key (Bird protocol §20.9)."""

from __future__ import annotations

from dataclasses import dataclass

from .replies import Reply

WINDOW_S = 3 * 3600.0
LIMIT_ENTRIES = 10_000


@dataclass
class _Entry:
    fingerprint: bytes
    claimed_at: float
    reply: Reply | None = None


class InProgress(Exception):  # noqa: N818
    """The first request with this key has not been answered yet."""


class KeyReused(Exception):  # noqa: N818
    """The key belongs to a different request."""


class IdempotencyCache:
    """Responses of the last three hours, at most `LIMIT_ENTRIES` of them; the oldest goes first."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}  # in order of arrival

    def claim(self, key: str, fingerprint: bytes, now: float) -> Reply | None:
        """The response to replay; after None the caller owns the key and must `complete` or `release` it."""
        while self._entries and next(iter(self._entries.values())).claimed_at <= now - WINDOW_S:
            self._drop_oldest()
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= LIMIT_ENTRIES:
                self._drop_oldest()
            self._entries[key] = _Entry(fingerprint, now)
            return None
        if entry.fingerprint != fingerprint:
            raise KeyReused
        if entry.reply is None:
            raise InProgress
        return entry.reply

    def complete(self, key: str, reply: Reply) -> None:
        """Keeps the response of a claimed key."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.reply = reply

    def release(self, key: str) -> None:
        """Gives a claimed key back, so that the request may be tried again."""
        self._entries.pop(key, None)

    def _drop_oldest(self) -> None:
        del self._entries[next(iter(self._entries))]
