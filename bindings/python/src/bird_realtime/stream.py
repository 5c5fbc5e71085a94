"""Events as an iterator, for ``for event in channel`` and ``for event in bird.events()``."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Callable

from .bindings import Binding, GloballyBindable
from .errors import BirdRealtimeError
from .events import Event

if TYPE_CHECKING:
    from .client import BirdRealtime
    from .delivery import Delivery

#: events that one stream holds (and the rest of a batch) before delivery pauses, and with it the reading of the socket
STREAM_EVENTS_MAX = 65_536


class Buffer:
    """Events delivered to a stream and not yet taken."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque()
        #: the thread that takes them
        self.consumer = get_ident()

    @property
    def is_full(self) -> bool:
        return len(self.events) >= STREAM_EVENTS_MAX


class EventStream(Iterator[Event]):
    """Application events since it was made. It holds what the loop has not taken yet, until it is closed or dropped."""

    def __init__(
        self,
        source: GloballyBindable,
        client: BirdRealtime,
        timeout: float | None,
        is_over: Callable[[], bool],
        failure: Callable[[], BirdRealtimeError | None],
    ) -> None:
        self._buffer = Buffer()
        self._client = client
        self._timeout = timeout
        self._is_over = is_over
        self._failure = failure
        binding = source._add_global(self._buffer.events.append)
        client._delivery.add_buffer(self._buffer)
        self._close = weakref.finalize(self, _close, source, binding, client._delivery, self._buffer)
        self._close.atexit = False

    def close(self) -> None:
        """Takes no more events; those it holds are dropped."""
        self._close()
        self._buffer.events.clear()

    def __next__(self) -> Event:
        buffer = self._buffer
        buffer.consumer = get_ident()
        if not buffer.events and self._close.alive:
            self._client._wait(lambda: bool(buffer.events) or self._is_over(), self._timeout)
        if buffer.events:
            return buffer.events.popleft()
        failure = self._failure()
        if failure is not None:
            raise failure
        raise StopIteration


def _close(source: GloballyBindable, binding: Binding, delivery: Delivery, buffer: Buffer) -> None:
    if delivery.is_forked:
        return
    source._remove_global(binding)
    delivery.remove_buffer(buffer)
