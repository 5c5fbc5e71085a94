"""What handlers receive. Every handler is called with exactly one of these, or with an exception of errors.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._json import value_or_text
from .errors import BirdRealtimeError

if TYPE_CHECKING:
    from .channel import Channel, PresenceChannel


#: what the library tells of besides application events, by the names that event objects have for it in every dialect
TOLD_EVENTS = (
    "bird:subscription_succeeded",
    "bird:subscription_error",
    "bird:member_added",
    "bird:member_removed",
    "bird:connection_count",
    "bird:cache_miss",
    "bird:decryption_error",
    "bird:error",
)


class Member(NamedTuple):
    """A person of the application: of a presence channel's roster, or the one signed in."""

    member_id: str
    member_info: Any = None


class StateChange(NamedTuple):
    """A transition of the connection, or (``connecting_in``) the announcement of the next attempt."""

    previous: str
    current: str
    #: status of the cause, 0 for the program's own calls
    reason: int
    reason_text: str
    #: WebSocket close code, None if there was none
    code: int | None
    #: attempts since the last handshake or the program's own call; ``connecting_in``: the number of the planned one
    attempt: int
    #: seconds until the next attempt, None if none is planned
    delay: float | None
    #: None unless connected
    connection_id: str | None
    #: option reconnect, when an attempt is planned, else None
    policy: str | None = None


#: stands for data that nobody has asked for yet
UNPARSED: Any = object()


class Event:
    """An event of a channel. ``data`` is parsed when first asked for; ``raw`` is what arrived, untouched."""

    # No __init__: to call it would cost as much as all else that is done to make an event.
    __slots__ = ("_data", "_sender", "channel", "name", "raw")

    name: str
    channel: Channel
    #: the payload's bytes with the wire's one level of string encoding undone; empty if there is none
    raw: bytes
    _data: Any
    _sender: str | None

    def _fill(self, name: str, channel: Channel, raw: bytes, data_kind: int) -> None:
        self.name = name
        self.channel = channel
        self.raw = raw
        self._data = None if data_kind == _abi.BIRD_DATA_NONE else UNPARSED

    @property
    def data(self) -> Any:
        """The payload: the parsed value if it is JSON, else the text; None if there is none."""
        data = self._data
        if data is UNPARSED:
            data = self._data = value_or_text(self.raw)
        return data

    @property
    def text(self) -> str:
        """The payload as text, unparsed."""
        return self.raw.decode()

    @property
    def sender(self) -> str | None:
        """The member id of who sent a client event, where the edge says so: on presence channels. Else None."""
        # Nearly no event has one, and to give each a None would cost each.
        return getattr(self, "_sender", None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} on {self.channel.name!r}, {len(self.raw)} bytes>"


class SubscriptionSucceeded(Event):
    """``bird:subscription_succeeded``. Nothing is replayed: refetch what may have been missed in ``interrupted``
    seconds."""

    __slots__ = ("interrupted", "is_resubscribe", "members", "my_id")

    def __init__(
        self,
        channel: Channel,
        raw: bytes,
        data_kind: int,
        *,
        is_resubscribe: bool,
        interrupted: float,
        members: dict[str, Any],
        my_id: str | None,
    ) -> None:
        self._fill("bird:subscription_succeeded", channel, raw, data_kind)
        self.is_resubscribe = is_resubscribe
        self.interrupted = interrupted
        #: presence channels: the roster and the member id of this connection
        self.members = members
        self.my_id = my_id


class SubscriptionFailed(Event):
    """``bird:subscription_error``: ``error`` is the cause; ``will_retry`` is true if the library tries again by
    itself. ``data`` is what the edge said, as it came; if nothing came from the edge, what ``error`` says."""

    __slots__ = ("error", "will_retry")

    def __init__(
        self, channel: Channel, raw: bytes, data_kind: int, error: BirdRealtimeError, *, will_retry: bool
    ) -> None:
        self._fill("bird:subscription_error", channel, raw, data_kind)
        self.error = error
        self.will_retry = will_retry
        if data_kind == _abi.BIRD_DATA_NONE:
            self._data = {"error": error.message, "endpoint": error.endpoint, "status": error.http_status}


class ErrorReported(Event):
    """``bird:error``: the edge has reported an error that names the channel, such as a client event that it refused. A
    subscribed channel stays subscribed. ``error`` is what the connection's "error" handlers get as well; ``data`` are
    those of the edge's message."""

    __slots__ = ("error",)

    def __init__(self, channel: Channel, raw: bytes, data_kind: int, error: BirdRealtimeError) -> None:
        self._fill("bird:error", channel, raw, data_kind)
        self.error = error


class DecryptionFailed(Event):
    """``bird:decryption_error``: an event of an encrypted channel is lost. ``error`` says why; ``data`` has its
    "channel" and "event"."""

    __slots__ = ("error",)

    def __init__(self, channel: Channel, raw: bytes, data_kind: int, error: BirdRealtimeError) -> None:
        self._fill("bird:decryption_error", channel, raw, data_kind)
        self.error = error


class MemberEvent(Event):
    """``bird:member_added`` or ``bird:member_removed``: ``member`` has come or gone."""

    __slots__ = ("member",)

    channel: PresenceChannel

    def __init__(self, name: str, channel: PresenceChannel, raw: bytes, data_kind: int, member_id: str) -> None:
        self._fill(name, channel, raw, data_kind)
        self.member = Member(member_id, self.data)
        self._data = self.member._asdict()
