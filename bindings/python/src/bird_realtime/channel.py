"""Channels as the program sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _abi, _json
from ._handle import Handle
from ._native import text_argument
from .bindings import Binding, Bindings, GloballyBindable, Handler
from .errors import BirdRealtimeError, InvalidArgument, NotSubscribed, NotSupported, TimedOut
from .events import Event, SubscriptionFailed, SubscriptionSucceeded
from .stream import EventStream
from .watchlist import Watchlist

if TYPE_CHECKING:
    from .client import BirdRealtime

_NOTHING: Any = object()


class Channel(GloballyBindable):
    """A subscription and its handlers. It survives reconnects; ``unsubscribe`` ends it.

    A handler bound to ``bird:subscription_succeeded`` or ``bird:subscription_error`` when that is how the subscription
    stands already is called with it.
    """

    def __init__(self, client: BirdRealtime, name: str, tag: int) -> None:
        super().__init__(client._lock, client._check_process)
        self._client = client
        self._handle: Handle | None = None
        self._tag = tag
        #: for each bound event the bindings to run (another object after each change), and those for every other
        #: application event
        self._routes: dict[str, Bindings] = {}
        self._default_route: Bindings = ()
        self.name = name
        #: why the subscription failed, None while it has not
        self.error: BirdRealtimeError | None = None
        #: how the subscription stands, as handlers are told, and the rounds of telling that have not ended
        self._status: SubscriptionSucceeded | SubscriptionFailed | None = None
        self._untold_count = 0
        self._changed()

    @property
    def state(self) -> str:
        """idle, authorizing, pending, subscribed, failed or unsubscribed, at this moment."""
        handle = self._current_handle()
        if handle is None:
            return "unsubscribed" if self.error is None else "failed"
        return self._client._channel_state(handle)

    @property
    def subscribed(self) -> bool:
        return self.state == "subscribed"

    def trigger(self, event: str, data: object = _NOTHING, *, raw: bytes | None = None) -> bool:
        """Sends a client event ("client-...") to the other subscribers; data is any JSON value, or raw its bytes.

        True: accepted, which is not yet sent; an event not written when the connection is lost is never replayed.
        NotSubscribed: not subscribed (yet, or not again); QueueFull: try later; InvalidArgument: a name or payload that
        cannot be sent; NotSupported: not on this kind of channel.
        """
        if raw is not None and not isinstance(raw, bytes):
            raise InvalidArgument(f"raw must be bytes, not {type(raw).__name__}", field="raw")
        if raw is not None and data is not _NOTHING:
            raise InvalidArgument("trigger takes data or raw, not data and raw", field="raw")
        payload = raw if data is _NOTHING else _json.encode(data, "data")
        name = text_argument(event, "event")
        self._client._trigger(self._live_handle(), name, payload)
        return True

    def unsubscribe(self) -> None:
        """Ends the subscription and removes its handlers. Subscribe again for a new channel."""
        self._client._unsubscribe(self)

    def wait_subscribed(self, timeout: float | None = None) -> None:
        """Waits until the channel is subscribed and handlers have been told. Raises why it failed, or TimedOut after
        timeout seconds."""
        has_been = False

        def is_ready() -> bool:
            # Noted, since the subscription may be interrupted by the time that the wait has ended.
            nonlocal has_been
            has_been = has_been or (self._is_told and self.subscribed)
            return has_been

        if not self._client._wait(lambda: is_ready() or self._is_over(), timeout):
            raise TimedOut(f"{self.name} was not subscribed within {timeout} s")
        if not has_been:
            raise self.error or self._client._ended() or NotSubscribed(f"{self.name} was unsubscribed")

    def events(self, timeout: float | None = None) -> EventStream:
        """The channel's application events from now on, in a for loop; with a timeout it ends after that many seconds
        without one. Raises why no more can come if the subscription or the connection has failed for good."""
        return EventStream(self, self._client, timeout, self._is_over, lambda: self.error or self._client._ended())

    def __iter__(self) -> Iterator[Event]:
        return self.events()

    def _is_over(self) -> bool:
        """Nothing more can come; a failure counts once handlers have been told why."""
        state = self.state
        has_failed = state == "failed" and self._is_told and self.error is not None
        return state == "unsubscribed" or has_failed or self._client._is_over()

    def _current_handle(self) -> Handle | None:
        self._check_process()
        # The lock: subscribe() may not have returned yet while its first record is delivered.
        with self._lock:
            return self._handle

    def _live_handle(self) -> Handle:
        handle = self._current_handle()
        if handle is None:
            raise self.error or NotSubscribed(
                f"{self.name} was unsubscribed; subscribe again for a new channel",
                status=_abi.BIRD_ERR_UNSUBSCRIBED,
            )
        return handle

    def _prepare(self, event: str) -> None:
        self._client._prepare(event)

    def _own_name(self, event: str) -> str:
        return self._client._own_name(event)

    def _changed(self) -> None:
        wide = self._client
        default = self._global + wide._global
        names = self._named.keys() | wide._named.keys()
        self._default_route = default
        self._routes = {name: self._of_event(name) + default for name in names}

    def _forget_routes(self) -> None:
        """Nothing is delivered any more, not even the rest of the batch that is being delivered."""
        self._default_route = ()
        self._routes = {}

    def _of_event(self, name: str) -> Bindings:
        return self._named.get(name, ()) + self._client._named.get(name, ())

    def _end(self) -> None:
        """Nothing is delivered any more."""
        self._handle = None
        self.unbind()

    def _add(self, event: str, handler: Handler) -> Binding:
        """The answer to a subscribe may come before the program has bound its handler, which then gets it late."""
        with self._lock:
            binding = super()._add(event, handler)
            status = self._status
            if status is not None and status.name == self._own_name(event):

                def tell() -> None:
                    self._client._router.tell_status(self, (binding,), status)

                self._client._delivery.post(tell)
                self._untold_count += 1
        return binding

    @property
    def _is_told(self) -> bool:
        """True once every handler has been told how the subscription stands."""
        return self._status is not None and self._untold_count == 0

    def _told(self) -> None:
        with self._lock:
            self._untold_count -= 1

    def _announce(self, status: SubscriptionSucceeded | SubscriptionFailed) -> Bindings:
        """Takes up a status and gives the handlers to run; those bound from now on get it when they are bound."""
        with self._lock:
            self.error = status.error if isinstance(status, SubscriptionFailed) else None
            self._status = status
            self._untold_count += 1
            return self._of_event(status.name)

    def _load(self, event: SubscriptionSucceeded) -> None:
        """Takes over what a success says about members."""

    def _reset(self) -> None:
        """What the edge told us about the channel is no longer so."""
        self._status = None

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.state}>"


class PresenceChannel(Channel):
    """A channel that knows who is there. Inside a handler the roster is that of its event."""

    def __init__(self, client: BirdRealtime, name: str, tag: int) -> None:
        super().__init__(client, name, tag)
        self._members: dict[str, Any] = {}
        #: the member id of this connection, None when not subscribed
        self.my_id: str | None = None

    @property
    def members(self) -> dict[str, Any]:
        """member_id -> member_info (None if there is none), in order of arrival: a copy."""
        return dict(self._members)

    @property
    def me(self) -> Any:
        """The member_info of this connection's member, None when not subscribed."""
        return self._members.get(self.my_id or "")

    def _load(self, event: SubscriptionSucceeded) -> None:
        self._members = dict(event.members)
        self.my_id = event.my_id

    def _reset(self) -> None:
        super()._reset()
        self._members = {}
        self.my_id = None

    def _end(self) -> None:
        super()._end()
        self._reset()


class MemberChannel(Channel):
    """``bird.member``: events sent to the member signed in. It can be bound before signin, which gives it its name."""

    def __init__(self, client: BirdRealtime, name: str, tag: int) -> None:
        super().__init__(client, name, tag)
        #: who is there of the members that the one signed in watches
        self.watchlist = Watchlist(client)

    def trigger(self, event: str, data: object = _NOTHING, *, raw: bytes | None = None) -> bool:
        raise NotSupported("client events cannot be sent on the member channel")

    def unsubscribe(self) -> None:
        raise NotSupported("the member channel belongs to the signin and cannot be unsubscribed")
