"""``bird.connection``: the state of the connection and its events."""

from __future__ import annotations

import threading
from typing import Callable

from . import _abi
from .bindings import Bindable
from .errors import BirdRealtimeError, InvalidArgument, class_of
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
#: states that only a call of the program's ends
ENDED = frozenset({"failed", "disconnected"})


class Connection(Bindable):
    """Events, each with what its handlers receive:

    ``state_change``, the name of each state, ``connecting_in``: a StateChange; ``error``, ``signin_error``: an
    exception; ``signed_in``: a Member; ``connection_lost``: None.
    """

    def __init__(
        self,
        lock: threading.RLock,
        check_process: Callable[[], None],
        state: Callable[[], str],
        connection_id: Callable[[], str | None],
    ) -> None:
        super().__init__(lock, check_process)
        self._live_state = state
        self._live_connection_id = connection_id
        #: why no connection will come by itself: the edge refused it (state failed) or the client gave up (state
        #: disconnected); None otherwise
        self.error: BirdRealtimeError | None = None
        #: the last state that handlers have been told
        self._told_state = "initialized"

    @property
    def state(self) -> str:
        """initialized, connecting, connected, unavailable, disconnected or failed, at this moment."""
        return self._live_state()

    @property
    def _has_failed(self) -> bool:
        """True if no connection will come by itself, though the program wants one, and handlers have been told."""
        return self._told_state in ENDED and self.error is not None

    def _expect_connect(self) -> None:
        """An earlier refusal is over, though the record that says so is still to come."""
        self.error = None

    def _expect_disconnect(self) -> None:
        """A wait for "connected" that begins now means a later connection, though this one is still there."""
        if self._told_state in ("connecting", "connected", "unavailable"):
            self._told_state = ""

    def _is(self, state: str) -> bool:
        """True if the connection is in this state and handlers have been told."""
        return self._told_state == state == self.state

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
        if change.current in ENDED and change.reason != _abi.BIRD_OK:
            failure = class_of(change.reason)
            self.error = failure(change.reason_text, status=change.reason, area="connection", code=change.code)
