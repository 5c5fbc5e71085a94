"""A channel: who is subscribed and, for presence, which members that makes (Bird protocol §10)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .jsontext import dump
from .names import Kind, kind_of


@dataclass(frozen=True)
class Member:
    """A presence member as its backend signed it. `info` is JSON text, or None when there was none."""

    member_id: str
    info: str | None


@dataclass
class _Presence:
    info: str | None
    connections: int = 1


@dataclass
class Channel:
    """One channel. A member joins with its first connection and leaves with its last."""

    name: str
    kind: Kind = field(init=False)
    count_sent_at: float = float("-inf")
    count_scheduled: bool = False
    _subscribers: dict[str, str | None] = field(default_factory=dict)  # connection id to member id
    _members: dict[str, _Presence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kind = kind_of(self.name)

    @property
    def connection_ids(self) -> tuple[str, ...]:
        return tuple(self._subscribers)

    @property
    def member_ids(self) -> tuple[str, ...]:
        return tuple(self._members)

    def member_of(self, connection_id: str) -> str | None:
        """The id of the member that a subscribed connection is here."""
        return self._subscribers[connection_id]

    def join(self, connection_id: str, member: Member | None) -> bool:
        """Subscribes the connection; whether `member` is new here."""
        self._subscribers[connection_id] = None if member is None else member.member_id
        if member is None:
            return False
        presence = self._members.get(member.member_id)
        if presence is None:
            self._members[member.member_id] = _Presence(member.info)
            return True
        presence.connections += 1
        return False

    def leave(self, connection_id: str) -> str | None:
        """Unsubscribes the connection; the id of the member who is gone with it, if any."""
        member_id = self._subscribers.pop(connection_id)
        if member_id is None:
            return None
        presence = self._members[member_id]
        presence.connections -= 1
        if presence.connections:
            return None
        del self._members[member_id]
        return member_id

    def roster(self) -> str:
        """The data of the success frame: the whole roster on a presence channel, else an empty object."""
        if self.kind is not Kind.PRESENCE:
            return "{}"
        ids = dump(list(self._members))
        infos = ",".join(f"{dump(id_)}:{presence.info or 'null'}" for id_, presence in self._members.items())
        return f'{{"presence":{{"ids":{ids},"hash":{{{infos}}},"count":{len(self._members)}}}}}'
