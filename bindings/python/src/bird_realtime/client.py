"""The synchronous client."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
import warnings
import weakref
from collections.abc import Mapping
from ctypes import byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any, Callable

from . import _abi
from . import options as _options
from ._handle import Handle
from ._native import Native, text_argument
from ._signal import is_owned
from .authorization import Authorizer, HeaderProvider, Hooks, MayReconnect, MemberAuthorizer, Requests
from .bindings import GloballyBindable
from .channel import Channel, MemberChannel, PresenceChannel
from .connection import STATES, Connection
from .delivery import WAIT_SLICE_MS, Delivery
from .errors import BirdRealtimeError, CalledInHandler, Closed, InvalidArgument, NotSubscribed, TimedOut
from .events import TOLD_EVENTS, Member, SubscriptionFailed
from .router import Completion, HandlerErrorHook, HandlerErrors, Router
from .statistics import Statistics
from .stream import EventStream

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Unpack

#: the edge is given this long to answer the close frame; close() cannot be interrupted meanwhile
CLOSE_ANSWER_MS = 500


class BirdRealtime(GloballyBindable):
    """A connection to Bird Realtime, its channels and handlers.

    ``app_key`` and one of ``region`` and ``ws_host`` are required. The keyword ``options`` are those of ``Options``,
    by the names of the C library. It connects at once unless ``auto_connect`` is false.

    ``authorizer(channel_name, connection_id)`` and ``member_authorizer(connection_id)`` replace the endpoints: they
    return the backend's answer, a dict with "auth" and, where it belongs, "member_data" and "shared_secret".
    ``header_provider(endpoint)`` is asked before each POST to an endpoint for a dict of headers that go with it, beside
    ``auth_headers``, which they replace where names are equal. To deny, these raise AuthorizationError. An OSError, or
    an exception with a true ``retriable``, is asked again.

    ``may_reconnect(attempt, cause)`` is asked before each attempt to reconnect that the client has planned: True or
    0 has it begin at once, a number after that many seconds, False skips it. An attempt that waits for its answer for
    a second begins.

    These functions are plain or async and run where handlers run, an async one to its end in an event loop of its own.

    Handlers run one after the other on a thread of the client; with ``thread=False`` they run on the thread that calls
    ``run_forever`` or another waiting method. An exception of a handler is logged and given to
    ``on_handler_error(exception, event)``.

    Close it, or use it in a with statement. It must not be used in a forked child (ForkedClient).
    """

    def __init__(
        self,
        app_key: str,
        *,
        authorizer: Authorizer | None = None,
        member_authorizer: MemberAuthorizer | None = None,
        header_provider: HeaderProvider | None = None,
        may_reconnect: MayReconnect | None = None,
        auth_headers: Mapping[str, str] | None = None,
        auto_connect: bool = True,
        thread: bool = True,
        on_handler_error: HandlerErrorHook | None = None,
        **options: Unpack[_options.Options],
    ) -> None:
        values = _options.checked(options)
        hooks = Hooks(authorizer, member_authorizer, header_provider, may_reconnect)
        values.update(hooks.options())
        errors = HandlerErrors(on_handler_error)
        self._native = Native(app_key, values, auth_headers or {})
        super().__init__(threading.RLock(), self._native.check_process)
        self._is_closed = False
        self._tags = itertools.count(1)
        self.connection = Connection(
            self._lock, self._check_process, self._state, lambda: self._text("bird_client_connection_id")
        )
        requests = Requests(self._native, hooks, errors.report, str(values.get("dialect", "bird")))
        self._router = Router(self.connection, requests, errors, self._native.failure, self._native.members)
        try:
            for event in TOLD_EVENTS:
                self._own_name(event)
            self._delivery = Delivery(self._native, self._router, thread)
        except BaseException:
            # Nobody delivers: the native client has nobody else to end it.
            self._native.destroy()
            raise
        self._finalizer = weakref.finalize(self, _collected, self._delivery, app_key)
        # The exit hook of the delivery ends clients that are still there; they are not reported as forgotten.
        self._finalizer.atexit = False
        try:
            #: events sent to the member signed in
            self.member = self._router.member = self._member_channel()
            if auto_connect:
                self.connect()
        except BaseException:
            self.close()
            raise

    # --------------------------------------------------------------------------------------------- connection ----

    def connect(self) -> None:
        """Opens a connection, now if one is only planned. No effect when connecting or connected."""
        self._check_usable()
        self.connection._expect_connect()
        self._native.call(self._native.client, "bird_client_connect")

    def disconnect(self) -> None:
        """Closes the connection and plans nothing; channels and handlers stay for a later ``connect``."""
        self._check_usable()
        self.connection._expect_disconnect()
        self._native.command("bird_client_disconnect")

    def retry_now(self) -> None:
        """Begins the attempt that is planned now, without asking ``may_reconnect``; the schedule of the attempts after
        it begins again. No effect unless the state is unavailable."""
        self._check_usable()
        self._native.command("bird_client_retry_now")

    def configure(self, **options: Unpack[_options.Options]) -> None:
        """Changes options of the living client, one after the other: those of reconnects and of the keep-alive. An
        attempt that is planned is planned anew, from the end of the one before, and a ping that is due or waits for
        its answer follows at once. InvalidState names an option that is fixed when the client is created."""
        values = _options.checked(options)
        self._check_usable()
        for key, value in values.items():
            self._native.change(key, value)

    def network_hint(self, hint: str) -> None:
        """What the program knows of the network, beside what ``network_watch`` sees: "up", "down" or "resumed" (the
        machine was suspended). "up" and "resumed" have a planned attempt begin now; "down" and "resumed" have a
        connected client look, within 5 s, whether the connection still stands. Both at most once a second."""
        if hint not in _abi.NETWORK_HINTS:
            raise InvalidArgument(f"no network hint {hint!r}; there are {', '.join(_abi.NETWORK_HINTS)}", field="hint")
        self._check_usable()
        self._native.command("bird_client_network_hint", _abi.NETWORK_HINTS[hint])

    def wait_until(self, state: str, timeout: float | None = None) -> None:
        """Waits until the connection is, or has meanwhile been, in this state and its handlers have run. TimedOut
        after timeout seconds; ConnectionFailed if the edge refuses the connection, GaveUp if the client gives up
        (``reconnect_attempts_max``), and another state was asked for."""
        if state not in STATES:
            raise InvalidArgument(f"no state {state!r}; there are {', '.join(sorted(STATES))}", field="state")
        seen: list[object] = []

        def is_reached() -> bool:
            # Noted, since the state may be another one by the time that the wait has ended.
            if self.connection._is(state):
                seen.append(state)
            return bool(seen)

        self.connection.bind(state, seen.append)
        try:
            has_ended = self._wait(lambda: is_reached() or self._is_over(), timeout)
        finally:
            self.connection.unbind(state, seen.append)
        if not has_ended:
            raise TimedOut(f"the connection was not {state} within {timeout} s; it is {self.connection.state}")
        if not seen:
            raise self._ended() or _closed()

    def flush(self, timeout: float | None = None) -> None:
        """Waits until everything triggered so far has been written to the socket. TimedOut after timeout seconds."""
        self._check_usable()
        status = self._flush(timeout)
        is_late = status == _abi.BIRD_ERR_TIMEOUT
        self._native.check(status, f"not everything was written within {timeout} s" if is_late else "")

    def close(self, timeout: float = 5.0) -> None:
        """Sends what is queued, closes the connection and ends the client; afterwards no handler is called. It waits at
        most timeout seconds for the network and for a handler that is running. In a handler it does not wait, nor in a
        signal handler that has interrupted the delivery or a call that changes the client; what has not been delivered
        then is dropped."""
        if self._native.is_forked:
            self._delivery.abandon()
            self._finalizer.detach()
            return
        is_inside = self._delivery.is_in_handler or is_owned(self._lock)
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        deadline = time.monotonic() + timeout
        try:
            self._close_connection(deadline, is_inside)
        finally:
            self._delivery.end(None if is_inside else max(0.0, deadline - time.monotonic()))
        self._finalizer.detach()

    def _close_connection(self, deadline: float, is_inside: bool) -> None:
        close = self._native.lib.bird_client_close
        if is_inside:
            self._native.client.call(close, 0)
            with self._lock:
                self._router.silence()
        else:
            self._flush(_left_ms(deadline) / 1000)
            self._native.client.call(close, min(CLOSE_ANSWER_MS, _left_ms(deadline)))

    def __enter__(self) -> BirdRealtime:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # ----------------------------------------------------------------------------------------------- channels ----

    @property
    def channels(self) -> dict[str, Channel]:
        """The channels by name: a copy."""
        self._check_process()
        with self._lock:
            return dict(self._router.channels)

    def subscribe(self, name: str) -> Channel:
        """The channel of this name, subscribed now and on each later connection; the same one when called again.

        The answer is told to handlers that are bound later, too. What the edge sends with it, a cached event or the
        first count, may come before them on a connected client: bind such handlers before ``connect``, or to the
        client.

        A name that the protocol does not allow gives a channel in the state failed; its ``error`` is also told by
        ``bird:subscription_error`` and by the connection's ``error`` event.
        """
        text = text_argument(name, "name")
        self._check_usable()
        with self._lock:
            channel = self._router.channels.get(name)
            is_new = channel is None
            if channel is None:
                kind = PresenceChannel if name.startswith("presence-") else Channel
                channel = kind(self, name, next(self._tags))
                # Before the library knows it: the answer may be delivered before this call returns.
                self._router.channels[name] = self._router.by_tag[channel._tag] = channel
            if channel.error is not None:
                # That failure is over, though the library's state of the channel changes a little later.
                channel.error = None
                channel._reset()
            handle = c_void_p()
            try:
                self._native.call(self._native.client, "bird_client_subscribe", text, 0, byref(handle))
                if is_new:
                    channel._handle = self._native.hold(handle, channel._tag)
                else:
                    # One counted reference per channel is enough.
                    self._native.lib.bird_channel_release(handle)
                # Again: close() does not wait for this call.
                self._check_usable()
            except BirdRealtimeError as error:
                if is_new:
                    self._forget(channel)
                    if channel._handle is not None:
                        self._native.give_back(channel._handle)
                if error.status != _abi.BIRD_ERR_NAME:
                    raise
                self._fail(channel, error)
            return channel

    def unsubscribe(self, name: str) -> None:
        """Ends the subscription of this name, if there is one, and removes the channel's handlers."""
        channel = self.channels.get(name)
        if channel is not None:
            channel.unsubscribe()

    def events(self, timeout: float | None = None) -> EventStream:
        """The application events of all channels from now on, in a for loop; with a timeout it ends after that many
        seconds without one. Raises ConnectionFailed if the edge refuses the connection, GaveUp if the client does."""
        return EventStream(self, self, timeout, self._is_over, self._ended)

    def run_forever(self) -> None:
        """Runs handlers on the calling thread until the client is closed. ConnectionFailed: the edge refused it.
        GaveUp: the client gave up."""
        try:
            self._delivery.pause_thread()
            self._wait(self._is_over, None)
        finally:
            self._delivery.resume_thread()
        failure = self._ended()
        if failure is not None:
            raise failure

    # ------------------------------------------------------------------------------------------------- signin ----

    def signin(self, *, refresh: bool = False, timeout: float | None = None) -> Member:
        """Signs in as a member, now and again on each later connection, and waits for the answer. refresh signs in
        again although signed in (for a changed watchlist). Raises why it failed, or TimedOut after timeout
        seconds."""
        self._check_usable()
        if self._delivery.is_in_handler:
            raise CalledInHandler("signin() waits for its answer; call it outside of handlers")
        completion, tag = Completion(), next(self._tags)
        self._router.completions[tag] = completion
        try:
            flags = _abi.BIRD_SIGNIN_REFRESH if refresh else 0
            self._native.call(self._native.client, "bird_client_signin", flags, tag)
            if not self._wait(lambda: completion.is_done or self._is_closed, timeout):
                raise TimedOut(f"no answer to the signin within {timeout} s")
        finally:
            self._router.completions.pop(tag, None)
        if completion.error is not None:
            raise completion.error
        if completion.member is None:
            raise _closed()
        return completion.member

    @property
    def member_id(self) -> str | None:
        """The id of the member signed in at this moment, None when there is none."""
        return self._text("bird_client_member_id")

    def statistics(self) -> Statistics:
        """Counters and gauges of this moment."""
        self._check_usable()
        counters = _abi.StatisticsCounters(struct_size=sizeof(_abi.StatisticsCounters))
        self._native.command("bird_client_statistics", byref(counters))
        return Statistics(*(getattr(counters, name) for name in Statistics._fields))

    def dump(self) -> dict[str, Any]:
        """All that a bug report should say of this client: versions, options, state, latest changes and errors,
        channels, statistics. Secrets are masked."""
        self._check_usable()
        report: dict[str, Any] = json.loads(self._native.text(self._native.client, "bird_client_dump"))
        return report

    # ------------------------------------------------------------------------------------------- for channels ----

    def _wait(self, is_done: Callable[[], bool], timeout: float | None) -> bool:
        self._check_process()
        if is_owned(self._lock):
            # What is to be delivered may need the lock.
            raise CalledInHandler("this signal handler has interrupted a call of the client, which must return first")
        return self._delivery.wait_for(is_done, timeout)

    def _is_over(self) -> bool:
        """Nothing more can come: closed, or refused by the edge or given up and told so."""
        return self._is_closed or self.connection._has_failed

    def _ended(self) -> BirdRealtimeError | None:
        return self.connection.error

    def _prepare(self, event: str) -> None:
        text_argument(event, "event")
        self._check_usable()

    def _own_name(self, event: str) -> str:
        """What the library tells of has a name in each dialect, and one number, which its records carry from now on
        instead of a name to decode."""
        try:
            return self._router.names.setdefault(self._native.intern(text_argument(event, "event")), event)
        except Closed:
            return event

    def _changed(self) -> None:
        for channel in list(self._router.by_tag.values()):
            channel._changed()

    def _trigger(self, channel: Handle, event: bytes, payload: bytes | None) -> None:
        self._check_usable()
        length = 0 if payload is None else len(payload)
        self._native.call(channel, "bird_channel_trigger", event, payload, length)

    def _channel_state(self, channel: Handle) -> str:
        self._check_process()
        number = _abi.BIRD_CHANNEL_UNSUBSCRIBED
        # Another thread may end either at any moment.
        with contextlib.suppress(Closed, NotSubscribed):
            if not self._is_closed:
                number = self._native.number(channel, "bird_channel_state")
        return _abi.CHANNEL_STATE_NAMES.get(number, f"state {number}")

    def _unsubscribe(self, channel: Channel) -> None:
        self._check_process()
        with self._lock:
            handle = channel._handle
            self._forget(channel)
            channel._end()
            if handle is not None:
                status = handle.call(self._native.lib.bird_channel_unsubscribe)
                self._native.give_back(handle)
                if status not in (_abi.BIRD_ERR_UNSUBSCRIBED, _abi.BIRD_ERR_CLOSED):
                    self._native.check(status)

    # ------------------------------------------------------------------------------------------------ private ----

    def _check_usable(self) -> None:
        self._check_process()
        if self._is_closed:
            raise _closed()

    def _state(self) -> str:
        self._check_process()
        number = _abi.BIRD_STATE_DISCONNECTED
        with contextlib.suppress(Closed):
            if not self._is_closed:
                number = self._native.number(self._native.client, "bird_client_state")
        return _abi.STATE_NAMES.get(number, f"state {number}")

    def _text(self, function: str) -> str | None:
        self._check_process()
        with contextlib.suppress(Closed):
            if not self._is_closed:
                return self._native.text(self._native.client, function) or None
        return None

    def _flush(self, timeout: float | None) -> int:
        """The status of bird_client_flush, waiting in slices for the sake of Ctrl-C."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            slice_ms = WAIT_SLICE_MS if deadline is None else min(WAIT_SLICE_MS, _left_ms(deadline))
            status = self._native.client.call(self._native.lib.bird_client_flush, slice_ms)
            if status != _abi.BIRD_ERR_TIMEOUT or slice_ms == 0:
                return status

    def _member_channel(self) -> MemberChannel:
        channel = MemberChannel(self, "", next(self._tags))
        handle = c_void_p()
        self._native.command("bird_client_member_channel", byref(handle))
        channel._handle = self._native.hold(handle, channel._tag)
        self._router.by_tag[channel._tag] = channel
        return channel

    def _forget(self, channel: Channel) -> None:
        self._router.by_tag.pop(channel._tag, None)
        if self._router.channels.get(channel.name) is channel:
            del self._router.channels[channel.name]

    def _fail(self, channel: Channel, error: BirdRealtimeError) -> None:
        channel.error = error

        def tell() -> None:
            self._router.emit_status(
                channel, SubscriptionFailed(channel, b"", _abi.BIRD_DATA_NONE, error, will_retry=False)
            )
            self._router.emit_connection("error", error)

        self._delivery.post(tell)


def _closed() -> Closed:
    return Closed("the client is closed")


def _left_ms(deadline: float) -> int:
    return max(0, int((deadline - time.monotonic()) * 1000))


def _collected(delivery: Delivery, app_key: str) -> None:
    """The client was garbage-collected without having been closed."""
    if not delivery.is_forked:
        warnings.warn(f"unclosed BirdRealtime client of app {app_key}", ResourceWarning, stacklevel=2)
    delivery.abandon()
