"""Who is signed in and who watches whom (Bird protocol §12)."""

from __future__ import annotations

from collections.abc import Iterable

from .frames import Frame
from .jsontext import dump

#: connection ids, in order of arrival
_Connections = dict[str, None]


class Watchlists:
    """A member is online while at least one connection is signed in as that member."""

    def __init__(self) -> None:
        self._signed_in: dict[str, _Connections] = {}
        self._watchers: dict[str, _Connections] = {}
        self._lists: dict[str, tuple[str, ...]] = {}  # by connection id

    def connections_of(self, member_id: str) -> tuple[str, ...]:
        """The connections that are signed in as the member."""
        return tuple(self._signed_in.get(member_id, ()))

    def watchers_of(self, member_id: str, but: str) -> tuple[str, ...]:
        """The connections that watch the member, without the connection `but`."""
        return tuple(id_ for id_ in self._watchers.get(member_id, ()) if id_ != but)

    def sign_in(self, connection_id: str, member_id: str, watchlist: tuple[str, ...]) -> bool:
        """Takes up an identity and what it watches, in place of an earlier list; whether the member is online anew."""
        self._forget_list(connection_id)
        self._lists[connection_id] = watchlist
        for watched in watchlist:
            self._watchers.setdefault(watched, {})[connection_id] = None
        connections = self._signed_in.setdefault(member_id, {})
        is_new = not connections
        connections[connection_id] = None
        return is_new

    def leave(self, connection_id: str, member_id: str) -> bool:
        """Forgets a connection that was signed in; whether the member is offline now."""
        self._forget_list(connection_id)
        return _discard(self._signed_in, member_id, connection_id)

    def snapshot(self, connection_id: str) -> Frame | None:
        """How those stand whom the connection watches, if it watches anybody."""
        watchlist = self._lists.get(connection_id, ())
        online = [id_ for id_ in watchlist if id_ in self._signed_in]
        offline = [id_ for id_ in watchlist if id_ not in self._signed_in]
        return status_frame(online=online, offline=offline) if watchlist else None

    def _forget_list(self, connection_id: str) -> None:
        for watched in self._lists.pop(connection_id, ()):
            _discard(self._watchers, watched, connection_id)


def status_frame(*, online: Iterable[str] = (), offline: Iterable[str] = ()) -> Frame:
    """What watchers are told."""
    events = [
        {"name": name, "member_ids": ids} for name, ids in (("online", list(online)), ("offline", list(offline))) if ids
    ]
    return Frame("bird_internal:watchlist_events", data=dump({"events": events}))


def _discard(index: dict[str, _Connections], member_id: str, connection_id: str) -> bool:
    """Takes the connection out; whether it was the member's last."""
    index[member_id].pop(connection_id)
    if index[member_id]:
        return False
    del index[member_id]
    return True
