"""The state of the edge and its rules: connections, subscriptions, members, fan-out (Bird protocol §8 on).

Pure: it reads no clock and does no I/O. Every change returns its effects, in the order in which they happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Union

from . import signing
from .channel import Channel, Member
from .config import EdgeConfig
from .event_cache import EventCache
from .frames import Frame, Request, RequestError, error_frame
from .jsontext import JSONTextError, dump, object_members, parse
from .names import (
    CLIENT_EVENT_PREFIX,
    MEMBER_CHANNEL_PREFIX,
    Kind,
    channel_problem,
    event_problem,
    kind_of,
    member_id_problem,
)
from .watchlists import Watchlists, status_frame

PROTOCOL_VERSION = "7"
COUNT_THROTTLE_CONNECTIONS = 100
COUNT_THROTTLE_INTERVAL_S = 5.0
CLIENT_EVENT_WINDOW_S = 1.0
CLIENT_EVENT_RATE_CODE = 4301
WATCHLIST_LIMIT_CODE = 4302

_SIGNED_KINDS = (Kind.PRIVATE, Kind.PRESENCE, Kind.ENCRYPTED)


@dataclass(frozen=True)
class Send:
    """Send one frame to each of these connections."""

    connection_ids: tuple[str, ...]
    frame: Frame


@dataclass(frozen=True)
class Close:
    """Close a connection, which the hub has already forgotten."""

    connection_id: str
    code: int
    reason: str


@dataclass(frozen=True)
class CountLater:
    """Call `Hub.send_count` for the channel after `delay_s` seconds."""

    channel: str
    delay_s: float


Effect = Union[Send, Close, CountLater]


@dataclass
class Connection:
    """What the hub knows of one connection."""

    connection_id: str
    opened_at: float
    identity: str | None = None
    authorized: bool = False
    channels: dict[str, None] = field(default_factory=dict)  # a set in order of subscription
    client_event_times: deque[float] = field(default_factory=deque)


class Hub:
    """All connections and channels. What is public and no container may change at any time; `keys` are the live
    ones."""

    def __init__(self, config: EdgeConfig) -> None:
        self.app = config.app
        self.keys = {config.app_key: config.app_secret}
        self.strict = config.strict
        self.activity_timeout_s = config.activity_timeout_s
        self.client_events_per_s = config.client_events_per_s
        self.client_event_sender_key = config.client_event_sender_key
        self.cache = EventCache(config.cache_ttl_s)
        self.connections: dict[str, Connection] = {}
        self._config = config
        self._channels: dict[str, Channel] = {}
        self._watchlists = Watchlists()

    # Connections

    def refusal(self, app_key: str | None, protocol: str | None) -> tuple[int, str] | None:
        """Why a new socket is refused, as close code and reason. `app_key` is None off the path of an app."""
        if app_key is None:
            return 4005, "path not found"
        if app_key not in self.keys:
            return 4001, f"app key {app_key} does not exist"
        if protocol is None:
            return 4008, "no protocol version given"
        if protocol != PROTOCOL_VERSION:
            return 4007, f"protocol version {protocol} is not supported"
        if self.app.status == "suspended":
            return 4003, "app is suspended"
        if self.app.connection_quota is not None and len(self.connections) >= self.app.connection_quota:
            return 4004, "app is over its connection quota"
        return None

    def open(self, connection_id: str, now: float) -> None:
        """Registers a connection; `handshake` greets it."""
        self.connections[connection_id] = Connection(connection_id, now)

    def handshake(self, connection_id: str) -> list[Effect]:
        """The first frame of a connection, unless it has gone already."""
        if connection_id not in self.connections:
            return []
        data = {"connection_id": connection_id, "activity_timeout": self.activity_timeout_s}
        return [Send((connection_id,), Frame("bird:connection_established", data=dump(data)))]

    def leave(self, connection_id: str, now: float) -> list[Effect]:
        """Forgets a connection that is gone; nothing is sent to it any more."""
        connection = self.connections.pop(connection_id, None)
        if connection is None:
            return []
        effects = [effect for name in connection.channels for effect in self._leave_channel(connection, name, now)]
        member_id = connection.identity
        if member_id is not None and self._watchlists.leave(connection_id, member_id):
            effects += self._tell_watchers(connection, status_frame(offline=[member_id]))
        return effects

    def terminate(self, connection_id: str, code: int, reason: str, now: float) -> list[Effect]:
        """Closes a connection and forgets it."""
        if connection_id not in self.connections:
            return []
        return [Close(connection_id, code, reason), *self.leave(connection_id, now)]

    def expire_unauthorized(self, connection_id: str, now: float) -> list[Effect]:
        """Closes a connection that has proved nothing by the deadline for authorized connections."""
        connection = self.connections.get(connection_id)
        if connection is None or connection.authorized or not self.app.authorized_connections:
            return []
        return self.terminate(connection_id, 4009, "not authorized within timeout", now)

    # Requests of clients

    def handle(self, connection_id: str, request: Request, now: float) -> list[Effect]:
        """Acts on a message of a client. A refusal becomes an error frame; the connection stays open."""
        connection = self.connections.get(connection_id)
        if connection is None:
            return []
        try:
            if request.event == "bird:ping":
                return [Send((connection_id,), Frame("bird:pong"))]
            if request.event == "bird:pong":
                return []
            if request.event == "bird:subscribe":
                return self._subscribe(connection, request, now)
            if request.event == "bird:unsubscribe":
                return self._unsubscribe(connection, request, now)
            if request.event == "bird:signin":
                return self._signin(connection, request)
            return self._client_event(connection, request, now)
        except RequestError as error:
            return self.refuse(connection_id, error)

    def refuse(self, connection_id: str, error: RequestError) -> list[Effect]:
        """Reports `error` to the client."""
        return [Send((connection_id,), error_frame(error))]

    def _subscribe(self, connection: Connection, request: Request, now: float) -> list[Effect]:
        fields = request.fields()
        name = _string(fields, "channel", request.event)
        if name in connection.channels:
            if self.strict:
                raise RequestError(f"Existing subscription to channel {name}")
            return [_success(connection, self._channels[name])]
        member = self._admit(connection, name, fields)
        channel = self._channels.setdefault(name, Channel(name))
        others = channel.connection_ids
        is_new_member = channel.join(connection.connection_id, member)
        connection.channels[name] = None
        effects: list[Effect] = [_success(connection, channel)]
        cached = self.cache.last(name, now)
        if cached is not None:
            effects.append(Send((connection.connection_id,), cached))
        if member is not None and is_new_member and others:
            effects.append(Send(others, Frame("bird_internal:member_added", name, _member_text(member))))
        return effects + self._count_changed(channel, now)

    def _admit(self, connection: Connection, name: str, fields: dict[str, Any]) -> Member | None:
        """Checks that the connection may subscribe; the member it is on a presence channel."""
        kind = kind_of(name)
        if kind is Kind.MEMBER:
            if connection.identity is None or name != MEMBER_CHANNEL_PREFIX + connection.identity:
                raise RequestError(f"Not signed in as the member of {name}")
            return None
        problem = channel_problem(name)
        if problem is not None:
            raise RequestError(f"Invalid channel name {name}: {problem}")
        if kind not in _SIGNED_KINDS:
            return None
        member_data = None
        if kind is Kind.PRESENCE:
            member_data = _string(fields, "member_data", f"bird:subscribe to {name}")
        auth = _string(fields, "auth", f"bird:subscribe to {name}")
        self._verify(auth, signing.channel_string(connection.connection_id, name, member_data))
        member = None if member_data is None else self._presence_member(name, member_data)
        connection.authorized = True
        return member

    def _verify(self, auth: str, signed: str) -> None:
        if not signing.is_valid(auth, signed, self.keys):
            raise RequestError(
                f"Invalid signature: expected <app key>:<HMAC-SHA256 hex digest of {signed}> with a live key"
            )

    def _presence_member(self, name: str, member_data: str) -> Member:
        member = _member(member_data)
        if member.info is not None and len(member.info.encode()) > self._config.member_info_limit_bytes:
            raise RequestError(f"member_info is larger than {self._config.member_info_limit_bytes} bytes")
        members = self.member_ids(name)
        if member.member_id not in members and len(members) >= self._config.presence_limit_members:
            raise RequestError(f"{name} already has {self._config.presence_limit_members} members")
        return member

    def _unsubscribe(self, connection: Connection, request: Request, now: float) -> list[Effect]:
        name = _string(request.fields(), "channel", request.event)
        if name in connection.channels:
            del connection.channels[name]
            return self._leave_channel(connection, name, now)
        if self.strict:
            raise RequestError(f"No current subscription to channel {name}, or subscription in progress")
        return []

    def _signin(self, connection: Connection, request: Request) -> list[Effect]:
        fields = request.fields()
        auth = _string(fields, "auth", request.event)
        member_data = _string(fields, "member_data", request.event)
        self._verify(auth, signing.signin_string(connection.connection_id, member_data))
        member = _member(member_data)
        watchlist = _watchlist(member_data)
        if connection.identity not in (None, member.member_id):
            raise RequestError(f"Already signed in as member {connection.identity}")
        connection.identity = member.member_id
        connection.authorized = True
        data = dump({"member_data": _member_text(member)})
        effects: list[Effect] = [Send((connection.connection_id,), Frame("bird:signin_success", data=data))]
        return effects + self._watch(connection, member.member_id, watchlist)

    def _watch(self, connection: Connection, member_id: str, watchlist: tuple[str, ...]) -> list[Effect]:
        """Notes who has signed in and whom that member watches, and tells who is to know."""
        limit = self._config.watchlist_limit_members
        is_new = self._watchlists.sign_in(connection.connection_id, member_id, watchlist[:limit])
        if not self.app.watchlist_events:
            return []
        effects: list[Effect] = []
        if len(watchlist) > limit:
            text = f"The watchlist has {len(watchlist)} members; the first {limit} are kept"
            effects += self.refuse(connection.connection_id, RequestError(text, WATCHLIST_LIMIT_CODE))
        snapshot = self._watchlists.snapshot(connection.connection_id)
        if snapshot is not None:
            effects.append(Send((connection.connection_id,), snapshot))
        if is_new:
            effects += self._tell_watchers(connection, status_frame(online=[member_id]))
        return effects

    def _tell_watchers(self, connection: Connection, frame: Frame) -> list[Effect]:
        """Tells those who watch the member of this connection, which itself knows."""
        if not self.app.watchlist_events or connection.identity is None:
            return []
        watchers = self._watchlists.watchers_of(connection.identity, but=connection.connection_id)
        return [Send(watchers, frame)] if watchers else []

    def _client_event(self, connection: Connection, request: Request, now: float) -> list[Effect]:
        event, name = request.event, request.channel
        if not event.startswith(CLIENT_EVENT_PREFIX):
            raise RequestError(f"Unknown event {event}; the name of a client event starts with client-")
        problem = event_problem(event)
        if problem is not None:
            raise RequestError(f"Invalid event {event}: {problem}")
        if not self.app.client_events:
            raise RequestError("To send client events, turn on the client_events flag of the app")
        if name is None or kind_of(name) not in (Kind.PRIVATE, Kind.PRESENCE):
            raise RequestError("Client events need a private or presence channel")
        if name not in connection.channels:
            raise RequestError(f"Client event to {name} without a subscription")
        if request.data is not None and len(request.data.encode()) > self._config.client_event_limit_bytes:
            raise RequestError(f"Client event is larger than {self._config.client_event_limit_bytes} bytes")
        self._charge_client_event(connection, now)
        sender = self._channels[name].member_of(connection.connection_id)
        key = self.client_event_sender_key
        extra = ((key, sender),) if key is not None and sender is not None else ()
        return self._fan_out(name, Frame(event, name, request.data, extra), exclude=connection.connection_id)

    def _charge_client_event(self, connection: Connection, now: float) -> None:
        times = connection.client_event_times
        while times and times[0] <= now - CLIENT_EVENT_WINDOW_S:
            times.popleft()
        if len(times) >= self.client_events_per_s:
            raise RequestError(
                f"More than {self.client_events_per_s} client events in a second",
                CLIENT_EVENT_RATE_CODE,
            )
        times.append(now)

    # Requests of the customer's servers

    def publish(
        self, event: str, channels: Iterable[str], data: str | None, now: float, exclude: str | None = None
    ) -> list[Effect]:
        """Sends an event to the subscribers of each distinct channel. `data` is JSON text or None."""
        effects: list[Effect] = []
        for name in dict.fromkeys(channels):
            frame = Frame(event, name, data)
            self.cache.store(name, frame, now)
            effects += self._fan_out(name, frame, exclude)
        return effects

    def send_to_member(self, member_id: str, event: str, data: str | None) -> list[Effect]:
        """Sends an event over the member channel."""
        name = MEMBER_CHANNEL_PREFIX + member_id
        return self._fan_out(name, Frame(event, name, data))

    def disconnect_member(self, member_id: str, now: float) -> list[Effect]:
        """Closes every connection that is signed in as the member."""
        return [
            effect
            for connection_id in self._watchlists.connections_of(member_id)
            for effect in self.terminate(connection_id, 4009, "Member connections terminated", now)
        ]

    def channel_names(self) -> list[str]:
        """The occupied channels, member channels included, sorted."""
        return sorted(self._channels)

    def connection_count(self, name: str) -> int:
        """How many connections are subscribed to the channel."""
        channel = self._channels.get(name)
        return 0 if channel is None else len(channel.connection_ids)

    def member_ids(self, name: str) -> tuple[str, ...]:
        """The members of a presence channel, in order of arrival."""
        channel = self._channels.get(name)
        return () if channel is None else channel.member_ids

    def send_count(self, name: str, now: float) -> list[Effect]:
        """Sends the connection count that `CountLater` put off."""
        channel = self._channels.get(name)
        if channel is None:
            return []
        channel.count_scheduled = False
        return self._count_changed(channel, now)

    # Effects

    def _fan_out(self, name: str, frame: Frame, exclude: str | None = None) -> list[Effect]:
        channel = self._channels.get(name)
        ids = () if channel is None else tuple(id_ for id_ in channel.connection_ids if id_ != exclude)
        return [Send(ids, frame)] if ids else []

    def _leave_channel(self, connection: Connection, name: str, now: float) -> list[Effect]:
        channel = self._channels[name]
        gone = channel.leave(connection.connection_id)
        if not channel.connection_ids:
            del self._channels[name]
            return []
        effects: list[Effect] = []
        if gone is not None:
            effects += self._fan_out(name, Frame("bird_internal:member_removed", name, dump({"member_id": gone})))
        return effects + self._count_changed(channel, now)

    def _count_changed(self, channel: Channel, now: float) -> list[Effect]:
        if not self.app.connection_count_events or channel.kind in (Kind.PRESENCE, Kind.MEMBER):
            return []
        ids = channel.connection_ids
        wait_s = channel.count_sent_at + COUNT_THROTTLE_INTERVAL_S - now
        if len(ids) > COUNT_THROTTLE_CONNECTIONS and wait_s > 0:
            if channel.count_scheduled:
                return []
            channel.count_scheduled = True
            return [CountLater(channel.name, wait_s)]
        channel.count_sent_at = now
        data = dump({"connection_count": len(ids)})
        return [Send(ids, Frame("bird_internal:connection_count", channel.name, data))]


def _success(connection: Connection, channel: Channel) -> Send:
    frame = Frame("bird_internal:subscription_succeeded", channel.name, channel.roster())
    return Send((connection.connection_id,), frame)


def _string(fields: dict[str, Any], key: str, where: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        raise RequestError(f"{where} needs {key} as a non-empty string")
    return value


def _member(member_data: str) -> Member:
    """The member that a backend signed. A numeric id counts as its decimal string."""
    try:
        members = object_members(member_data)
    except JSONTextError as error:
        raise RequestError(f"member_data: {error}") from None
    member_id = parse(members.get("member_id", "null"))
    if isinstance(member_id, int) and not isinstance(member_id, bool):
        member_id = str(member_id)
    if not isinstance(member_id, str):
        raise RequestError("member_data needs a member_id that is a string or an integer")
    problem = member_id_problem(member_id)
    if problem is not None:
        raise RequestError(f"Invalid member_id {member_id}: {problem}")
    return Member(member_id, members.get("member_info"))


def _watchlist(member_data: str) -> tuple[str, ...]:
    """Whom the member that a backend signed watches, each once."""
    watched = parse(object_members(member_data).get("watchlist", "[]"))
    if isinstance(watched, list):
        ids = [str(id_) if type(id_) is int else id_ for id_ in watched]
        if all(isinstance(id_, str) and member_id_problem(id_) is None for id_ in ids):
            return tuple(dict.fromkeys(ids))
    raise RequestError("The watchlist in member_data must be an array of member ids")


def _member_text(member: Member) -> str:
    """The member as JSON text, without what else the backend signed (such as a watchlist)."""
    info = "" if member.info is None else f',"member_info":{member.info}'
    return f'{{"member_id":{dump(member.member_id)}{info}}}'
