"""The last event of each cache channel (Bird protocol §15)."""

from __future__ import annotations

from .frames import Frame
from .names import Kind, kind_of

CACHED_CHANNELS_MAX = 10_000

_CACHE_SEGMENT = "cache-"


def is_cache_channel(name: str) -> bool:
    """Whether a `cache-` segment follows the prefix of the kind."""
    kind = kind_of(name)
    return kind is not Kind.MEMBER and name.startswith(_CACHE_SEGMENT, len(kind.value))


class EventCache:
    """What was published last on each cache channel, whoever is subscribed, for `ttl_s` seconds."""

    def __init__(self, ttl_s: float) -> None:
        self.ttl_s = ttl_s
        self._events: dict[str, tuple[float, Frame]] = {}  # the oldest first

    def store(self, name: str, frame: Frame, now: float) -> None:
        """Keeps the frame, if the channel is one that caches."""
        if not is_cache_channel(name):
            return
        self._events.pop(name, None)
        while len(self._events) >= CACHED_CHANNELS_MAX:
            del self._events[next(iter(self._events))]
        self._events[name] = (now, frame)

    def last(self, name: str, now: float) -> Frame | None:
        """The event to send to a new subscriber; a miss is an event as well. None: the channel does not cache."""
        if not is_cache_channel(name):
            return None
        stored_at, frame = self._events.get(name, (now, None))
        if frame is None or now - stored_at >= self.ttl_s:
            return Frame("bird:cache_miss", name)
        return frame

    def clear(self) -> None:
        self._events.clear()
