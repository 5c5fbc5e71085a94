"""``bird.member.watchlist``: who is there of the members that the one signed in watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .bindings import Bindable, Binding, Bindings, Handler

if TYPE_CHECKING:
    from .client import BirdRealtime

ONLINE, OFFLINE = "online", "offline"
#: as many as the library keeps for handlers that are bound late
WATCHED_MEMBERS_MAX = 10_000


class Watchlist(Bindable):
    """The events ``online`` and ``offline``, each with a list of member ids: after a signin those of the whole list
    that its identity carries, later those that change.

    A handler that is bound when that has been told already is called with who is online, or offline, now.
    """

    def __init__(self, client: BirdRealtime) -> None:
        super().__init__(client._lock, client._check_process)
        self._client = client
        #: id -> the status last told, in order of arrival
        self._statuses: dict[str, str] = {}

    @property
    def online(self) -> list[str]:
        """The ids of those who are online. Inside a handler this is as of its event; empty when not signed in."""
        return self._with_status(ONLINE)

    @property
    def offline(self) -> list[str]:
        """The ids of those who are not."""
        return self._with_status(OFFLINE)

    def _with_status(self, status: str) -> list[str]:
        self._check_process()
        with self._lock:
            return [member_id for member_id, each in self._statuses.items() if each == status]

    def _add(self, event: str, handler: Handler) -> Binding:
        """The list may come before the program has bound its handler, which then gets it late."""
        with self._lock:
            binding = super()._add(event, handler)
            ids = self._with_status(event)
            if ids:
                self._client._delivery.post(lambda: self._tell(binding, ids))
        return binding

    def _tell(self, binding: Binding, ids: list[str]) -> None:
        self._client._router.emit((binding,), ids)

    def _announce(self, status: str, ids: list[str]) -> Bindings:
        """Takes up what has come and gives the handlers to run; those bound from now on get it when they are bound."""
        with self._lock:
            if status in (ONLINE, OFFLINE):
                for member_id in ids:
                    if member_id in self._statuses or len(self._statuses) < WATCHED_MEMBERS_MAX:
                        self._statuses[member_id] = status
            return self._named.get(status, ())

    def _forget(self) -> None:
        """Another signin may bring another list, and without a connection nobody knows."""
        with self._lock:
            self._statuses = {}
