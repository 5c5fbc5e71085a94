"""The channels of the soak, and the processes' way of talking: a line of JSON, or of words, each way."""

from __future__ import annotations

# The same as in names.c.
NAMES = (
    *("news-1", "news-2", "news-3", "news-4", "cache-1", "cache-2"),
    *("private-1", "private-2", "private-3", "private-cache-1"),
    *("presence-room-1", "presence-room-2", "presence-cache-1", "private-encrypted-1", "private-encrypted-2"),
)
APP_KEY = "pk_soak"
APP_SECRET = "sk_soak"
MASTER_KEY = "a master key of thirty-two bytes"


def payload(number: int, length: int) -> str:
    """The data of an event, which clients can check byte by byte."""
    return f'{{"n":{number},"l":{length},"p":"{chr(ord("a") + number % 26) * length}"}}'
