"""``bird.connection``: the state of the connection and its events."""

from __future__ import annotations

import threading
from typing import Callable

from . import _abi
from .bindings import Bindable
from .errors import BirdRealtimeError, ConnectionFailed, InvalidArgument
from .events import StateChange

STATES = frozenset(_abi.STATE_NAMES.values())
EVENTS = STATES | {
    "state_change",
    "connecting_in",
    "connection_lost",
    "error",
    "signed_in",
    "signin_error",
}


class Connection(Bindable):
    """Events, each with what its handlers receive:

    ``state_change``, the name of each state, ``connecting_in``: a StateChange; ``error``, ``signin_error``: an
    exception; ``signed_in``: a Member; ``connection_lost``: None.
    """

    def __init__(
        self, lock: threading.RLock, state: Callable[[], str], connection_id: Callable[[], str | None]
    ) -> None:
        super().__init__(lock)
        self._live_state = state
        self._live_connection_id = connection_id
        #: why the edge refused the connection, None unless the state is failed
        self.error: BirdRealtimeError | None = None

    @property
    def state(self) -> str:
        """initialized, connecting, connected, unavailable, disconnected or failed, at this moment."""
        return self._live_state()

    @property
    def connection_id(self) -> str | None:
        """None when there is none."""
        return self._live_connection_id()

    def _prepare(self, event: str) -> None:
        if event not in EVENTS:
            raise InvalidArgument(
                f"the connection has no event {event!r}; it has {', '.join(sorted(EVENTS))}", field="event"
            )

    def _note(self, change: StateChange) -> None:
        self.error = None
        if change.current == "failed":
            self.error = ConnectionFailed(change.reason_text, status=change.reason, area="connection", code=change.code)
